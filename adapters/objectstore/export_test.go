package objectstore

import "macronode/core/storage"

// SeparateNodes makes uploads write nodes into files of their own, from the second one on.
func (s *Store) SeparateNodes() { s.appended = 1 }

// VerifyCopy and RepairCopy verify and repair the copy in a provider.
func (s *Store) VerifyCopy(o storage.Stored, i int, pace func(int) error) error {
	return s.VerifyPart(o, Part{Provider: i}, pace)
}

func (s *Store) RepairCopy(o storage.Stored, i int, pace func(int) error) error {
	return s.Repair(o, []Part{{Provider: i}}, pace)[0]
}

// CheckCopy checks the copy in a provider.
func (s *Store) CheckCopy(o storage.Stored, i int) error { return s.CheckPart(o, Part{Provider: i}) }
