// Package charges certifies from a journal alone that usage and money agree, each exactly once:
//
//	request ──► effect ──► usage ──► line ──► payment
//	                         └─────► slice
//
// It shares no code with the planes that are checked: it reads the payloads by itself, and has prices by the reference model. Of the
// product it has the format of frames, and the digests of names and of price lists, which identify them.
//
// Rules:
//
//	C1  an event is recorded once
//	C2  a frame with the effect of a request has the usage of that request, and of no other
//	C3  a unit of prepaid usage is in one line of each price that applies, in the frame that records it, and in no other
//	C4  the payments of a frame are what its lines have paid more, to the unit; a payment has a key of its own
//	C5  a line costs the price of its units by the list with which usage was added last, and never pays more; events leave no arrears in the
//	    lines that they are in
//	C6  a slice has the usage of its rows that was recorded and not sealed, and follows the slice before: what is recorded is sealed once
//	C7  each metered request is in one frame, which has the sum of its requests (Explain)
//	C8  what is recorded is paid, when the journal is settled (Settled)
//	C9  a slice of postpaid usage is charged at most once for each asset; when all are, by what it adds to the invoice (Charged)
package charges

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"macronode/core/pricing"
	"macronode/core/record"
	"macronode/core/types"
)

// Config is what the node had.
type Config struct {
	Lists              []pricing.List // that were ever in force
	Payer, Beneficiary string         // of the prepaid tenants
	MetersEffects      bool           // each request with an effect counts in its frame, and there is room for all
}

// A Journal is what the frames so far have.
type Journal struct {
	Config
	Events, Requests, Payments, Slices int            // that were read; Requests are those in the frame of their effect
	Effects                            map[string]int // of these, by their route
	Paid                               map[string]*big.Int

	lists   map[[digestSize]byte]pricing.List
	names   map[eventName]bool
	keys    map[string]bool // of payments
	lines   map[LineKey]line
	open    map[Row]Row // usage that is not sealed, by its series
	chains  map[stream]slice
	metered map[types.LSN][]Row

	postpaid []slice
	charges  map[string]payment // by ref
	last     types.LSN
}

// A line is never changed in place.
type line struct{ units, paid, cost *big.Int }

type stream struct {
	tenant    types.Tenant
	dimension string
}

// New returns an empty journal.
func New(c Config) *Journal {
	j := &Journal{Config: c, Effects: map[string]int{}, Paid: map[string]*big.Int{}, lists: map[[digestSize]byte]pricing.List{}, names: map[eventName]bool{}, keys: map[string]bool{},
		lines: map[LineKey]line{}, open: map[Row]Row{}, chains: map[stream]slice{}, metered: map[types.LSN][]Row{}, charges: map[string]payment{}}
	for _, l := range c.Lists {
		j.lists[l.Digest()] = l
	}
	return j
}

// Frame checks the next frame.
func (j *Journal) Frame(s *record.Sealed) error {
	f, err := readFrame(s.Body)
	if err == nil {
		err = j.frame(&f)
	}
	if err != nil {
		return fmt.Errorf("frame %v: %w", s.LSN, err)
	}
	return nil
}

func (j *Journal) frame(f *frame) error {
	if f.lsn != j.last+1 {
		return fmt.Errorf("follows %v", j.last)
	}
	j.last = f.lsn
	for _, check := range [...]func(*frame) error{j.readEvents, j.readEffect, j.readLines, j.readUsage, j.readSlices, j.readClosed, j.readCharges} {
		if err := check(f); err != nil {
			return err
		}
	}
	return nil
}

// readEvents checks C1.
func (j *Journal) readEvents(f *frame) error {
	for _, n := range f.names {
		if j.names[n] {
			return fmt.Errorf("C1: event %x is recorded again", n.name)
		}
		j.names[n] = true
	}
	j.Events += len(f.names)
	return nil
}

// readEffect checks C2.
func (j *Journal) readEffect(f *frame) error {
	if len(f.metered) > 0 {
		j.metered[f.lsn] = f.metered
	}
	if !j.MetersEffects || f.effect == noEffect {
		return nil
	}
	requests := uint64(0)
	for _, r := range f.metered {
		labels := strings.Split(r.Labels, ",")
		if !slices.Contains(labels, "service="+f.effect.service()) {
			return fmt.Errorf("C2: usage of %s in the frame of an effect of %s", r.Labels, f.effect.service())
		}
		if r.Dimension == "requests" {
			requests += r.Value
			for _, l := range labels {
				if route, ok := strings.CutPrefix(l, "route="); ok {
					j.Effects[route]++
				}
			}
		}
	}
	if requests != 1 {
		return fmt.Errorf("C2: %d requests are counted in the frame of an effect of %s", requests, f.effect.service())
	}
	j.Requests++
	return nil
}

