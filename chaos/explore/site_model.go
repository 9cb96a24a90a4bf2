package explore

import (
	"encoding/binary"
	"fmt"

	"macronode/core/accounting"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/record"
	"macronode/core/storage"
	"macronode/core/types"
)

const (
	siteObjects = 2
	siteEvents  = 4
	siteHolds   = 4
	siteBucket  = "photos"
	siteJournal = types.JournalID(9)
)

// siteBooks are the model of a journal: what is stored, what was paid, and what was counted.
type siteBooks struct {
	stored         [siteObjects]bool
	funds, revenue uint64
	holds          [siteHolds]siteHold
	opened         uint8
	units          [siteEvents]uint8 // of each counted event
	sealed         uint64            // units of all slices
	metered        uint64            // units of the requests that the node has metered
	line           struct{ units, paid uint64 }
}

// A siteHold is a reservation.
type siteHold struct {
	id     types.TxID // zero before its record is read
	until  types.Time
	amount uint64
	open   bool
}

func siteAddress(object int) storage.Address { return storage.Address{byte(object + 1)} }

// available returns what the payer may spend at a time.
func (b *siteBooks) available(at types.Time) uint64 {
	left := b.funds
	for _, p := range b.holds {
		if p.open && p.until > at {
			left -= p.amount
		}
	}
	return left
}

// active returns an open hold that has not expired; nil if there is none.
func (b *siteBooks) active(id types.TxID, at types.Time) *siteHold {
	for i := range b.holds {
		if p := &b.holds[i]; p.open && p.id == id && p.until > at {
			return p
		}
	}
	return nil
}

func (b *siteBooks) objects() (n uint64) {
	for _, held := range b.stored {
		if held {
			n++
		}
	}
	return n
}

// used returns the units of all counted events.
func (b *siteBooks) used() (n uint64) {
	for _, units := range b.units {
		n += uint64(units)
	}
	return n + b.metered
}

// decide returns the problem of a call, and whether it changes anything: then a frame has its outcome.
func (b *siteBooks) decide(h *siteShared, at types.Time, u *user, c call) (problem event.Problem, changes bool) {
	p := &h.plan
	held := &b.stored[c.object]
	switch c.kind {
	case callPut:
		switch {
		case *held:
			return event.None, false
		case p.price > 0:
			return event.PaymentRequired, false
		case b.objects() >= p.quota:
			return event.QuotaExceeded, false
		}
		*held = true
	case callDelete:
		if !*held {
			return event.NotFound, false
		}
		*held = false
	case callReserve:
		if b.available(at) < p.price {
			return event.PaymentRequired, false
		}
		b.holds[b.opened] = siteHold{until: at.Add(siteHoldTTL), amount: p.price, open: true}
		b.opened++
	case callPaid:
		hold := b.active(u.hold, at)
		switch {
		case !*held && b.objects() >= p.quota:
			return event.QuotaExceeded, false
		case hold == nil:
			return event.PaymentExpired, false
		}
		if hold.open = false; *held {
			h.Saw[siteKept]++
			return event.None, true
		}
		*held = true
		b.funds -= p.price
		b.revenue += p.price
	case callCancel:
		hold := b.active(u.hold, at)
		if hold == nil {
			return event.HoldNotActive, false
		}
		hold.open = false
	case callReport, callPrepaid:
		return b.count(p, c, at)
	case callMetered:
		return event.None, b.meter(h, c, at)
	case callIssue:
		b.funds += c.units()
	}
	return event.None, true
}

// units returns the units of all events of a call.
func (c call) units() (n uint64) {
	for _, e := range c.events {
		n += uint64(e.units)
	}
	return n
}

// meter records requests that were served, and pays what there is.
func (b *siteBooks) meter(h *siteShared, c call, at types.Time) (changes bool) {
	owed := b.line.units*h.plan.unit - b.line.paid
	b.metered += c.units()
	b.line.units += c.units()
	due := b.line.units*h.plan.unit - b.line.paid
	pays := min(due, b.available(at))
	b.pay(pays)
	if pays < due {
		h.Saw[siteOwes]++
	}
	if owed > 0 && pays >= owed {
		h.Saw[siteSettled]++
	}
	return c.units() > 0 || pays > 0
}

// pay pays a line.
func (b *siteBooks) pay(amount uint64) {
	b.funds -= amount
	b.revenue += amount
	b.line.paid += amount
}

