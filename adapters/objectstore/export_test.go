package objectstore

// SeparateNodes makes uploads write nodes into files of their own, from the second one on.
func (s *Store) SeparateNodes() { s.appended = 1 }
