package mutants

// planes are bugs of what planes get from their description.
func planes() []Mutant {
	const (
		route = "adapters/httpapi/plane_route.go"
		list  = "./adapters/httpapi TestListOfAPlane$"
	)
	return []Mutant{
		alone("only a test of httpapi has bounded keys of a plane", one("operation of a plane ignores the limits of a key", "a key with limits on accounts does not see other data", route, "return c.k.requireUnboundedKey()", "return nil", list)),
		alone("only an index that is behind shows it", one("list of a plane does not wait for the index", "a list includes what its caller was told", route, "if !c.k.Planes.AwaitFrame(ctx, upto) {", "if !c.k.Planes.AwaitFrame(ctx, upto) && false {", list)),
		alone("only the plane's section has rules of its own", one("rules of a section are not checked", "an invalid configuration is rejected", "adapters/config/section.go", "if err := check.Check(); err != nil {", "if err := check.Check(); err != nil && false {", "./adapters/config TestSectionOfAPlane$")),
		alone("only a view has these keys", one("rows of two tenants are in one view", "a view is of one tenant", "adapters/index/plane_view.go", "byte(p)), uint32(t))", "byte(p)), 1)", "./adapters/index TestViewIsListed$")),
	}
}
