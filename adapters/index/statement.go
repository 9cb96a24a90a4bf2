package index

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/types"
)

// Entries returns an account's movements after a seq, oldest first, of all its assets: at most
// limit. mark is the position of the answer.
func (x *Indexer) Entries(t types.Tenant, account []byte, after types.Seq, limit int, yield func(*event.Entry) bool) (event.Watermark, error) {
	v, err := x.view()
	if err != nil {
		return event.Watermark{}, err
	}
	s := statement{view: v, tenant: t, account: digest.Name(account), limit: min(limit, x.limits.Page)}
	page := s.page(after)
	m := v.event()
	if err := v.close(); err != nil {
		return m, err
	}
	for i := range page {
		if !yield(&page[i]) {
			break
		}
	}
	return m, nil
}

// BalanceAt returns the balance of an account in an asset after a movement of the tenant; found
// is false if the movement is after the mark. The nonce is not set.
func (x *Indexer) BalanceAt(t types.Tenant, account, asset []byte, seq types.Seq) (b event.Balance, found bool, err error) {
	v, err := x.view()
	if err != nil {
		return event.Balance{}, false, err
	}
	if seq <= v.last(t) {
		b, found = v.balance(t, account, asset, seq), true
	}
	return b, found && v.err == nil, v.close()
}

// BalanceAtTime is BalanceAt for the last movement up to a time; found is false if the time is
// after that of the mark.
func (x *Indexer) BalanceAtTime(t types.Tenant, account, asset []byte, at types.Time) (b event.Balance, found bool, err error) {
	v, err := x.view()
	if err != nil {
		return event.Balance{}, false, err
	}
	if at <= v.mark.at {
		low, high := types.Seq(0), v.last(t) // the last movement that is not later
		for low < high && v.err == nil {
			if mid := high - (high-low)/2; v.change(t, mid).At <= at {
				low = mid
			} else {
				high = mid - 1
			}
		}
		b, found = v.balance(t, account, asset, low), true
		b.At = at
	}
	return b, found && v.err == nil, v.close()
}

// balance returns the balance after the last movement up to a seq.
func (v *view) balance(t types.Tenant, account, asset []byte, seq types.Seq) event.Balance {
	s := statement{view: v, tenant: t, account: digest.Name(account), limit: 1}
	b := event.Balance{AsOf: seq}
	id := digest.Name(asset)
	b.Amount, b.Held = s.balanceAt(id, seq), s.heldAt(id, seq)
	b.Available, _ = b.Amount.Sub(b.Held)
	b.Negative = bytes.HasPrefix(account, []byte(types.Issuance)) && !b.Amount.IsZero()
	if seq > 0 {
		b.At = v.change(t, seq).At
	}
	return b
}

func (v *view) event() event.Watermark { return event.Watermark{LSN: v.mark.lsn, At: v.mark.at} }

// A statement has the movements of one account.
type statement struct {
	*view
	tenant  types.Tenant
	account types.NameHash
	limit   int
	lines   []line
}

// A line is a copy of an entry.
type line struct {
	seq   types.Seq
	asset types.NameHash
	entry
}

func (s *statement) entryKey(era uint32, asset types.NameHash, seq types.Seq) []byte {
	return entryKey(nil, era, s.tenant, s.account, asset, seq)
}

func (s *statement) heldKey(asset types.NameHash, seq types.Seq) []byte {
	return heldKey(nil, s.tenant, s.account, asset, seq)
}

// page returns the first lines after a seq, as entries.
func (s *statement) page(after types.Seq) []event.Entry {
	s.entries(after)
	s.assets(s.heldKey(types.NameHash{}, 0)[:1+nameSize], after, math.MaxUint64)
	s.recent(s.entryKey(0, types.NameHash{}, 0), after)
	s.recent(s.heldKey(types.NameHash{}, 0), after)
	slices.SortFunc(s.lines, func(a, b line) int {
		if a.seq != b.seq {
			return cmp.Compare(a.seq, b.seq)
		}
		return cmp.Compare(b.sets&hidden, a.sets&hidden) // its values are needed before the visible entry
	})
	s.lines = slices.CompactFunc(s.lines, func(a, b line) bool { // in a tail and in its table
		return a.seq == b.seq && a.sets&hidden == b.sets&hidden
	})
	return s.show(after)
}

// show converts lines to entries: a field that a line does not set has its earlier value.
func (s *statement) show(after types.Seq) []event.Entry {
	type has struct {
		asset         types.NameHash
		balance, held types.Amount
	}
	var now []has
	page := make([]event.Entry, 0, min(s.limit, len(s.lines)))
	for i := range s.lines {
		if len(page) == s.limit {
			break
		}
		l := &s.lines[i]
		at := slices.IndexFunc(now, func(h has) bool { return h.asset == l.asset })
		if at < 0 {
			at = len(now)
			now = append(now, has{l.asset, s.balanceAt(l.asset, after), s.heldAt(l.asset, after)})
		}
		h := &now[at]
		if l.sets&setsBalance != 0 {
			h.balance = l.balance
		}
		if l.sets&setsHeld != 0 {
			h.held = l.held
		}
		if l.sets&hidden == 0 {
			page = append(page, event.Entry{Seq: l.seq, ID: s.mark.lives.id(l.place), At: l.at, Op: l.op,
				Asset: l.entry.asset, Counterparty: l.other, Amount: l.amount, Credit: l.sets&credit != 0,
				Balance: h.balance, Held: h.held, Hold: l.hold, Nonce: l.nonce, Ref: l.ref, Memo: l.memo})
		}
	}
	return page
}

