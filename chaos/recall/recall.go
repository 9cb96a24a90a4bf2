// Package recall reads out of a journal who asked for what, and where it stands: what a
// history is certified by.
package recall

import (
	"macronode/core/record"
	"macronode/core/types"
)

// A Memory is what a journal has of all that was asked.
type Memory struct {
	Journal types.JournalID
	Entries []Entry // in the journal's order

	times map[types.LSN]types.Time
	moved map[movement]types.Position
}

// An Entry is a record that an idempotency key asked for, a batch's for all of it; or the
// end of a hold, which nobody asked for.
type Entry struct {
	Place  types.Position
	Tenant types.Tenant
	Key    string
	Asked  types.RequestHash
	Lapsed types.TxID // the hold that is over; else all zeros
}

type movement struct {
	tenant types.Tenant
	seq    types.Seq
}

// New has read nothing.
func New() *Memory {
	return &Memory{times: map[types.LSN]types.Time{}, moved: map[movement]types.Position{}}
}

// Time is when a frame was begun.
func (m *Memory) Time(lsn types.LSN) types.Time { return m.times[lsn] }

// Seen is where the movement stands that a read says it saw. One that is not there stands
// behind all others.
func (m *Memory) Seen(t types.Tenant, s types.Seq) types.Position {
	if s == 0 {
		return types.Position{}
	}
	if at, ok := m.moved[movement{t, s}]; ok {
		return at
	}
	return types.Position{LSN: types.MaxLSN}
}

// Frame reads the next one.
func (m *Memory) Frame(s *record.Sealed) error {
	h, rest, err := record.Open(s.Body)
	if err != nil {
		return err
	}
	m.Journal, m.times[s.LSN] = s.Journal, h.At
	items := uint16(0) // of the batch, still to come
	var r record.Record
	for index := range h.Count {
		if rest, err = record.Next(rest, &r); err != nil {
			return err
		}
		e := Entry{Place: types.Position{LSN: s.LSN, Index: index}, Tenant: r.Tenant}
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
