package charges

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"macronode/core/digest"
	"macronode/core/pricing"
	"macronode/core/types"
)

// A Period is an invoice of a tenant: its windows begin in [From, To).
type Period struct {
	Tenant             types.Tenant
	From, To           int64
	Until              int64     // slices of windows that begin at it or later are in the invoice, and not charged yet; 0: all are
	Sealed             types.LSN // slices of later frames are not charged yet; 0: all are
	Prices             pricing.List
	Payer, Beneficiary string
}

// readCharges checks that no slice is charged again.
func (j *Journal) readCharges(f *frame) error {
	for _, c := range f.charges {
		if _, is := j.charges[c.key]; is {
			return fmt.Errorf("C9: %s is charged again", c.key)
		}
		j.charges[c.key] = c
	}
	return nil
}

// refOf returns the ref of the charge of a slice.
func refOf(s *slice, asset string) string {
	b := binary.LittleEndian.AppendUint32([]byte("macronode charge 1\n"), uint32(s.tenant))
	b = binary.LittleEndian.AppendUint64(b, s.seq)
	b = append(append(b, byte(len(s.dimension))), s.dimension...)
	sum := digest.Sum(append(append(b, byte(len(asset))), asset...))
	return fmt.Sprintf("usage:%d:%s", s.seq, hex.EncodeToString(sum[:16]))
}

// used is the usage of a price so far.
type used struct {
	units *big.Int
	is    bool
}

// Charged checks that each slice of a period is charged, with what it adds to the invoice, and that nothing else is. It returns the number
// of charges.
func (j *Journal) Charged(p Period) (made int, err error) {
	left, usage := maps.Clone(j.charges), make([]used, len(p.Prices))
	for i := range usage {
		usage[i].units = new(big.Int)
	}
	for i := range j.postpaid { // those of a dimension are in the order of seq, and a price is of one dimension
		s := &j.postpaid[i]
		if s.tenant != p.Tenant || s.rows[0].From < p.From || s.rows[0].From >= p.To || p.Sealed > 0 && s.lsn > p.Sealed {
			continue
		}
		for asset, due := range p.adds(usage, s) { //nolint:maporder // the rule is the same for each
			if due.Sign() == 0 || p.Until > 0 && s.rows[0].From >= p.Until {
				continue
			}
			ref, from, to := refOf(s, asset), p.Payer, p.Beneficiary
			if due.Sign() < 0 {
				from, to = to, from
			}
			c, is := left[ref]
			if !is || c.from != from || c.to != to || c.asset != asset || c.amount.Cmp(new(big.Int).Abs(due)) != 0 {
				return made, fmt.Errorf("C9: slice %d of %s adds %v %s, charged is %+v", s.seq, s.dimension, due, asset, c)
			}
			delete(left, ref)
			made++
		}
	}
	for ref, c := range left { //nolint:maporder // any of them
		return made, fmt.Errorf("C9: the charge %s of %v %s is of no slice", ref, c.amount, c.asset)
	}
	return made, nil
}

// adds adds the usage of a slice to that of its prices, and returns what the invoice costs more, of each asset.
func (p *Period) adds(usage []used, s *slice) map[string]*big.Int {
	more := map[string]*big.Int{}
	for i := range p.Prices {
		price, u := &p.Prices[i], &usage[i]
		if !slices.ContainsFunc(s.rows, func(r Row) bool { return Applies(price, r.Dimension, r.Labels) }) {
			continue
		}
		before := new(big.Int)
		if u.is {
			before = Cost(price, u.units)
		}
		u.is = true
		for _, r := range s.rows {
			if Applies(price, r.Dimension, r.Labels) {
				u.units.Add(u.units, new(big.Int).SetUint64(r.Value))
			}
		}
		addTo(more, price.Asset, new(big.Int).Sub(Cost(price, u.units), before))
	}
	return more
}
