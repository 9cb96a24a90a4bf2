// Package recall reads from a journal which requests it has, and where: the input of a history's
// certificate.
package recall

import (
	"macronode/core/record"
	"macronode/core/types"
)

// A Memory is the result of reading a journal.
type Memory struct {
	Entries []Entry // in the order of the journal

	frames map[types.LSN]frame
	moved  map[movement]types.Position
}

// An Entry is a record with an idempotency key, or the header of a batch, or the expiry of a
// hold.
type Entry struct {
	Place  types.Position
	Tenant types.Tenant
	Plane  types.Plane
	Key    string
	Asked  types.RequestHash
	Lapsed types.TxID // the expired hold; otherwise zero
}

// frame is what answers have of a frame.
type frame struct {
	journal types.JournalID
	at      types.Time
}

type movement struct {
	tenant types.Tenant
	seq    types.Seq
}

// New returns an empty Memory.
func New() *Memory {
	return &Memory{frames: map[types.LSN]frame{}, moved: map[movement]types.Position{}}
}

// Time returns the time of a frame.
func (m *Memory) Time(lsn types.LSN) types.Time { return m.frames[lsn].at }

// Journal returns the journal that a frame was written to: a restore begins another.
func (m *Memory) Journal(lsn types.LSN) types.JournalID { return m.frames[lsn].journal }

// Seen returns the position of the movement that a read saw. A missing one is after all others.
func (m *Memory) Seen(t types.Tenant, s types.Seq) types.Position {
	if s == 0 {
		return types.Position{}
	}
	if at, ok := m.moved[movement{t, s}]; ok {
		return at
	}
	return types.Position{LSN: types.MaxLSN}
}

// Frame reads the next frame.
func (m *Memory) Frame(s *record.Sealed) error {
	h, rest, err := record.Open(s.Body)
	if err != nil {
		return err
	}
	m.frames[s.LSN] = frame{s.Journal, h.At}
	items := uint16(0) // items of the batch that are still to come
	var r record.Record
	for index := range h.Count {
		if rest, err = record.Next(rest, &r); err != nil {
			return err
		}
		e := Entry{Place: types.Position{LSN: s.LSN, Index: index}, Tenant: r.Tenant, Plane: r.Kind.Plane()}
		if r.IsMovement() {
			m.moved[movement{r.Tenant, r.Seq}] = e.Place
		}
		switch {
		case r.Kind == record.HoldExpired:
			e.Lapsed = r.Hold
		case !r.IsOutcome():
			continue
		case items > 0:
			items--
			continue
		case r.Kind == record.Batched && r.Problem == 0:
			items = r.Items
		}
		if r.IsOutcome() {
			e.Key, e.Asked = string(r.Key.Text), r.Hash
		}
		m.Entries = append(m.Entries, e)
	}
	return nil
}
