package index

import (
	"bytes"
	"fmt"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// A draft has the rows of frames before they are added to the tail: keys and values, in one
// arena.
type draft struct {
	arena []byte
	rows  []row
	split int // of the current row: the end of its key
	from  int
}

// pos orders rows within their group, if the group has an order: a seq.
type row struct {
	off        uint32
	klen, vlen uint16
	pos        uint64
}

func (d *draft) reset() { d.arena, d.rows, d.from = d.arena[:0], d.rows[:0], 0 }

// key takes the arena with a key at its end, end with the value after it.
func (d *draft) key(b []byte) []byte {
	d.split = len(b)
	return b
}

func (d *draft) end(b []byte, pos uint64) {
	d.rows = append(d.rows, row{uint32(d.from), uint16(d.split - d.from), uint16(len(b) - d.split), pos})
	d.arena, d.from = b, len(b)
}

func (d *draft) at(i int) (key, value []byte) {
	r := &d.rows[i]
	b := d.arena[r.off:]
	return b[:r.klen:r.klen], b[r.klen : r.klen+r.vlen : r.klen+r.vlen]
}

// cut removes all rows but the first ones: the rows of an unreadable frame.
func (d *draft) cut(rows int) {
	d.rows = d.rows[:rows]
	d.from = 0
	if rows > 0 {
		r := d.rows[rows-1]
		d.from = int(r.off) + int(r.klen) + int(r.vlen)
	}
	d.arena = d.arena[:d.from]
}

// find returns the value of a key in the draft.
func (d *draft) find(key []byte) (value []byte, ok bool) {
	for i := range d.rows {
		if k, v := d.at(i); bytes.Equal(k, key) {
			return v, true
		}
	}
	return nil, false
}

// A reader makes the rows of frames. They are a function of the frame, and of the row of an
// expired hold, which the frame does not contain.
type reader struct {
	width uint64 // of the buckets of keys
	eras  eras
	hold  func(types.Tenant, types.TxID) (hold, error)
	views [types.NumPlanes]func(*draft, types.Position, types.Time) // the rows of the records of planes

	rec    record.Record
	batch  bool
	assets [16]assetNames // cache of the last assets: their digests would take half of the time
}

type assetNames struct {
	text             []byte
	id               types.NameHash
	issuance, burned types.Name
}

// frame appends the rows of a frame, and returns its time. The draft keeps no reference to the
// frame.
func (x *reader) frame(s *record.Sealed, d *draft) (types.Time, error) {
	h, rest, err := record.Open(s.Body)
	if err != nil {
		return 0, err
	}
	x.batch = false
	for i := range h.Count {
		if rest, err = record.Next(rest, &x.rec); err != nil {
			return 0, err
		}
		if err := x.record(d, s.Journal, types.Position{LSN: s.LSN, Index: i}, h.At); err != nil {
			return 0, err
		}
	}
	if h.LSN != s.LSN || len(rest) > 0 {
		return 0, record.ErrFrame
	}
	return h.At, nil
}

// record appends the rows of one record.
func (x *reader) record(d *draft, journal types.JournalID, p types.Position, at types.Time) error {
	r := &x.rec
	if r.IsOutcome() && !x.batch { // the items of a batch do not have its key
		s := seen{r.Hash, p, at}
		b := d.key(keyKey(d.arena, uint64(at)/x.width, r.Tenant, digest.Name(r.Key.Text)))
		d.end(s.put(b), 0)
		x.batch = r.Kind == record.Batched
	}
	if len(r.Ref.Text) > 0 {
		d.end(appendPlace(d.key(refKey(d.arena, r.Tenant, digest.Name(r.Ref.Text))), p), 0)
	}
	if rows := x.views[r.Kind.Plane()]; rows != nil {
		rows(d, p, at)
		return nil
	}
	switch {
	case !r.IsMovement():
		return nil
	case len(r.Asset.Text) == 0 && r.Kind != record.HoldExpired && r.Kind != record.FreezeChanged:
		return record.ErrFrame
	}
	c := change{p, at}
	d.end(c.put(d.key(changeKey(d.arena, r.Tenant, r.Seq))), uint64(r.Seq))
	if r.Seq == 1 {
		x.begin(d, r.Tenant, nil)
	}
	e := entry{op: r.Op, place: p, at: at, amount: r.Amount, asset: r.Asset.Text, ref: r.Ref.Text, memo: r.Memo}
	if len(e.ref) > 0 {
		e.sets |= hasRef
	}
	if len(e.memo) > 0 {
		e.sets |= hasMemo
	}
	switch id := types.NewTxID(journal, p); r.Kind {
	case record.Posted:
		x.moved(d, e)
	case record.HoldCaptured:
		x.captured(d, e)
	case record.HoldOpened:
		x.held(d, e, id)
	case record.HoldReleased:
		e.op = event.Release
		x.ended(d, e, end{state: event.HoldReleased, place: p}, digest.Name(r.From.Text))
	case record.HoldExpired:
		return x.lapsed(d, e)
	default: // freezes
		d.end(e.put(d.key(heldKey(d.arena, r.Tenant, digest.Name(r.From.Text), types.NameHash{}, r.Seq))), uint64(r.Seq))
	}
	return nil
}

// moved has two sides: money is issued from a reserved account, and burned to one.
func (x *reader) moved(d *draft, e entry) {
	r := &x.rec
	a := x.asset(r.Asset.Text)
	from, to := r.From, r.To
	switch r.Op {
	case event.Issue:
		from = a.issuance
		to.ID = digest.Name(to.Text)
		if r.FromBalance == r.Amount { // the first issue
			d.end(d.key(assetKey(d.arena, r.Tenant, r.Asset.Text)), 0)
			d.end(d.key(accountKey(d.arena, r.Tenant, from.Text, r.Asset.Text)), 0)
		}
	case event.Burn:
		to = a.burned
		from.ID = digest.Name(from.Text)
	default:
		from.ID, to.ID = digest.Name(from.Text), digest.Name(to.Text)
	}
	x.sides(d, e, from, to, a.id)
}

func (x *reader) sides(d *draft, e entry, from, to types.Name, asset types.NameHash) {
	r := &x.rec
	if r.ToBalance == r.Amount { // it had no balance before
		d.end(d.key(accountKey(d.arena, r.Tenant, to.Text, r.Asset.Text)), 0)
	}
	debit, in := e, e
	debit.sets |= setsBalance
	debit.balance, debit.other = r.FromBalance, to.Text
	if debit.nonce = r.Nonce; debit.nonce > 0 {
		debit.sets |= hasNonce
	}
	x.entry(d, &debit, from.ID, asset)
	in.sets |= setsBalance | credit
	in.balance, in.other = r.ToBalance, from.Text
	x.entry(d, &in, to.ID, asset)
}

func (x *reader) entry(d *draft, e *entry, account, asset types.NameHash) {
	seq := x.rec.Seq
	d.end(e.put(d.key(entryKey(d.arena, x.eras.of(seq), x.rec.Tenant, account, asset, seq))), uint64(seq))
}

// captured makes the rows of a capture: a transfer and the end of the hold.
func (x *reader) captured(d *draft, e entry) {
	r := &x.rec
	from, to := r.From, r.To
	from.ID, to.ID = digest.Name(from.Text), digest.Name(to.Text)
	e.op, e.hold = event.Capture, r.Hold
	e.sets |= hasHold
	x.sides(d, e, from, to, x.asset(r.Asset.Text).id)
	quiet := entry{sets: setsHeld | hidden, op: e.op, place: e.place, at: e.at, held: r.HeldBalance}
	x.quiet(d, &quiet, from.ID, x.asset(r.Asset.Text).id)
	z := end{state: event.HoldCaptured, place: e.place, captured: r.Amount}
	d.end(z.put(d.key(endKey(d.arena, r.Tenant, r.Hold))), 0)
}

func (x *reader) quiet(d *draft, e *entry, account, asset types.NameHash) {
	seq := x.rec.Seq
	d.end(e.put(d.key(heldKey(d.arena, x.rec.Tenant, account, asset, seq))), uint64(seq))
}

func (x *reader) held(d *draft, e entry, id types.TxID) {
	r := &x.rec
	account := digest.Name(r.From.Text)
	e.op, e.hold, e.held, e.other, e.nonce = event.Hold, id, r.HeldBalance, r.To.Text, r.Nonce
	e.sets |= setsHeld | hasHold | hasNonce
	x.quiet(d, &e, account, x.asset(r.Asset.Text).id)
	h := hold{opened: e.at, until: r.ExpiresAt, amount: r.Amount, from: r.From.Text, to: r.To.Text, asset: r.Asset.Text}
	d.end(h.put(d.key(holdKey(d.arena, r.Tenant, id))), 0)
	d.end(d.key(holderKey(d.arena, r.Tenant, account, id)), 0)
	d.end(d.key(holderKey(d.arena, r.Tenant, types.NameHash{}, id)), 0) // all holds of the tenant
}

func (x *reader) ended(d *draft, e entry, z end, account types.NameHash) {
	r := &x.rec
	e.hold, e.held, e.other = r.Hold, r.HeldBalance, r.To.Text
	e.sets |= setsHeld | hasHold
	x.quiet(d, &e, account, x.asset(r.Asset.Text).id)
	d.end(z.put(d.key(endKey(d.arena, r.Tenant, r.Hold))), 0)
}

func (x *reader) lapsed(d *draft, e entry) error {
	r := &x.rec
	h, err := x.hold(r.Tenant, r.Hold)
	if err != nil {
		return fmt.Errorf("find the hold that %v ends: %w", e.place, err)
	}
	r.To.Text, r.Asset.Text = h.to, h.asset
	e.op, e.amount, e.asset = 0, h.amount, h.asset
	x.ended(d, e, end{state: event.HoldExpired, place: e.place}, digest.Name(h.from))
	return nil
}

// asset returns the digests of an asset.
func (x *reader) asset(text []byte) *assetNames {
	at := &x.assets[(len(text)*31+int(text[0])*7+int(text[len(text)-1]))%len(x.assets)]
	if string(at.text) != string(text) {
		at.text = append(at.text[:0], text...)
		at.id = digest.Name(text)
		at.issuance.Text = append(append(at.issuance.Text[:0], types.Issuance...), text...)
		at.burned.Text = append(append(at.burned.Text[:0], types.Burned...), text...)
		at.issuance.ID, at.burned.ID = digest.Name(at.issuance.Text), digest.Name(at.burned.Text)
	}
	return at
}