// readLines checks C3, C4 and C5.
func (j *Journal) readLines(f *frame) error {
	want, err := j.added(f)
	if err != nil {
		return err
	}
	moved, more := map[string]*big.Int{}, map[LineKey]*big.Int{}
	for i, c := range f.lines {
		p := priceOf(j.lists[f.list], c.Price)
		if p == nil {
			return fmt.Errorf("C3: a line of price %x, which is not in the list", c.Price)
		}
		was, is := j.lines[c.LineKey]
		if !is {
			was = line{new(big.Int), new(big.Int), new(big.Int)}
		}
		costs, paid := was.cost, new(big.Int).Sub(c.paid, was.paid)
		if want[c.LineKey] != nil { // usage is added
			costs = Cost(p, c.units)
		}
		switch {
		case c.cost.Cmp(costs) != 0:
			return fmt.Errorf("C5: line %s of %d costs %v, not %v", p.Name, c.Month, costs, c.cost)
		case paid.Sign() < 0 || paid.Sign() > 0 && c.paid.Cmp(costs) > 0:
			return fmt.Errorf("C5: line %s of %d has paid %v of %v, before %v", p.Name, c.Month, c.paid, costs, was.paid)
		case i < f.early && c.paid.Cmp(costs) < 0:
			return fmt.Errorf("C5: events leave arrears: line %s of %d has paid %v of %v", p.Name, c.Month, c.paid, costs)
		}
		addTo(moved, p.Asset, paid)
		addTo(more, c.LineKey, new(big.Int).Sub(c.units, was.units))
		j.lines[c.LineKey] = line{c.units, c.paid, c.cost}
	}
	for k, n := range more { //nolint:maporder // the rule is the same for each
		if w := want[k]; w == nil && n.Sign() != 0 || w != nil && w.Cmp(n) != 0 {
			return fmt.Errorf("C3: the line %x of %d has %v units more, its usage is %v", k.Price, k.Month, n, w)
		}
		delete(want, k)
	}
	for k, n := range want { //nolint:maporder // any of them
		return fmt.Errorf("C3: %v units are not in the line %x of %d", n, k.Price, k.Month)
	}
	return j.readPayments(f, moved)
}

func addTo[K comparable](m map[K]*big.Int, k K, n *big.Int) {
	if m[k] == nil {
		m[k] = new(big.Int)
	}
	m[k].Add(m[k], n)
}

// added returns the units that the usage of a frame adds to each line.
func (j *Journal) added(f *frame) (map[LineKey]*big.Int, error) {
	want := map[LineKey]*big.Int{}
	list, known := j.lists[f.list]
	if len(f.lines) > 0 && !known {
		return nil, fmt.Errorf("C3: lines of the unknown price list %x", f.list)
	}
	if len(f.lines) == 0 {
		return want, j.checkFree(f)
	}
	for _, r := range slices.Concat(f.events, f.metered) {
		for i := range list {
			if p := &list[i]; r.Prepaid && Applies(p, r.Dimension, r.Labels) {
				k := LineKey{r.Tenant, LineID(p), MonthOf(r.From)}
				addTo(want, k, new(big.Int).SetUint64(r.Value))
			}
		}
	}
	return want, nil
}

// checkFree checks a frame without lines: some list must leave all of its prepaid usage free.
func (j *Journal) checkFree(f *frame) error {
	var prepaid []Row
	for _, r := range slices.Concat(f.events, f.metered) {
		if r.Prepaid {
			prepaid = append(prepaid, r)
		}
	}
	isFree := func(l pricing.List) bool {
		return !slices.ContainsFunc(prepaid, func(r Row) bool {
			return slices.ContainsFunc(l, func(p pricing.Price) bool { return Applies(&p, r.Dimension, r.Labels) })
		})
	}
	if len(prepaid) > 0 && !slices.ContainsFunc(j.Lists, isFree) {
		return fmt.Errorf("C3: prepaid usage without a line: %+v %+v", f.events, f.metered)
	}
	return nil
}

