package settings

import "fmt"

// Slots assigns numbers to names. A number keeps its meaning while requests refer to it, over all reloads. A freed
// number is reused as late as possible.
type Slots struct {
	Names []string // by number; empty: free
	next  int      // where the search begins
}

// assign assigns numbers to names, which are all different. A name keeps its number; a removed name frees it. Free
// numbers are used before those that this call frees.
func (s Slots) assign(names []string, most int) (to Slots, numbers []int, err error) {
	wanted := make(map[string]int, len(names)) // name → its place
	for place, name := range names {
		wanted[name] = place
	}
	numbers = make([]int, len(names))
	for i := range numbers {
		numbers[i] = -1
	}
	to = Slots{append([]string(nil), s.Names...), s.next}
	for n, name := range s.Names {
		if place, ok := wanted[name]; ok && name != "" {
			numbers[place] = n
		}
	}
	for place, name := range names {
		if numbers[place] >= 0 {
			continue
		}
		n, ok := to.free(s.Names, wanted, most)
		if !ok {
			return s, nil, fmt.Errorf("%s: there are %d already", name, most)
		}
		numbers[place], to.next = n, (n+1)%most
		for len(to.Names) <= n {
			to.Names = append(to.Names, "")
		}
		to.Names[n] = name
	}
	for n, name := range to.Names {
		if _, ok := wanted[name]; !ok {
			to.Names[n] = ""
		}
	}
	return to, numbers, nil
}

// free finds a free number, or one that this call frees.
func (s Slots) free(before []string, wanted map[string]int, most int) (n int, ok bool) {
	for _, back := range [...]bool{false, true} {
		for i := range most {
			n = (s.next + i) % most
			if n >= len(s.Names) || s.Names[n] == "" {
				return n, true
			}
			if _, kept := wanted[s.Names[n]]; back && !kept && n < len(before) && before[n] == s.Names[n] {
				return n, true
			}
		}
	}
	return 0, false
}

// assigned returns the assigned numbers as bits.
func (s Slots) assigned() (bits uint16) {
	for n, name := range s.Names {
		if name != "" {
			bits |= 1 << n
		}
	}
	return bits
}

// changedBits returns the numbers whose meaning has changed, as bits.
func (s Slots) changedBits(was Slots) (bits uint16) {
	for n, name := range s.Names {
		if name != "" && (n >= len(was.Names) || was.Names[n] != name) {
			bits |= 1 << n
		}
	}
	return bits
}