// count counts events, and takes their price.
func (b *siteBooks) count(p *SitePlan, c call, at types.Time) (problem event.Problem, changes bool) {
	was := *b
	fresh := uint64(0)
	for _, e := range c.events {
		if n := &b.units[e.id]; *n == 0 {
			*n = e.units
			fresh += uint64(e.units)
		} else if *n != e.units {
			*b = was
			return event.EventConflict, false
		}
	}
	if c.kind == callPrepaid && b.units != was.units {
		b.line.units += fresh
		cost := b.line.units*p.unit - b.line.paid // of a line, arrears as well
		if b.available(at) < cost {
			*b = was
			return event.PrepaidExceeded, false
		}
		b.pay(cost)
	}
	return event.None, b.units != was.units
}

// read brings to the model what a frame alone can tell: the ID of a hold, the expiry of holds, and slices.
func (h *siteShared) read(body []byte, b *siteBooks) error {
	head, rest, err := record.OpenWhole(body)
	if err != nil {
		return err
	}
	for i := range head.Count {
		var r record.Record
		rest, _ = record.Next(rest, &r)
		if r.Kind == record.HoldOpened && b.opened > 0 {
			b.holds[b.opened-1].id = types.NewTxID(siteJournal, types.Position{LSN: head.LSN, Index: i})
		}
		if r.Kind == record.HoldExpired {
			p := b.hold(r.Hold)
			if p == nil || p.until > head.At {
				return fmt.Errorf("P2: %v ends a hold that is not over", head.LSN)
			}
			p.open = false
			h.Saw[siteExpired]++
		}
		s, ok := accounting.ReadSlice(&r)
		if !ok {
			continue
		}
		h.Saw[siteSealed]++
		if s.Kind.IsLate() {
			h.Saw[siteCorrected]++
		}
		for _, row := range s.Rows {
			b.sealed += row.Value
		}
	}
	return nil
}

// hold returns an open hold.
func (b *siteBooks) hold(id types.TxID) *siteHold {
	for i := range b.holds {
		if p := &b.holds[i]; p.open && p.id == id {
			return p
		}
	}
	return nil
}

// compare holds the folded state of an entry against its model.
func (h *siteShared) compare(e *entry) {
	if h.fold(e); h.err != nil {
		return
	}
	b, at := &e.books, h.view.At
	p := h.view.Plane(types.PlaneStorage).(*storage.Plane)
	bucket := storage.Bucket(siteBucket)
	for i, want := range b.stored {
		if p.Holds(boss.Tenant, bucket.ID, siteAddress(i)) != want {
			h.fail("P2: after %v object %d is stored: %v", e.lsn, i, !want)
		}
	}
	for _, of := range [...]types.NameHash{{}, bucket.ID} {
		if got, want := p.Usage(boss.Tenant, of), (storage.Usage{Bytes: b.objects() * siteSize, Objects: b.objects()}); got != want {
			h.fail("P2: after %v the quota has %v, want %v", e.lsn, got, want)
		}
	}
	for _, c := range [...]struct {
		account         string
		total, reserved uint64
	}{{sitePayer, b.funds, b.funds - b.available(at)}, {siteRevenue, b.revenue, 0}} {
		total, reserved, _ := h.view.Wallet.Balance(at, boss.Tenant, digest.Name([]byte(c.account)), digest.Name([]byte(siteAsset)))
		if total != types.MinorUnits(c.total) || reserved != types.MinorUnits(c.reserved) {
			h.fail("P2: after %v %s has %v, %v of it held; want %d, %d", e.lsn, c.account, total, reserved, c.total, c.reserved)
		}
	}
	line, _ := h.view.Plane(types.PlaneAccounting).(*accounting.Plane).Line(accounting.LineKey{Tenant: boss.Tenant, Price: flow.LineID(&h.prices[0]), Month: accounting.MonthOf(begin).From})
	if want := (accounting.Line{Units: types.MinorUnits(b.line.units), Paid: types.MinorUnits(b.line.paid), Cost: types.MinorUnits(b.line.units * h.plan.unit)}); line != want {
		h.fail("P2: after %v the line is %+v, want %+v", e.lsn, line, want)
	}
	open := uint64(0)
	h.view.Plane(types.PlaneAccounting).(*accounting.Plane).Open(boss.Tenant, func(r accounting.OpenRow) bool {
		open += r.Value
		return true
	})
	if open+b.sealed != b.used() {
		h.fail("P4: after %v %d units are open and %d sealed, %d are counted", e.lsn, open, b.sealed, b.used())
	}
}

// mixBytes mixes a frame into the hash of a journal.
func mixBytes(h types.Hash64, body []byte) types.Hash64 {
	h = h.Mix(uint64(len(body)))
	for len(body) > 0 {
		var raw [8]byte
		body = body[copy(raw[:], body):]
		h = h.Mix(binary.LittleEndian.Uint64(raw[:]))
	}
	return h
}
