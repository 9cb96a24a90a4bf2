package types

import "strconv"

// A Plane is one vertical slice of the node, such as the wallet. Its number is part of the kinds of
// its records, so it is permanent.
type Plane uint8

const (
	PlaneNode       Plane = 0  // the node itself: starts, API keys, the idempotency window
	PlaneWallet     Plane = 1  // money
	PlaneStorage    Plane = 2  // objects
	PlaneAccounting Plane = 3  // usage
	PlaneExport     Plane = 4  // what was exported
	PlaneExample    Plane = 15 // examples and tests; no product writes such a record
	NumPlanes       Plane = 16
)

func (p Plane) String() string {
	switch p {
	case PlaneNode:
		return "node"
	case PlaneWallet:
		return "wallet"
	case PlaneStorage:
		return "storage"
	case PlaneAccounting:
		return "accounting"
	case PlaneExport:
		return "export"
	case PlaneExample:
		return "example"
	default:
		return "plane " + strconv.Itoa(int(p))
	}
}
