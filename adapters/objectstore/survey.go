package objectstore

import (
	"errors"
	"slices"

	"macronode/core/coding"
	"macronode/core/placement"
	"macronode/core/storage"
)

// candidates appends to list what a provider may have of an object, the likeliest first: the shard of each scheme that is placed there, and a
// copy.
func (s *Store) candidates(list []Part, o storage.Stored, i int) []Part {
	schemes := s.schemesOf(o.Size)
	if !s.copies.Coding.Applies(o.Size) {
		list = append(list, Part{Provider: i})
	}
	for _, scheme := range schemes {
		if part, ok := s.placed(o, scheme, i); ok {
			list = append(list, part)
		}
		if scheme == s.copies.Coding {
			list = append(list, Part{Provider: i})
		}
	}
	return list
}

// A finding is a part that a survey has found.
type finding struct {
	Part
	err error // of the check
}

// Survey looks for the parts of an object in some providers and passes each to found, with what check returns of it. check is CheckPart or
// VerifyPart; a part for which it returns ErrGone is not there. The error of a provider that cannot be read is passed with the part that is
// placed there. All parts are copies or shards of one scheme, which Survey returns.
func (s *Store) Survey(o storage.Stored, in placement.Set, check func(Part) error, found func(Part, error)) coding.Scheme {
	var all []finding
	for i := range s.table.Len() {
		if !in.Has(i) {
			continue
		}
		var list [4]Part
		for _, part := range s.candidates(list[:0], o, i) {
			if err := check(part); !errors.Is(err, ErrGone) {
				all = append(all, finding{part, err})
				break
			}
		}
	}
	scheme := schemeOf(all)
	for _, other := range s.schemesOf(o.Size) {
		if other == scheme || !scheme.IsSet() && !hasCopy(all) {
			all = append(all, s.misplaced(o, in, other, all, check)...)
			scheme = schemeOf(all)
		}
	}
	for _, f := range all {
		switch {
		case f.Scheme == scheme:
			found(f.Part, f.err)
		case f.err != nil && !errors.Is(f.err, ErrDamaged): // nothing is known of the files of the provider
			if part, ok := s.placed(o, scheme, f.Provider); ok {
				found(part, f.err)
			}
		}
	}
	return scheme
}

// hasCopy reports whether a copy was found.
func hasCopy(all []finding) bool {
	return slices.ContainsFunc(all, func(f finding) bool { return !f.Scheme.IsSet() && (f.err == nil || errors.Is(f.err, ErrDamaged)) })
}

// schemeOf returns the scheme of which most parts are: no other one, unless a restore was interrupted.
func schemeOf(all []finding) (scheme coding.Scheme) {
	counts, most := map[coding.Scheme]int{}, 0
	for _, f := range all {
		if f.err == nil || errors.Is(f.err, ErrDamaged) {
			if counts[f.Scheme]++; counts[f.Scheme] > most {
				scheme, most = f.Scheme, counts[f.Scheme]
			}
		}
	}
	return scheme
}

// placed returns the part of a scheme that is placed in a provider.
func (s *Store) placed(o storage.Stored, scheme coding.Scheme, i int) (p Part, ok bool) {
	if !scheme.IsSet() {
		return Part{Provider: i}, true
	}
	order := s.table.Choose(uint64(o.File), scheme.Shards(), s.table.All(), 0)
	for shard := range order.Len() {
		if order.At(shard) == i {
			return Part{i, scheme, shard}, true
		}
	}
	return p, false
}

// misplaced returns the shards that are elsewhere than they are placed: of those that no provider is known to have whole. First providers are
// asked that are not known to have a part, then the others. One that cannot be read is not asked.
func (s *Store) misplaced(o storage.Stored, in placement.Set, scheme coding.Scheme, known []finding, check func(Part) error) (all []finding) {
	var has, whole, failed placement.Set
	for _, f := range known {
		has = has.With(f.Provider)
		switch {
		case f.err != nil && !errors.Is(f.err, ErrDamaged):
			in &^= placement.Set(0).With(f.Provider)
		case f.err == nil && f.Scheme == scheme:
			whole = whole.With(f.Shard)
		}
	}
	for _, among := range [...]placement.Set{in &^ has, in & has} {
		for i := range s.table.Len() {
			for shard := range scheme.Shards() {
				part := Part{i, scheme, shard}
				if !among.Has(i) || failed.Has(i) || whole.Has(shard) || slices.ContainsFunc(known, func(f finding) bool { return f.Part == part }) {
					continue
				}
				err := check(part)
				if errors.Is(err, ErrGone) {
					continue
				}
				all = append(all, finding{part, err})
				if err == nil {
					whole = whole.With(shard)
				} else if !errors.Is(err, ErrDamaged) {
					failed = failed.With(i)
				}
			}
		}
	}
	return all
}
