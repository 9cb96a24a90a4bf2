package objectstore

import (
	"cmp"
	"errors"
	"os"

	"macronode/adapters/provider"
	"macronode/core/placement"
	"macronode/core/storage"
)

// A Restored is what Restore did for an object.
type Restored struct {
	Good     Parts   // that were good before
	Written  []Part  // those that were missing or damaged
	Errs     []error // of each that was written; nil: it is good now
	Lost     bool    // the object cannot be read
	Unknown  bool    // it may be in parts that were not seen: a provider has failed or refuses access
	Readable bool    // it was read as a whole
	Lacks    bool    // parts are missing or damaged now, and the object can be read
}

// IsHopeless reports whether no repair can make the object whole: every provider has answered, and too little is left.
func (r *Restored) IsHopeless() bool { return r.Lost && !r.Unknown }

// Waits reports whether the object cannot be read now, and may be whole when every provider answers.
func (r *Restored) Waits() bool { return r.Lost && r.Unknown }

// Usable returns the providers that have not failed.
func (s *Store) Usable() placement.Set { return s.healthy() }

// Restore writes the copies or shards that an object lacks into usable providers, and those that are damaged. With verify it reads them all
// first; otherwise it believes the names and sizes of their files. Parts in failed providers, and those that this process may not read, are
// neither good nor damaged. pace is called before each read with the number of its bytes; its error ends Restore, and is returned. So is that of
// a part of which nothing is known, because the node lacks a resource or the provider has too many requests: it may need no repair.
func (s *Store) Restore(o storage.Stored, verify bool, pace func(bytes int) error) (r Restored, err error) {
	paced := func(bytes int) error {
		if err == nil {
			err = pace(bytes)
		}
		return err
	}
	good, bad, unknown, unasked := s.judge(o, verify, paced)
	if r.Good = good; err != nil || unasked != nil {
		return r, cmp.Or(err, unasked)
	}
	usable := s.Usable()
	defer func() { r.Unknown = r.Unknown || unknown || s.Usable() != s.table.All() }()
	damaged, held := bad.Within(usable), good
	held.Join(&damaged)
	if !held.AreEnough() { // what is left of damaged parts may be enough: each may be damaged elsewhere
		r.Lost = true
		return r, nil
	}
	if !held.Scheme.IsSet() && good.Count() == 0 && len(damaged.List()) == 1 { // nothing repairs the only copy
		r.Lost = true
		return r, nil
	}
	r.Written = s.toWrite(o, &good, &damaged, usable)
	if len(r.Written) > 0 {
		r.Errs = s.Repair(o, r.Written, paced)
	}
	if err != nil {
		return r, err
	}
	failed, whole, unread := errors.Join(r.Errs...), good, (*SourceError)(nil)
	for n, part := range r.Written {
		held.Add(part)
		if r.Errs[n] == nil {
			whole.Add(part)
		}
	}
	r.Lost = errors.As(failed, &unread) && !whole.AreEnough() // else it was read, and could not be written
	r.Unknown = r.Lost && isAny(unread, ErrUnavailable, ErrAbsent)
	r.Readable = verify && good.AreEnough() || len(r.Written) > 0 && failed == nil
	r.Lacks = !r.Lost && (failed != nil || held.Count() < s.Wanted(&held))
	return r, nil
}

// toWrite returns the parts that a repair writes: the damaged ones where they are, and the missing ones. What a provider has no room for goes to
// another one that has. If none has, the repair tries the first, which says why it cannot be written.
func (s *Store) toWrite(o storage.Stored, good, damaged *Parts, usable placement.Set) []Part {
	if damaged.Providers() == 0 && good.Count() >= s.Wanted(good) {
		return nil
	}
	room := usable & s.room(partBytes(good.Scheme, o.Size))
	inPlace, held := damaged.Within(room), *good
	held.Join(&inPlace)
	list := inPlace.List()
	add := func(part Part) {
		list = append(list, part)
		held.Add(part)
	}
	for _, part := range s.Missing(o, &held, room) {
		add(part)
	}
	elsewhere := damaged.Within(usable &^ room)
	for _, part := range elsewhere.List() {
		if with := held; held.Count() < s.Wanted(good) {
			if with.Add(part); with.Count() > held.Count() {
				add(part)
			}
		}
	}
	for _, part := range s.Missing(o, &held, usable) {
		add(part)
	}
	return list
}

// judge returns the good copies or shards of an object in usable providers, and the damaged ones. unknown reports that there may be others:
// a provider has failed, or one of its files says nothing. unasked is why a part in a usable provider was not read; nil: each was.
func (s *Store) judge(o storage.Stored, verify bool, pace func(bytes int) error) (good, bad Parts, unknown bool, unasked error) {
	check := func(p Part) error {
		err := s.CheckPart(o, p)
		if err == nil && verify {
			err = s.VerifyPart(o, p, pace)
		}
		return err
	}
	var whole, damaged []Part
	usable := s.Usable()
	unknown = usable != s.table.All()
	scheme := s.Survey(o, usable, check, func(p Part, err error) {
		unknown = unknown || s.providers[p.Provider].away(err) != nil
		switch {
		case err == nil:
			whole = append(whole, p)
		case IsShortage(err), errors.Is(err, provider.ErrBusy):
			unasked = err
		case !errors.Is(err, os.ErrPermission):
			damaged = append(damaged, p)
		}
	})
	return s.NewParts(scheme, whole...), s.NewParts(scheme, damaged...), unknown, unasked
}
