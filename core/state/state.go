// Package state is all that outlives the process: the fold of the journal. The
// node decides on one, the follower answers from another, recovery builds both.
package state

import (
	"errors"
	"fmt"

	"macronode/core/access"
	"macronode/core/event"
	"macronode/core/idempotency"
	"macronode/core/record"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

// Why a frame cannot be folded.
var (
	ErrOrder = errors.New("state: a frame out of order")
	ErrRoom  = errors.New("state: more than the limits have room for, or more than can be so") // the journal was written with larger ones
)

// Limits are how much room a state takes.
type Limits struct {
	Ledger      ledger.Limits
	Idempotency idempotency.Limits
	Keys        int // API keys
}

// State changes by Open and Apply alone.
type State struct {
	LSN         types.LSN
	At          types.Time // of that frame
	Journal     types.JournalID
	Starts      uint64
	Ledger      ledger.Ledger
	Idempotency idempotency.Window
	Keys        access.Keys

	batch bool          // the open frame has a batch: what follows are its items
	rec   record.Record // of the fold at hand: it would be an allocation a frame
}

// New is what there is before the first frame.
func New(l Limits, seed types.Hash64) State {
	return State{Ledger: ledger.New(l.Ledger, seed), Idempotency: idempotency.New(l.Idempotency, seed), Keys: access.New(l.Keys, seed)}
}

// Bytes is the memory that New takes, all of it: a state never grows.
func Bytes(l Limits) int64 {
	return ledger.Bytes(l.Ledger) + idempotency.Bytes(l.Idempotency) + access.Bytes(l.Keys)
}

// Open begins the next frame: one without records still moves the time.
func (s *State) Open(lsn types.LSN, at types.Time) {
	types.Assert(lsn == s.LSN+1 && at >= s.At, "state: a frame out of order")
	s.LSN, s.At, s.batch = lsn, at, false
}

// Apply makes the index-th record of the open frame so. Its names are identified.
func (s *State) Apply(index uint16, r *record.Record) {
	id := types.NewTxID(s.Journal, types.Position{LSN: s.LSN, Index: index})
	switch r.Kind {
	case record.Started:
		s.Starts++
		s.Journal = r.Journal
	case record.Restored:
		s.Journal = r.Journal
	case record.KeysForgotten:
		s.Idempotency.Forget(r.Upto)
	case record.BootstrapKeyCreated, record.KeyCreated:
		s.Keys.Add(*r.APIKey)
	case record.KeyRevoked:
		s.Keys.Revoke(r.APIKey.ID)
	case record.AllKeysRevoked:
		s.Keys.RevokeAll()
	default:
		s.rememberKeys(id, r)
		if r.IsMovement() {
			s.Ledger.Apply(s.At, id, r)
		}
	}
}

// rememberKeys holds what became of a key, once for all of a batch, and who has a ref.
func (s *State) rememberKeys(id types.TxID, r *record.Record) {
	if r.IsOutcome() && !s.batch {
		s.Idempotency.Remember(idempotency.Key{Tenant: r.Tenant, Name: r.Key.ID}, event.PriorOutcome{Hash: r.Hash, ID: id, At: s.At})
		s.batch = r.Kind == record.Batched
	}
	if len(r.Ref.Text) > 0 {
		s.Idempotency.Remember(idempotency.Key{Tenant: r.Tenant, Name: r.Ref.ID, Ref: true}, event.PriorOutcome{ID: id, At: s.At})
	}
}

// Savepoint is where s stands, the open frame's beginning or any record in it; Undo takes
// back all that came since, Keep keeps it.
type Savepoint struct {
	lsn         types.LSN
	at          types.Time
	batch       bool
	idempotency idempotency.Savepoint
}

func (s *State) Savepoint() Savepoint {
	s.Ledger.Savepoint()
	return Savepoint{s.LSN, s.At, s.batch, s.Idempotency.Savepoint()}
}

func (s *State) Undo(m Savepoint) {
	s.LSN, s.At, s.batch = m.lsn, m.at, m.batch
	s.Idempotency.Undo(m.idempotency)
	s.Ledger.Undo()
}

func (s *State) Commit() { s.Ledger.Commit() }

// Fold is Open and Apply of a whole body, as it was read: all of it, or an error and
// nothing. But for ErrRoom: a state that is too small is of no use from there on. Each,
// if not nil, sees every record before it is applied.
func (s *State) Fold(body []byte, each func(types.Position, *record.Record)) error {
	h, rest, err := record.OpenWhole(body)
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
		types.Assert(err == nil, "state: a whole frame that cannot be read")
		r.Identify()
		place := types.Position{LSN: h.LSN, Index: i}
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
	if r.IsOutcome() && !s.batch {
		more++
	}
	if len(r.Ref.Text) > 0 {
		more++
	}
	switch {
	case r.Kind == record.KeysForgotten:
		return r.Upto < s.LSN
	case r.Kind == record.BootstrapKeyCreated, r.Kind == record.KeyCreated:
		_, known := s.Keys.Find(r.APIKey.ID)
		return !known && s.Keys.Admit() == nil && !(r.APIKey.Bootstrap && r.Kind == record.KeyCreated)
	case r.Kind == record.KeyRevoked:
		_, known := s.Keys.Find(r.APIKey.ID)
		return known
	case more > 0 && !s.Idempotency.Fits(r.Tenant, more):
		return false
	default:
		return !r.IsMovement() || s.Ledger.Fits(r)
	}
}

// Hash identifies all of it.
func (s *State) Hash() types.Hash64 {
	h := types.Hash64(0).Mix(uint64(s.LSN)).Mix(uint64(s.At)).Mix(uint64(s.Journal)).Mix(s.Starts)
	return h.Mix(uint64(s.Ledger.Hash())).Mix(uint64(s.Idempotency.Hash())).Mix(uint64(s.Keys.Hash()))
}

// CopyTo overwrites dst, reusing its memory.
func (s *State) CopyTo(dst *State) {
	dst.LSN, dst.At, dst.Journal, dst.Starts = s.LSN, s.At, s.Journal, s.Starts
	s.Ledger.CopyTo(&dst.Ledger)
	s.Idempotency.CopyTo(&dst.Idempotency)
	s.Keys.CopyTo(&dst.Keys)
}

// Check returns the invariants that do not hold.
func (s *State) Check() error {
	return errors.Join(s.Ledger.Check(), s.Idempotency.Check(), s.Keys.Check())
}
