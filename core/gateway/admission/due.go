package admission

// dues is a heap of rows, the earliest first; at the same instant the lower row, so that equal histories have
// equal orders.

func (a *Admit) before(i, j int) bool {
	x, y := &a.rows[a.dues[i]], &a.rows[a.dues[j]]
	return x.until < y.until || x.until == y.until && a.dues[i] < a.dues[j]
}

func (a *Admit) swap(i, j int) {
	a.dues[i], a.dues[j] = a.dues[j], a.dues[i]
	a.rows[a.dues[i]].due, a.rows[a.dues[j]].due = int32(i), int32(j)
}

// enlist adds a row, unlist removes it, moved restores the order after a change.
func (a *Admit) enlist(place uint32) {
	a.rows[place].due = int32(len(a.dues))
	a.dues = append(a.dues, place)
	a.rise(len(a.dues) - 1)
}

func (a *Admit) unlist(place uint32) {
	i, last := int(a.rows[place].due), len(a.dues)-1
	a.swap(i, last)
	a.dues = a.dues[:last]
	if i < last {
		a.sink(i)
		a.rise(i)
	}
}

func (a *Admit) moved(place uint32) {
	i := int(a.rows[place].due)
	a.sink(i)
	a.rise(int(a.rows[place].due))
}

func (a *Admit) rise(i int) {
	for i > 0 && a.before(i, (i-1)/2) {
		a.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (a *Admit) sink(i int) {
	for {
		least := i
		for _, child := range [...]int{2*i + 1, 2*i + 2} {
			if child < len(a.dues) && a.before(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		a.swap(i, least)
		i = least
	}
}