// readPayments checks C4.
func (j *Journal) readPayments(f *frame, moved map[string]*big.Int) error {
	for _, p := range f.payments {
		switch n := moved[p.asset]; {
		case j.keys[p.key]:
			return fmt.Errorf("C4: the payment %s is made again", p.key)
		case p.from != j.Payer || p.to != j.Beneficiary:
			return fmt.Errorf("C4: a payment from %s to %s", p.from, p.to)
		case n == nil || n.Cmp(p.amount) != 0:
			return fmt.Errorf("C4: a payment of %v %s, lines have paid %v", p.amount, p.asset, n)
		}
		j.keys[p.key] = true
		delete(moved, p.asset)
		addTo(j.Paid, p.asset, p.amount)
	}
	for asset, n := range moved { //nolint:maporder // any of them
		if n.Sign() > 0 {
			return fmt.Errorf("C4: lines have paid %v %s without a payment", n, asset)
		}
	}
	j.Payments += len(f.payments)
	return nil
}

func priceOf(l pricing.List, id types.NameHash) *pricing.Price {
	for i := range l {
		if LineID(&l[i]) == id {
			return &l[i]
		}
	}
	return nil
}

// readUsage adds up usage until it is sealed.
func (j *Journal) readUsage(f *frame) error {
	for _, r := range slices.Concat(f.events, f.metered) {
		sum, is := j.open[r.series()]
		if !is {
			sum = r.series()
		}
		sum.Value += r.Value
		if sum.Events += r.Events; sum.Value < r.Value {
			return fmt.Errorf("C6: the sum of %+v does not fit", r)
		}
		j.open[r.series()] = sum
	}
	return nil
}

// readSlices checks C6.
func (j *Journal) readSlices(f *frame) error {
	for _, s := range f.slices {
		of := stream{s.tenant, s.dimension}
		last, previous := j.chains[of], strings.Repeat("\x00", digestSize)
		if last.seq > 0 {
			previous = last.digest
		}
		if s.seq != last.seq+1 || s.previous != previous {
			return fmt.Errorf("C6: slice %d of %s follows %d", s.seq, s.dimension, last.seq)
		}
		for _, r := range s.rows {
			if sum, is := j.open[r.series()]; !is || sum != r {
				return fmt.Errorf("C6: slice %d of %s has %+v, recorded is %+v", s.seq, s.dimension, r, sum)
			}
			delete(j.open, r.series())
		}
		if j.chains[of] = s; !s.rows[0].Prepaid {
			j.postpaid = append(j.postpaid, s)
		}
	}
	j.Slices += len(f.slices)
	return nil
}

func (j *Journal) readClosed(f *frame) error {
	for _, k := range f.closed {
		if _, is := j.lines[k]; !is {
			return errors.New("C3: a line that does not exist is closed")
		}
		delete(j.lines, k)
	}
	return nil
}

// A Request is a request that was served, as its caller knows it.
type Request struct {
	Tenant  types.Tenant
	Frame   types.LSN // that counts it
	Labels  string
	Counts  map[string]uint64 // of each dimension
	Prepaid bool
}

// Explain checks C7: the metered usage of each frame is the sum of the requests that it counts. all are those of the journal.
func (j *Journal) Explain(all []Request) error {
	type use struct {
		frame             types.LSN
		tenant            types.Tenant
		dimension, labels string
		prepaid           bool
	}
	left := map[use]uint64{}
	for lsn, rows := range j.metered { //nolint:maporder // sums
		for _, r := range rows {
			left[use{lsn, r.Tenant, r.Dimension, r.Labels, r.Prepaid}] += r.Value
		}
	}
	for i := range all {
		r := &all[i]
		for dimension, n := range r.Counts { //nolint:maporder // sums
			u := use{r.Frame, r.Tenant, dimension, r.Labels, r.Prepaid}
			if left[u] < n {
				return fmt.Errorf("C7: a request of %d %s %s is not counted in frame %v, or not as often", n, dimension, r.Labels, r.Frame)
			}
			left[u] -= n
		}
	}
	for u, n := range left { //nolint:maporder // any of them
		if n > 0 {
			return fmt.Errorf("C7: frame %v counts %d %s %s without a request", u.frame, n, u.dimension, u.labels)
		}
	}
	return nil
}

// Settled checks C8: no line has arrears. Lines of prices that are not in force any more are not paid.
func (j *Journal) Settled(inForce pricing.List) error {
	for k, l := range j.lines { //nolint:maporder // any of them
		if p := priceOf(inForce, k.Price); p != nil {
			if l.paid.Cmp(l.cost) < 0 {
				return fmt.Errorf("C8: line %s of %d has paid %v of %v", p.Name, k.Month, l.paid, l.cost)
			}
		}
	}
	return nil
}
