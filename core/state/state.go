// Package state is all that outlives the process: the fold of the journal. The
// node decides on one, the follower answers from another, recovery builds both.
package state

import (
	"errors"
	"fmt"

	"macronode/core/event"
	"macronode/core/idem"
	"macronode/core/keyring"
	"macronode/core/ledger"
	"macronode/core/record"
	"macronode/core/words"
)

// Why a frame cannot be folded.
var (
	ErrOrder = errors.New("state: a frame out of order")
	ErrRoom  = errors.New("state: more than the limits have room for, or more than can be so") // the journal was written with larger ones
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

	batch bool          // the open frame has a batch: what follows are its items
	rec   record.Record // of the fold at hand: it would be an allocation a frame
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
	s.LSN, s.At, s.batch = lsn, at, false
}

// Apply makes the index-th record of the open frame so. Its names are identified.
func (s *State) Apply(index uint16, r *record.Record) {
	id := words.NewTxID(s.Journal, words.Place{LSN: s.LSN, Index: index})
	switch r.Kind {
	case record.Booted:
		s.Boots++
		s.Journal = r.Journal
	case record.Restored:
		s.Journal = r.Journal
	case record.Forgot:
		s.Idem.Forget(r.Upto)
	case record.KeyMade, record.Granted:
		s.Keys.Add(*r.Grant)
	case record.Revoked:
		s.Keys.Revoke(r.Grant.ID)
	case record.Disowned:
		s.Keys.Disown()
	default:
		s.remember(id, r)
		if r.Counted() {
			s.Ledger.Apply(s.At, id, r)
		}
	}
}

// remember holds what became of a key, once for all of a batch, and who has a ref.
func (s *State) remember(id words.TxID, r *record.Record) {
	if r.Keyed() && !s.batch {
		s.Idem.Remember(idem.Key{Tenant: r.Tenant, Name: r.Key.ID}, event.Seen{Asked: r.Asked, ID: id, At: s.At})
		s.batch = r.Kind == record.Batched
	}
	if len(r.Ref.Text) > 0 {
		s.Idem.Remember(idem.Key{Tenant: r.Tenant, Name: r.Ref.ID, Ref: true}, event.Seen{ID: id, At: s.At})
	}
}

// Mark is where s stands, the open frame's beginning or any record in it; Undo takes
// back all that came since, Keep keeps it.
type Mark struct {
	lsn   words.LSN
	at    words.Time
	batch bool
	idem  idem.Mark
}

func (s *State) Mark() Mark {
	s.Ledger.Mark()
	return Mark{s.LSN, s.At, s.batch, s.Idem.Mark()}
}

func (s *State) Undo(m Mark) {
	s.LSN, s.At, s.batch = m.lsn, m.at, m.batch
	s.Idem.Undo(m.idem)
	s.Ledger.Undo()
}

func (s *State) Keep() { s.Ledger.Keep() }

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
	more := 0
	if r.Keyed() && !s.batch {
		more++
	}
	if len(r.Ref.Text) > 0 {
		more++
	}
	switch {
	case r.Kind == record.Forgot:
		return r.Upto < s.LSN
	case r.Kind == record.KeyMade, r.Kind == record.Granted:
		_, known := s.Keys.Find(r.Grant.ID)
		return !known && s.Keys.Admit() == nil && !(r.Grant.Boot && r.Kind == record.Granted)
	case r.Kind == record.Revoked:
		_, known := s.Keys.Find(r.Grant.ID)
		return known
	case more > 0 && !s.Idem.Fits(r.Tenant, more):
		return false
	default:
		return !r.Counted() || s.Ledger.Fits(r)
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
