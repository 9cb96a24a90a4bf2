// Package state is the durable state: the fold of the journal by all planes. The node decides on one
// State, the read model answers from another, and recovery builds both.
package state

import (
	"errors"
	"fmt"

	"macronode/core/access"
	"macronode/core/command"
	"macronode/core/idempotency"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/types"
	"macronode/core/wallet"
	"macronode/core/wallet/ledger"
	"macronode/core/wallet/receipt"
)

// Why a frame cannot be folded.
var (
	ErrOrder = errors.New("state: frame out of order")
	ErrRoom  = errors.New("state: the limits are too small, or the record contradicts those before it")
	ErrPlane = errors.New("state: record of a plane that this program does not have")
)

// Limits are the planes of a state and their limits.
type Limits struct {
	Ledger      ledger.Limits
	Idempotency idempotency.Limits
	Keys        int          // API keys
	Planes      []plane.Spec // beside the wallet, in the order of their IDs
}

// planes lists the planes of l. This is the only list of planes in core.
func (l *Limits) planes(yield func(plane.Spec) bool) {
	all := append([]plane.Spec{{ID: types.PlaneWallet, Bytes: ledger.Bytes(l.Ledger),
		New: func(seed types.Hash64) plane.Plane { return wallet.New(l.Ledger, seed) }}}, l.Planes...)
	for _, p := range all {
		if !yield(p) {
			return
		}
	}
}

// State changes only by Open, Apply, Undo and Load. A copy by assignment shares its planes.
type State struct {
	LSN         types.LSN
	At          types.Time // of that frame
	Journal     types.JournalID
	Starts      uint64
	Wallet      *wallet.Wallet // planes[types.PlaneWallet]
	Idempotency idempotency.Window
	Keys        access.Keys

	planes [types.NumPlanes]plane.Plane // nil: not in this program
	batch  bool                         // the open frame has a batch; the following records are its items
	rec    record.Record                // scratch of Fold
}

// New returns the state before the first frame.
func New(l Limits, seed types.Hash64) State {
	s := State{Idempotency: idempotency.New(l.Idempotency, seed), Keys: access.New(l.Keys, seed)}
	for p := range l.planes {
		types.Assert(p.ID > types.PlaneNode && s.planes[p.ID] == nil, "state: two planes with one ID")
		s.planes[p.ID] = p.New(seed)
	}
	s.Wallet = s.planes[types.PlaneWallet].(*wallet.Wallet)
	return s
}

// Bytes returns the memory that New takes: a state never grows.
func Bytes(l Limits) int64 {
	bytes := idempotency.Bytes(l.Idempotency) + access.Bytes(l.Keys)
	for p := range l.planes {
		bytes += p.Bytes
	}
	return bytes
}

// Plane returns the plane with an ID, or nil if this program does not have it.
func (s *State) Plane(id types.Plane) plane.Plane {
	if id >= types.NumPlanes {
		return nil
	}
	return s.planes[id]
}

// Planes yields all planes in the order of their IDs.
func (s *State) Planes(yield func(plane.Plane) bool) {
	for _, p := range s.planes {
		if p != nil && !yield(p) {
			return
		}
	}
}

// Open begins the next frame. A frame without records advances the time.
func (s *State) Open(lsn types.LSN, at types.Time) {
	types.Assert(lsn == s.LSN+1 && at >= s.At, "state: a frame out of order")
	s.LSN, s.At, s.batch = lsn, at, false
}

// Apply applies the index-th record of the open frame. The names of the record are identified.
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
		if r.Changes() {
			s.planes[r.Kind.Plane()].Apply(s.At, id, r)
		}
	}
}

// rememberKeys stores the outcome of an idempotency key, once per batch, and the owner of a ref.
func (s *State) rememberKeys(id types.TxID, r *record.Record) {
	if r.IsOutcome() && !s.batch {
		s.Idempotency.Remember(idempotency.Key{Tenant: r.Tenant, Name: r.Key.ID}, command.PriorOutcome{Hash: r.Hash, ID: id, At: s.At})
		s.batch = r.Kind == record.Batched
	}
	if len(r.Ref.Text) > 0 {
		s.Idempotency.Remember(idempotency.Key{Tenant: r.Tenant, Name: r.Ref.ID, Ref: true}, command.PriorOutcome{ID: id, At: s.At})
	}
	p := s.planes[r.Kind.Plane()]
	for i := range p.Refs(r) {
		ref, content := p.Ref(r, i)
		s.Idempotency.Remember(idempotency.Key{Tenant: r.Tenant, Name: ref, Ref: true}, command.PriorOutcome{Hash: content, ID: id, At: s.At})
	}
}

// A Savepoint is a point in or before the open frame that Undo returns to.
type Savepoint struct {
	lsn         types.LSN
	at          types.Time
	batch       bool
	idempotency idempotency.Savepoint
}

