package explore

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// A page is a frame with all that came before it: a journal is its last page. The
// worlds of a scope share them, so that a world is small, what a page says is judged
// once, and two worlds that wrote the same have the same page.
type page struct {
	before   *page // nil: of an empty journal
	children []*page
	lsn      types.LSN
	at       types.Time
	body     []byte
	hash     types.Hash64 // of all bytes up to here
	state    types.Hash64 // what outlives the process, as the node that wrote it had it
	root     types.Root
	journal  types.JournalID
	books    books // after it
	outcome  int   // the index of the record that a key keeps; -1: there is none
	of       *wish
	forgot   types.LSN // keys that left, by this page
	gone     types.LSN // and by all up to it
	lapsed   bool
	records  uint16
	bad      error
}

// id is the place of the outcome.
func (k kept) id() types.TxID {
	return types.NewTxID(k.page.journal, types.Position{LSN: k.page.lsn, Index: k.index})
}

// upto is the page with an LSN, p or one before it; nil when there is none.
func (p *page) upto(lsn types.LSN) *page {
	for ; p != nil && p.lsn > lsn; p = p.before {
	}
	if p == nil || p.lsn != lsn {
		return nil
	}
	return p
}

// has reports that one is p or before it.
func (p *page) has(one *page) bool { return p.upto(one.lsn) == one }

// next is the page that follows p with a body, and judges it when it is new. That a
// journal was written before tells what the node must have in memory now.
func (h *house) next(p *page, body []byte, lsn types.LSN, state types.Hash64) *page {
	for _, c := range p.children {
		if bytes.Equal(c.body, body) {
			if c.state != state {
				h.fail("two states: after the same journal up to %v the node has %x, and had %x", lsn, state, c.state)
			}
			return c
		}
	}
	c := &page{before: p, lsn: lsn, body: bytes.Clone(body), state: state, books: p.books, gone: p.gone, journal: p.journal, outcome: -1}
	c.hash = p.hash.Mix(uint64(len(body)))
	for text := body; len(text) > 0; {
		var raw [8]byte
		text = text[copy(raw[:], text):]
		c.hash = c.hash.Mix(binary.LittleEndian.Uint64(raw[:]))
	}
	c.root, _ = digest.Chain(nil, p.root, c.body)
	c.bad = h.judge(c)
	p.children = append(p.children, c)
	h.pages++
	return c
}

// judge reads a page as a stranger would, and holds each record against the books.
func (h *house) judge(p *page) error {
	head, rest, err := record.OpenWhole(p.body)
	switch {
	case err != nil:
		return fmt.Errorf("frame %v: %w", p.lsn, err)
	case head.LSN != p.lsn || p.lsn != p.before.lsn+1:
		return fmt.Errorf("frame order: %v says it is %v, after %v", p.lsn, head.LSN, p.before.lsn)
	case head.At < p.before.at:
		return fmt.Errorf("time goes back: %d after %d at %v", head.At, p.before.at, p.lsn)
	}
	p.at, p.records = head.At, head.Count
	var items []event.Item // of a batch, that are still to come
	for i := range head.Count {
		var r record.Record
		rest, _ = record.Next(rest, &r)
		switch {
		case r.Kind == record.Started:
			p.journal = r.Journal
		case r.Kind == record.KeysForgotten:
			p.forgot, p.gone = r.Upto, r.Upto
		case r.Kind == record.HoldExpired:
			p.lapsed = true
			err = p.books.lapse(p.at, &r)
		case r.IsOutcome() && len(items) > 0:
			err = h.item(p, i, &r, &items[0])
			items = items[1:]
		case r.IsOutcome():
			if err = h.keyed(p, i, &r); r.Kind == record.Batched && r.Problem == event.None {
				items = p.of.r.Items
			}
		}
		if err != nil {
			return fmt.Errorf("%w: %v at %v", err, r.Kind, types.Position{LSN: p.lsn, Index: i})
		}
	}
	if len(items) > 0 {
		return fmt.Errorf("the twin: %d items of a batch are not there", len(items))
	}
	return nil
}

// item holds one of a batch against what was asked, and what the books say.
func (h *house) item(p *page, index uint16, r *record.Record, asked *event.Item) error {
	want := p.books.decide(p.at, r.Tenant, asked)
	switch {
	case want != r.Problem || (want == event.None) != (r.Kind != record.Rejected):
		return fmt.Errorf("the twin: an item of %v is %q, want %q", p.of, r.Problem.Code(), want.Code())
	case want != event.None:
		return nil
	}
	return p.books.apply(p, index, r, asked)
}

// keyed holds the outcome of a key against what was asked, and what the books say.
func (h *house) keyed(p *page, index uint16, r *record.Record) error {
	if p.outcome >= 0 {
		return fmt.Errorf("one step: a second outcome")
	}
	for _, one := range h.wishes {
		if bytes.Equal(one.r.Key.Text, r.Key.Text) && one.r.Hash == r.Hash && one.r.Tenant == r.Tenant {
			p.of = one
		}
	}
	if p.of == nil {
		return fmt.Errorf("nobody asked: key %s", r.Key.Text)
	}
	k := &p.books.keys[p.of.key]
	if k.page != nil && p.at < k.page.at.Add(h.scope.ttl) {
		return fmt.Errorf("one outcome: key %s has one at %v, in its time", r.Key.Text, k.page.lsn)
	}
	v := p.books.expects(p.at, &p.of.r)
	want := v.why
	batch := r.Kind == record.Batched
	if want != r.Problem || (want == event.None) == (r.Kind == record.Rejected) && !batch || batch && v.item > 0 && r.Items+1 != v.item {
		return fmt.Errorf("the twin: %v is %q, want %q", p.of, r.Problem.Code(), want.Code())
	}
	if want != event.None && !stays(want) {
		return fmt.Errorf("the twin: %v is refused for ever: %q", p.of, want.Code())
	}
	p.outcome = int(index)
	k.page, k.index = p, index
	if k.problem, k.item = want, v.item; want == event.None && !batch {
		if err := p.books.apply(p, index, r, &p.of.r.Item); err != nil {
			return err
		}
	}
	_, _, owner, err := receipt.Render(nil, h.sealed(p), index)
	if err != nil || owner != p.of.r.Tenant {
		return fmt.Errorf("no answer: of tenant %d: %w", owner, err)
	}
	return nil
}

// stays reports that a key keeps a problem for ever: asked again, it is no other.
func stays(p event.Problem) bool {
	switch p {
	case event.AmountLimitExceeded, event.InsufficientFunds, event.NonceUsed, event.HoldNotActive, event.NotBeneficiary, event.HoldAmountExceeded, event.RefUsed:
		return true
	default:
		return false
	}
}

// sealed is a page as the journal gives it to who renders answers.
func (h *house) sealed(p *page) *record.Sealed {
	return &record.Sealed{Journal: p.journal, LSN: p.lsn, Body: p.body, Prev: p.before.root, Root: p.root}
}
