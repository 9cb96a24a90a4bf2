// Package state is all that outlives the process: the fold of the journal. The
// node decides on one, the follower answers from another, recovery builds both.
package state

import (
	"errors"
	"fmt"

	"macronode/core/idem"
	"macronode/core/keyring"
	"macronode/core/ledger"
	"macronode/core/record"
	"macronode/core/words"
)

// Why a frame cannot be folded.
var (
	ErrOrder = errors.New("state: a frame out of order")
	ErrRoom  = errors.New("state: more than the limits have room for") // the journal was written with larger ones
)

// Limits are how much room a state takes.
type Limits struct {
	Ledger ledger.Limits
	Idem   idem.Limits
	Keys   int // API keys
}

// State changes by Open and Apply alone.
type State struct {
	LSN     words.LSN
	At      words.Time // of that frame
	Journal words.JournalID
	Boots   uint64
	Ledger  ledger.Ledger
	Idem    idem.Window
	Keys    keyring.Ring

	rec record.Record // of the fold at hand: it would be an allocation a frame
}

// New is what there is before the first frame.
func New(l Limits, seed words.Hash64) State {
	return State{Ledger: ledger.New(l.Ledger, seed), Idem: idem.New(l.Idem, seed), Keys: keyring.New(l.Keys, seed)}
}

// Bytes is the memory that New takes, all of it: a state never grows.
func Bytes(l Limits) int64 {
	return ledger.Bytes(l.Ledger) + idem.Bytes(l.Idem) + keyring.Bytes(l.Keys)
}

// Open begins the next frame: one without records still moves the time.
func (s *State) Open(lsn words.LSN, at words.Time) {
	words.Assert(lsn == s.LSN+1 && at >= s.At, "state: a frame out of order")
	s.LSN, s.At = lsn, at
}

// Apply makes the index-th record of the open frame so. Its names are identified.
func (s *State) Apply(index uint16, r *record.Record) {
	switch r.Kind {
	case record.Booted:
		s.Boots++
		s.Journal = r.Journal
	case record.Restored:
		s.Journal = r.Journal
	case record.Forgot:
		s.Idem.Forget(r.Upto)
	case record.KeyMade:
		s.Keys.Add(r.Grant)
	case record.Refused:
		s.remember(index, r)
	case record.Moved:
		s.remember(index, r)
		s.Ledger.Apply(s.At, r)
	}
}

func (s *State) remember(index uint16, r *record.Record) {
	place := words.Place{LSN: s.LSN, Index: index}
	s.Idem.Remember(idem.Key{Tenant: r.Tenant, Name: r.Key.ID}, idem.Seen{Asked: r.Asked, Place: place, At: s.At})
}

// Fold is Open and Apply of a whole body, as it was read: all of it, or an error and
// nothing. But for ErrRoom: a state that is too small is of no use from there on. Each,
// if not nil, sees every record before it is applied.
func (s *State) Fold(body []byte, each func(words.Place, *record.Record)) error {
	h, rest, err := record.Whole(body)
	if err != nil {
		return err
	}
	if h.LSN != s.LSN+1 || h.At < s.At {
		return fmt.Errorf("%w: %v at %d after %v at %d", ErrOrder, h.LSN, h.At, s.LSN, s.At)
	}
	s.Open(h.LSN, h.At)
	r := &s.rec
	for i := range h.Count {
		rest, err = record.Next(rest, r)
		words.Assert(err == nil, "state: a whole frame that cannot be read")
		r.Identify()
		place := words.Place{LSN: h.LSN, Index: i}
		if !s.fits(r) {
			return fmt.Errorf("%w: %v at %v", ErrRoom, r.Kind, place)
		}
		if each != nil {
			each(place, r)
		}
		s.Apply(i, r)
	}
	return nil
}

// fits reports that there is a row for all that r needs.
func (s *State) fits(r *record.Record) bool {
	switch r.Kind {
	case record.KeyMade:
		return s.Keys.Admit() == nil
	case record.Refused:
		return s.Idem.Fits(r.Tenant)
	case record.Moved:
		return s.Idem.Fits(r.Tenant) && s.Ledger.Fits(r)
	default:
		return true
	}
}

// Hash identifies all of it.
func (s *State) Hash() words.Hash64 {
	h := words.Hash64(0).Mix(uint64(s.LSN)).Mix(uint64(s.At)).Mix(uint64(s.Journal)).Mix(s.Boots)
	return h.Mix(uint64(s.Ledger.Hash())).Mix(uint64(s.Idem.Hash())).Mix(uint64(s.Keys.Hash()))
}

// CopyTo overwrites dst, reusing its memory.
func (s *State) CopyTo(dst *State) {
	dst.LSN, dst.At, dst.Journal, dst.Boots = s.LSN, s.At, s.Journal, s.Boots
	s.Ledger.CopyTo(&dst.Ledger)
	s.Idem.CopyTo(&dst.Idem)
	s.Keys.CopyTo(&dst.Keys)
}

// Check returns the invariants that do not hold.
func (s *State) Check() error {
	return errors.Join(s.Ledger.Check(), s.Idem.Check(), s.Keys.Check())
}