// Savepoint starts noting changes. Undo reverts all changes since m, Commit keeps them.
func (s *State) Savepoint() (m Savepoint) {
	for _, p := range s.planes {
		if p != nil {
			p.Savepoint()
		}
	}
	return Savepoint{s.LSN, s.At, s.batch, s.Idempotency.Savepoint()}
}

func (s *State) Undo(m Savepoint) {
	s.LSN, s.At, s.batch = m.lsn, m.at, m.batch
	s.Idempotency.Undo(m.idempotency)
	for _, p := range s.planes {
		if p != nil {
			p.Undo()
		}
	}
}

func (s *State) Commit() {
	for _, p := range s.planes {
		if p != nil {
			p.Commit()
		}
	}
}

// Fold is Open and Apply for a whole body that was read. If it returns an error, the state is
// unchanged, except for ErrRoom: then the state is too small and unusable. If each is not nil, it
// is called for every record before the record is applied.
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
		if id := r.Kind.Plane(); id != types.PlaneNode && s.planes[id] == nil {
			return fmt.Errorf("%w: %v at %v", ErrPlane, r.Kind, place)
		}
		if of, ok := s.fits(r); !ok {
			return &RoomError{of, fmt.Sprintf("%v at %v", r.Kind, place)}
		}
		if each != nil {
			each(place, r)
		}
		s.Apply(i, r)
	}
	return nil
}

// fits reports whether there is a row for everything that r needs, or the plane without one, as RoomError has it.
func (s *State) fits(r *record.Record) (of types.Plane, ok bool) {
	more := 0
	if r.IsOutcome() && !s.batch {
		more++
	}
	if len(r.Ref.Text) > 0 {
		more++
	}
	if p := s.planes[r.Kind.Plane()]; p != nil {
		more += p.Refs(r)
	}
	switch {
	case r.Kind == record.KeysForgotten:
		return of, r.Upto < s.LSN
	case r.Kind == record.BootstrapKeyCreated, r.Kind == record.KeyCreated:
		_, known := s.Keys.Find(r.APIKey.ID)
		return of, !known && !s.Keys.Full() && !(r.APIKey.Bootstrap && r.Kind == record.KeyCreated)
	case r.Kind == record.KeyRevoked:
		_, known := s.Keys.Find(r.APIKey.ID)
		return of, known
	case more > 0 && !s.Idempotency.Fits(r.Tenant, more):
		return of, false
	default:
		of = r.Kind.Plane()
		return of, !r.Changes() || s.planes[of].Fits(r)
	}
}

// Hash identifies the state.
func (s *State) Hash() types.Hash64 {
	h := types.Hash64(0).Mix(uint64(s.LSN)).Mix(uint64(s.At)).Mix(uint64(s.Journal)).Mix(s.Starts)
	h = h.Mix(uint64(s.Wallet.Hash())).Mix(uint64(s.Idempotency.Hash())).Mix(uint64(s.Keys.Hash()))
	for id, p := range s.planes {
		if p != nil && types.Plane(id) != types.PlaneWallet {
			h = h.Mix(uint64(id)).Mix(uint64(p.Hash()))
		}
	}
	return h
}

// CopyTo overwrites dst, reusing its memory.
func (s *State) CopyTo(dst *State) {
	dst.LSN, dst.At, dst.Journal, dst.Starts = s.LSN, s.At, s.Journal, s.Starts
	for id, p := range s.planes {
		if p != nil {
			dst.planes[id] = p.CopyTo(dst.planes[id])
		}
	}
	dst.Wallet = dst.planes[types.PlaneWallet].(*wallet.Wallet)
	s.Idempotency.CopyTo(&dst.Idempotency)
	s.Keys.CopyTo(&dst.Keys)
}

// Check returns the invariants that do not hold.
func (s *State) Check() error {
	errs := []error{s.Idempotency.Check(), s.Keys.Check()}
	for p := range s.Planes {
		errs = append(errs, p.Check())
	}
	return errors.Join(errs...)
}

// Render appends the answer of the record with an index in a frame: the first answer, every replay
// and every lookup are the same bytes. It returns the HTTP status and the tenant of the answer.
// ErrNoAnswer of core/wallet/receipt reports a record that answers no request. Render does not read
// the state, so it needs no lock.
func (s *State) Render(to []byte, f *record.Sealed, index uint16) (answer []byte, status int, owner types.Tenant, err error) {
	kind, err := record.KindAt(f.Body, index)
	if err != nil {
		return receipt.Render(to, f, index) // Render returns the error
	}
	p := s.planes[kind.Plane()]
	switch {
	case kind.Plane() == types.PlaneNode:
		return to, 0, 0, receipt.ErrNoAnswer
	case p == nil:
		return to, 0, 0, fmt.Errorf("%w: %v at %v", ErrPlane, kind, types.Position{LSN: f.LSN, Index: index})
	}
	return p.Render(to, f, index)
}