// entries reads the lines in the tables that set a balance, era by era, until there are enough.
func (s *statement) entries(after types.Seq) {
	eras := s.index.eras
	last := eras.of(s.last(s.tenant))
	for e := eras.of(after + 1); e <= last && s.err == nil; e++ {
		s.assets(s.entryKey(e, types.NameHash{}, 0)[:1+eraSize+nameSize], after, eras.last(e))
		if len(s.lines) >= s.limit {
			return
		}
	}
}

// assets reads the first lines under a prefix after a seq, asset by asset. When there are enough,
// other assets are read only up to the last of these.
func (s *statement) assets(prefix []byte, after, upto types.Seq) {
	first := len(s.lines)
	for ok := s.seek(prefix); ok && s.err == nil; {
		key := s.tables.Key()
		if !bytes.HasPrefix(key, prefix) {
			return
		}
		asset := assetOf(key)
		stem := append(bytes.Clone(prefix), asset[:]...)
		s.under(stem, seqKey(stem, after+1), func(key, value []byte) bool {
			if seqOf(key) > upto {
				return false
			}
			s.take(key, value, true)
			return len(s.lines)-first < 2*s.limit
		})
		if got := s.lines[first:]; len(got) >= s.limit {
			slices.SortFunc(got, func(a, b line) int { return cmp.Compare(a.seq, b.seq) })
			s.lines = s.lines[:first+s.limit]
			upto = min(upto, got[s.limit-1].seq)
		}
		ok = s.seek(append(seqKey(stem, math.MaxUint64), 0))
	}
}

func seqKey(stem []byte, seq types.Seq) []byte {
	b := append(bytes.Clone(stem), 0, 0, 0, 0, 0, 0, 0, 0)
	for i := range seqSize {
		b[len(b)-1-i] = byte(seq >> (8 * i))
	}
	return b
}

// recent reads the first lines after a seq from the tails.
func (s *statement) recent(key []byte, after types.Seq) {
	for i, head := range s.heads(key) {
		if head > 0 {
			s.tails[i].after(head, uint64(after), s.limit, func(key, value []byte) { s.take(key, value, true) })
		}
	}
}

// take keeps a line. Its texts are copied if copied is set.
func (s *statement) take(key, value []byte, copied bool) (l line) {
	if copied {
		value = bytes.Clone(value)
	}
	l = line{seq: seqOf(key), asset: assetOf(key)}
	if !l.read(value) {
		s.bad(key)
		return line{}
	}
	if copied {
		s.lines = append(s.lines, l)
	}
	return l
}

// balanceAt returns the balance of an asset after the last line up to a seq that sets it; heldAt
// returns the held amount.
func (s *statement) balanceAt(asset types.NameHash, seq types.Seq) types.Amount {
	if l, ok := s.newest(s.entryKey(0, asset, 0), asset, seq); ok {
		return l.balance
	}
	eras := s.index.eras
	for e := int64(eras.of(seq)); e >= 0 && s.err == nil; e-- {
		if l, ok := s.lastUnder(s.entryKey(uint32(e), asset, 0), min(seq, eras.last(uint32(e)))); ok {
			return l.balance
		}
	}
	return types.Amount{}
}

func (s *statement) heldAt(asset types.NameHash, seq types.Seq) types.Amount {
	if l, ok := s.newest(s.heldKey(asset, 0), asset, seq); ok {
		return l.held
	}
	l, _ := s.lastUnder(s.heldKey(asset, 0), seq)
	return l.held
}

// newest returns the last line of an asset up to a seq in the tails.
func (s *statement) newest(key []byte, asset types.NameHash, seq types.Seq) (line, bool) {
	heads := s.heads(key)
	for i := len(heads) - 1; i >= 0; i-- {
		g := &s.tails[i]
		for n := heads[i]; n > 0; n = g.row(n).prev {
			if n = g.before(n, uint64(seq)); n == 0 {
				break
			}
			if key, value := g.at(n); assetOf(key) == asset {
				return s.take(key, value, false), true
			}
		}
	}
	return line{}, false
}

// lastUnder returns the last line of the asset of a key up to a seq in the tables.
func (s *statement) lastUnder(first []byte, seq types.Seq) (line, bool) {
	stem := first[:len(first)-seqSize]
	if !s.seekLT(append(seqKey(stem, seq), 0)) || !bytes.HasPrefix(s.tables.Key(), stem) {
		return line{}, false
	}
	value, ok := s.value()
	if !ok {
		return line{}, false
	}
	return s.take(s.tables.Key(), value, false), true
}
