package repair

// WaitingFiles returns the files that wait, the urgent ones first.
func (m *Machine) WaitingFiles() (all []uint64) {
	for _, list := range [...][]Task{m.urgent, m.normal} {
		for _, t := range list {
			all = append(all, t.File)
		}
	}
	return all
}
