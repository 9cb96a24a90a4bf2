// Package recall reads out of a journal who asked for what, and where it stands: what a
// history is certified by.
package recall

import (
	"macronode/core/record"
	"macronode/core/words"
)

// A Memory is what a journal has of all that was asked.
type Memory struct {
	Journal words.JournalID
	Entries []Entry // in the journal's order

	times map[words.LSN]words.Time
	moved map[movement]words.Place
}

// An Entry is a record that an idempotency key asked for, a batch's for all of it; or the
// end of a hold, which nobody asked for.
type Entry struct {
	Place  words.Place
	Tenant words.Tenant
	Key    string
	Asked  words.Asked
	Lapsed words.TxID // the hold that is over; else all zeros
}

type movement struct {
	tenant words.Tenant
	seq    words.Seq
}

// New has read nothing.
func New() *Memory {
	return &Memory{times: map[words.LSN]words.Time{}, moved: map[movement]words.Place{}}
}

// Time is when a frame was begun.
func (m *Memory) Time(lsn words.LSN) words.Time { return m.times[lsn] }

// Seen is where the movement stands that a read says it saw. One that is not there stands
// behind all others.
func (m *Memory) Seen(t words.Tenant, s words.Seq) words.Place {
	if s == 0 {
		return words.Place{}
	}
	if at, ok := m.moved[movement{t, s}]; ok {
		return at
	}
	return words.Place{LSN: words.MaxLSN}
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
		e := Entry{Place: words.Place{LSN: s.LSN, Index: index}, Tenant: r.Tenant}
		if r.Counted() {
			m.moved[movement{r.Tenant, r.Seq}] = e.Place
		}
		switch {
		case r.Kind == record.Lapsed:
			e.Lapsed = r.Hold
		case !r.Keyed():
			continue
		case items > 0:
			items--
			continue
		case r.Kind == record.Batched && r.Problem == 0:
			items = r.Items
		}
		if r.Keyed() {
			e.Key, e.Asked = string(r.Key.Text), r.Asked
		}
		m.Entries = append(m.Entries, e)
	}
	return nil
}
