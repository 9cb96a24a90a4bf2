package sim

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math/big"
	"time"

	"macronode/chaos/charges"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
	moneymodel "macronode/models/ledger"
)

// Records of prepaid usage, repeated here independently of core.
const (
	recordLineClosed = 5
	recordLines      = 6
	prepaidFlag      = 2
	lineEntry        = 16 + 8 + 3*16
	lineLinger       = 36 * 24 * time.Hour // after the month of a line
)

// A prepaidLines is a record of lines: before the report of events those that they are in, after it those of the request itself.
type prepaidLines struct {
	list   [32]byte // digest of the prices
	lines  map[prepaidLine]prepaidSum
	before bool // it comes before the report of the frame
}

// A prepaidMove is a movement of the money of the prepaid tenant.
type prepaidMove struct {
	moneymodel.Op
	isPayment bool // of the node, for usage
	isLapse   bool
}

func readLine(b []byte) prepaidLine {
	return prepaidLine{types.NameHash(b[:16]), int64(binary.LittleEndian.Uint64(b[16:]))}
}

func readSum(b []byte) *big.Int {
	n := func(at int) *big.Int { return new(big.Int).SetUint64(binary.LittleEndian.Uint64(b[at:])) }
	return new(big.Int).Add(n(0), new(big.Int).Lsh(n(8), 64))
}

// readLines reads a record of lines; false if it is none.
func readLines(b []byte) (l prepaidLines, ok bool) {
	if len(b) < 32+lineEntry || (len(b)-32)%lineEntry != 0 {
		return l, false
	}
	l.list, l.lines = [32]byte(b), map[prepaidLine]prepaidSum{}
	for b = b[32:]; len(b) > 0; b = b[lineEntry:] {
		l.lines[readLine(b)] = prepaidSum{readSum(b[24:]), readSum(b[40:]), readSum(b[56:])}
	}
	return l, true
}

// readMove reads a movement of money; false if r is none.
func readMove(id types.TxID, at types.Time, r *record.Record) (m prepaidMove, ok bool) {
	if r.Kind == record.HoldExpired {
		return prepaidMove{Op: moneymodel.Op{Hold: r.Hold}, isLapse: true}, true
	}
	if !r.IsMovement() {
		return m, false
	}
	m = prepaidMove{Op: moneymodel.Op{At: at, Tenant: r.Tenant, Kind: r.Op.String(), From: string(r.From.Text), To: string(r.To.Text), Asset: string(r.Asset.Text),
		Amount: number(r.Amount), Nonce: r.Nonce, Until: r.ExpiresAt, Hold: r.Hold}, isPayment: bytes.HasPrefix(r.Key.Text, []byte("flow:"))}
	if r.Op == event.Hold {
		m.Hold = id
	}
	return m, true
}

// isPrepaid reports whether all of so many rows of metered usage are prepaid.
func (f *usageFrame) isPrepaid(rows int) bool { return f.prepaidRows == rows }

// stepped checks a step: lines, payments and prepaid usage are recorded as the books say, together, and by nothing else.
func (p *prepaidWorld) stepped(w *World, in event.Event, a *usageAttempt, f *usageFrame) {
	var (
		ask    *prepaidAttempt
		flight *prepaidFlight
	)
	switch in := in.(type) { //nolint:gochecksumtype // the others are no commands
	case *event.Execute:
		t := in.Command.Head().Ticket
		if ask = p.attempts[t]; p.recorder.flight != nil && p.recorder.flight.ticket == t {
			flight = p.recorder.flight
			flight.predict(w, p)
		}
	case *event.Request:
		ask = p.attempts[in.Ticket]
	}
	if f == nil {
		if flight != nil && len(flight.problems) == 0 && flight.isPaying {
			w.note(len(flight.expects.pays) == 0, "prepaid: there is nothing to pay any more")
		}
		return
	}
	before, after := map[prepaidLine]prepaidSum{}, map[prepaidLine]prepaidSum{}
	for _, l := range f.lines {
		if l.before && f.report != nil {
			maps.Copy(before, l.lines)
		} else {
			maps.Copy(after, l.lines)
		}
	}
	pays := p.moves(w, f)
	none := prepaidOutcome{}
	switch {
	case a != nil && f.report != nil:
		p.paysEvents(w, a, f, before, pays)
		if a.counts != nil {
			p.takesEffect(w, a.counts, f, after)
			return
		}
		p.enters(w, f, &none, after, nil)
	case flight != nil:
		flight.records(w, f)
		p.checksList(w, f, flight.list)
		p.enters(w, f, &flight.expects, after, pays)
	case ask != nil && (f.stored || f.moved > 0):
		p.enters(w, f, &none, nil, pays)
		p.checksList(w, f, ask.list)
		p.takesEffect(w, ask, f, after)
	default:
		if p.enters(w, f, &none, after, pays); len(f.metered) > 0 {
			w.fail("prepaid-unasked", "%v records %+v, which nothing has asked for", f.lsn, f.metered)
		}
	}
}

