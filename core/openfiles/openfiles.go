// Package openfiles is the rule by which a node shares its limit of open files: first what it must have open itself, then what can do
// with fewer.
package openfiles

// A Use is something that opens files and can do with fewer than it would have, such as the connections of a listener.
type Use struct {
	Most  int // units that it would have
	Least int // units that it cannot do without, at most Most
	Each  int // files of a unit
}

// Files returns how many files units of a use have open.
func (u Use) Files(units int) uint64 { return uint64(units) * uint64(u.Each) }

// Needed returns the limit at which the node has its own files, and each use has all its units.
func Needed(own int, uses ...Use) uint64 { return total(own, uses, func(u Use) int { return u.Most }) }

// Required returns the lowest limit that the node can do with.
func Required(own int, uses ...Use) uint64 {
	return total(own, uses, func(u Use) int { return u.Least })
}

func total(own int, uses []Use, units func(Use) int) uint64 {
	sum := uint64(own)
	for _, u := range uses {
		sum += u.Files(units(u))
	}
	return sum
}

// Share returns how many units each use gets, of a limit of open files of which the node has own itself. Below Needed, each use gets what
// it cannot do without, and all get the same part of the rest of what they would have, rounded down. ok is false if the limit is below
// Required.
func Share(limit uint64, own int, uses ...Use) (units []int, ok bool) {
	required, needed := Required(own, uses...), Needed(own, uses...)
	if limit < required {
		return nil, false
	}
	for _, u := range uses {
		n := u.Most
		if limit < needed {
			n = u.Least + int(uint64(u.Most-u.Least)*(limit-required)/(needed-required))
		}
		units = append(units, n)
	}
	return units, true
}
