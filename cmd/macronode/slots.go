package main

import "fmt"

// slots are numbers of what has a name: a number does not change its meaning while requests
// know it, whatever becomes of the configuration. One that came free is given again as late
// as can be.
type slots struct {
	names []string // by number; empty: free
	next  int      // where the search begins
}

// assign numbers names, which are all different: who has a number keeps it, who is not named
// any more gives it back. Free numbers are given before those that are given back by this.
func (s slots) assign(names []string, most int) (to slots, numbers []int, err error) {
	wanted := make(map[string]int, len(names)) // name → its place
	for place, name := range names {
		wanted[name] = place
	}
	numbers = make([]int, len(names))
	for i := range numbers {
		numbers[i] = -1
	}
	to = slots{append([]string(nil), s.names...), s.next}
	for n, name := range s.names {
		if place, ok := wanted[name]; ok && name != "" {
			numbers[place] = n
		}
	}
	for place, name := range names {
		if numbers[place] >= 0 {
			continue
		}
		n, ok := to.free(s.names, wanted, most)
		if !ok {
			return s, nil, fmt.Errorf("%s: there are %d already", name, most)
		}
		numbers[place], to.next = n, (n+1)%most
		for len(to.names) <= n {
			to.names = append(to.names, "")
		}
		to.names[n] = name
	}
	for n, name := range to.names {
		if _, ok := wanted[name]; !ok {
			to.names[n] = ""
		}
	}
	return to, numbers, nil
}

// free finds a number that nobody has, or one that is given back.
func (s slots) free(before []string, wanted map[string]int, most int) (n int, ok bool) {
	for _, back := range [...]bool{false, true} {
		for i := range most {
			n = (s.next + i) % most
			if n >= len(s.names) || s.names[n] == "" {
				return n, true
			}
			if _, kept := wanted[s.names[n]]; back && !kept && n < len(before) && before[n] == s.names[n] {
				return n, true
			}
		}
	}
	return 0, false
}

// given says which numbers are given: bit n is that of n.
func (s slots) given() (bits uint16) {
	for n, name := range s.names {
		if name != "" {
			bits |= 1 << n
		}
	}
	return bits
}

// fresh says which numbers mean something else than before.
func (s slots) fresh(was slots) (bits uint16) {
	for n, name := range s.names {
		if name != "" && (n >= len(was.names) || was.names[n] != name) {
			bits |= 1 << n
		}
	}
	return bits
}
