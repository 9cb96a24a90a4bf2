package cli

// nodeAccess finds the node of a command line and sends requests to its listeners.
type nodeAccess struct{ *Console }

// node returns the access to the node of the command line.
func (c *Console) node() nodeAccess { return nodeAccess{c} }
