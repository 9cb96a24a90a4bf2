package placement

// A Disk is what is known of a provider before a write.
type Disk struct {
	Domain string
	Failed bool
	Spare  uint64 // bytes that it can take
}

// Rank says how well a disk suits a write of some bytes: 0 is the best, 3 that it has failed.
func (d *Disk) Rank(bytes uint64) int {
	switch {
	case d.Failed:
		return 3
	case d.Spare == 0:
		return 2
	case d.Spare < bytes:
		return 1
	}
	return 0
}

// Writers returns the places in disks that a write of some bytes into up to n of them uses, one after the other: each time it looks at all disks
// in domains that are not in use for the best one, the earlier one of two equal ones. Beyond those required only disks with room are used. The
// disks are in the order in which they are preferred.
func Writers(disks []Disk, n, required int, bytes uint64) (chosen []int) {
	for len(chosen) < n {
		best := -1
		for i := range disks {
			used := false
			for _, c := range chosen {
				used = used || disks[c].Domain == disks[i].Domain
			}
			if !used && (best < 0 || disks[i].Rank(bytes) < disks[best].Rank(bytes)) {
				best = i
			}
		}
		if best < 0 || len(chosen) >= required && disks[best].Rank(bytes) > 0 {
			break
		}
		chosen = append(chosen, best)
	}
	return chosen
}