// paysEvents checks the payment of events.
func (p *prepaidWorld) paysEvents(w *World, a *usageAttempt, f *usageFrame, lines map[prepaidLine]prepaidSum, pays map[string]*big.Int) {
	if f.isPaidUsage != (a.list != postpaid) && len(f.usage) > 0 {
		w.fail("prepaid-usage-kind", "%v records events as prepaid: %v; the list is %d", f.lsn, f.isPaidUsage, a.list)
	}
	p.checksList(w, f, a.list)
	p.enters(w, f, &a.expects, lines, pays)
	w.note(len(pays) > 0, "prepaid: events are paid")
	w.note(a.list != postpaid && len(pays) == 0 && len(lines) > 0, "prepaid: events cost nothing, by a credit or a flat price")
	w.note(len(pays) > 1, "prepaid: events are paid in two assets")
}

// checksList checks by which prices lines are recorded.
func (p *prepaidWorld) checksList(w *World, f *usageFrame, list int) {
	for _, l := range f.lines {
		if list == postpaid || l.list != priceLists[list].Digest() {
			w.fail("prepaid-list", "%v records lines of %x; the list is %d", f.lsn, l.list[:4], list)
		}
	}
}

// moves enters the movements of a frame, and returns the payments of the node.
func (p *prepaidWorld) moves(w *World, f *usageFrame) (pays map[string]*big.Int) {
	pays = map[string]*big.Int{}
	if len(f.moves) == 0 {
		return pays
	}
	b := p.last().next(f.lsn, f.at)
	for _, m := range f.moves {
		if m.isLapse {
			if _, active := b.money.Hold(m.Hold); !active {
				w.fail("prepaid-lapse", "%v ends a hold that is not active", f.lsn)
			}
			b.money.Lapse(m.Hold)
			continue
		}
		if why := b.money.Do(m.Op); why != "" {
			w.fail("prepaid-money", "%v moves %v %s, which the model refuses: %s", f.lsn, m.Amount, m.Asset, why)
		}
		if !m.isPayment {
			continue
		}
		if m.Kind != "transfer" || m.From != prepaidPayer || m.To != prepaidEarner || pays[m.Asset] != nil {
			w.fail("prepaid-payment", "%v pays by %s from %s to %s", f.lsn, m.Kind, m.From, m.To)
		}
		pays[m.Asset] = m.Amount
		addTo(b.paid, m.Asset, m.Amount)
	}
	p.books = append(p.books, b)
	return pays
}

// enters enters the lines of a frame, and checks them: they agree with the outcome, and the sum of all payments is what lines have paid.
func (p *prepaidWorld) enters(w *World, f *usageFrame, o *prepaidOutcome, lines map[prepaidLine]prepaidSum, pays map[string]*big.Int) {
	if len(lines)+len(pays)+len(f.closed)+len(o.bill.lines) == 0 {
		return
	}
	b := p.last().next(f.lsn, f.at)
	if why := b.settles(o, lines, pays); why != "" {
		w.fail("prepaid-lines", "%v: %s", f.lsn, why)
	}
	for _, k := range f.closed {
		s, exists := b.lines[k]
		end := monthOf(types.Time(k.month).Add(32 * 24 * time.Hour))
		if !exists || types.Time(end).Add(lineLinger) > f.at {
			w.fail("prepaid-closed", "%v at %d closes a line of %d, there %v", f.lsn, f.at, k.month, exists)
			return
		}
		addTo(b.ended, assetOf(k.price), s.paid)
		delete(b.lines, k)
		w.Saw["prepaid: a line is closed"]++
	}
	f.closed = nil
	p.books = append(p.books, b)
	p.balances(w, f)
}

// balances checks the sums: each payment is in a line, once.
func (p *prepaidWorld) balances(w *World, f *usageFrame) {
	b := p.last()
	for _, asset := range [...]string{euro, pound} {
		inLines := new(big.Int)
		if n := b.ended[asset]; n != nil {
			inLines.Add(inLines, n)
		}
		for k, s := range b.lines { //nolint:maporder // a sum
			if assetOf(k.price) == asset {
				inLines.Add(inLines, s.paid)
			}
		}
		earned, _ := b.money.Balance(usageTenant, prepaidEarner, asset)
		paid := b.paid[asset]
		if paid == nil {
			paid = new(big.Int)
		}
		if inLines.Cmp(paid) != 0 || earned.Cmp(paid) != 0 || b.available(f.at, asset).Sign() < 0 {
			w.fail("prepaid-sum", "%v: %v %s was paid, lines have paid %v, %v was earned, %v is left", f.lsn, paid, asset, inLines, earned, b.available(f.at, asset))
		}
	}
}

// assetOf returns the asset of a line.
func assetOf(price types.NameHash) string {
	for _, list := range priceLists {
		for i := range list {
			if charges.LineID(&list[i]) == price {
				return list[i].Asset
			}
		}
	}
	return ""
}
