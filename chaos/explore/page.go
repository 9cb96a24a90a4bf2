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

// A page is a frame with all earlier ones: a journal is its last page. The worlds of a scope
// share pages, so a world is small, a page is checked once, and equal journals have the same
// page.
type page struct {
	before   *page // nil: of an empty journal
	children []*page
	lsn      types.LSN
	at       types.Time
	body     []byte
	hash     types.Hash64 // of all bytes up to here
	state    types.Hash64 // durable state of the node that wrote it
	root     types.Root
	journal  types.JournalID
	books    books // after it
	outcome  int   // index of the record with a key's outcome; -1: none
	of       *wish
	forgot   types.LSN // keys evicted by this page
	gone     types.LSN // and by all up to it
	lapsed   bool
	records  uint16
	bad      error
}

// id returns the position of the outcome.
func (k kept) id() types.TxID {
	return types.NewTxID(k.page.journal, types.Position{LSN: k.page.lsn, Index: k.index})
}

// upto returns the page with an LSN, p or an earlier one; nil if there is none.
func (p *page) upto(lsn types.LSN) *page {
	for ; p != nil && p.lsn > lsn; p = p.before {
	}
	if p == nil || p.lsn != lsn {
		return nil
	}
	return p
}

// has reports whether one is p or before it.
func (p *page) has(one *page) bool { return p.upto(one.lsn) == one }

// next returns the page after p with a body, and checks it if it is new. If the same journal was
// written before, the node's state must be the same.
func (h *shared) next(p *page, body []byte, lsn types.LSN, state types.Hash64) *page {
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

// judge decodes a page independently, and compares each record with the books.
func (h *shared) judge(p *page) error {
	head, rest, err := record.OpenWhole(p.body)
	switch {
	case err != nil:
		return fmt.Errorf("frame %v: %w", p.lsn, err)
	case head.LSN != p.lsn || p.lsn != p.before.lsn+1:
		return fmt.Errorf("frame order: %v has LSN %v, after %v", p.lsn, head.LSN, p.before.lsn)
	case head.At < p.before.at:
		return fmt.Errorf("time goes back: %d after %d at %v", head.At, p.before.at, p.lsn)
	}
	p.at, p.records = head.At, head.Count
	var items []event.Item // items that are still to come
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
		return fmt.Errorf("the model: %d items of a batch are missing", len(items))
	}
	return nil
}

// item compares an item of a batch with the request and the books.
func (h *shared) item(p *page, index uint16, r *record.Record, asked *event.Item) error {
	want := p.books.decide(p.at, r.Tenant, asked)
	switch {
	case want != r.Problem || (want == event.None) != (r.Kind != record.Rejected):
		return fmt.Errorf("the model: an item of %v is %q, want %q", p.of, r.Problem.Code(), want.Code())
	case want != event.None:
		return nil
	}
	return p.books.apply(p, index, r, asked)
}

// keyed compares the outcome of a key with the request and the books.
func (h *shared) keyed(p *page, index uint16, r *record.Record) error {
	if p.outcome >= 0 {
		return fmt.Errorf("one step: a second outcome")
	}
	for _, one := range h.wishes {
		if bytes.Equal(one.r.Key.Text, r.Key.Text) && one.r.Hash == r.Hash && one.r.Tenant == r.Tenant {
			p.of = one
		}
	}
	if p.of == nil {
		return fmt.Errorf("no request: key %s", r.Key.Text)
	}
	k := &p.books.keys[p.of.key]
	if k.page != nil && p.at < k.page.at.Add(h.scope.ttl) {
		return fmt.Errorf("one outcome: key %s has one at %v, in its time", r.Key.Text, k.page.lsn)
	}
	v := p.books.expects(p.at, &p.of.r)
	want := v.why
	batch := r.Kind == record.Batched
	if want != r.Problem || (want == event.None) == (r.Kind == record.Rejected) && !batch || batch && v.item > 0 && r.Items+1 != v.item {
		return fmt.Errorf("the model: %v is %q, want %q", p.of, r.Problem.Code(), want.Code())
	}
	if want != event.None && !stays(want) {
		return fmt.Errorf("the model: %v has a stored rejection: %q", p.of, want.Code())
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

// stays reports whether a problem is stored, so that a retry gets it too.
func stays(p event.Problem) bool {
	switch p {
	case event.AmountLimitExceeded, event.InsufficientFunds, event.NonceUsed, event.HoldNotActive, event.NotBeneficiary, event.HoldAmountExceeded, event.RefUsed:
		return true
	default:
		return false
	}
}

// sealed returns a page in the form for rendering.
func (h *shared) sealed(p *page) *record.Sealed {
	return &record.Sealed{Journal: p.journal, LSN: p.lsn, Body: p.body, Prev: p.before.root, Root: p.root}
}
