package index_test

import (
	"fmt"
	"maps"
	"slices"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
	model "macronode/models/views"
)

const ttl = 4 * 1000 // TTL of keys in ms: a bucket is a second

// chance returns a number below n.
type chance func(n int) int

type pot struct {
	tenant         types.Tenant
	account, asset string
}

// A world makes a plausible journal: money moves, is held and released, keys and refs are used,
// time passes. facts are the input of the model, frame by frame.
type world struct {
	pick    chance
	shelf   shelf
	facts   [][]model.Fact
	journal types.JournalID
	at      types.Time
	seqs    map[types.Tenant]types.Seq
	has     map[pot]types.Amount
	held    map[pot]types.Amount
	nonces  map[pot]types.Nonce
	holds   []held
	keys    []used
	refs    map[string]bool
	n       int
	saw     map[string]int

	body  []byte
	now   []model.Fact
	count uint16
	batch bool
}

type held struct {
	id     types.TxID
	pot    pot
	to     string
	amount types.Amount
	until  types.Time
}

type used struct {
	tenant types.Tenant
	key    string
	at     types.Time
}

func newWorld(pick chance) *world {
	return &world{pick: pick, journal: types.JournalID(1 + pick(3)), at: 1_000_000, seqs: map[types.Tenant]types.Seq{}, has: map[pot]types.Amount{},
		held: map[pot]types.Amount{}, nonces: map[pot]types.Nonce{}, refs: map[string]bool{}, saw: map[string]int{}}
}

func text(s string) types.Name { return types.Name{Text: []byte(s)} }

// frame makes one more frame.
func (w *world) frame() {
	w.at += types.Time(w.pick(4) * w.pick(400))
	lsn := types.LSN(len(w.shelf.frames) + 1)
	w.body, w.now, w.count, w.batch = record.Begin(nil, lsn, w.at), nil, 0, false
	if w.pick(40) == 0 {
		w.journal++
		w.add(record.Record{Kind: record.Restored, Journal: w.journal, Upto: lsn - 1}, nil)
	}
	w.lapse()
	switch n := w.pick(12); {
	case n == 0: // a heartbeat
	case n == 1:
		w.add(record.Record{Kind: record.KeysForgotten, Upto: lsn - 1}, nil)
	case n == 2:
		w.items()
	default:
		w.one()
	}
	prev := types.Root{}
	if lsn > 1 {
		prev = w.shelf.frames[lsn-2].Root
	}
	root, _ := digest.Chain(nil, prev, w.body)
	w.shelf.add(record.Sealed{Journal: w.journal, LSN: lsn, Body: w.body, Prev: prev, Root: root})
	w.facts = append(w.facts, w.now)
	w.shelf.upto.Store(uint64(lsn))
}

func (w *world) frames(n int) {
	for range n {
		w.frame()
	}
}

// reference returns the model of the frames up to one.
func (w *world) reference(upto types.LSN) *model.State {
	s := new(model.State)
	for _, facts := range w.facts[:upto] {
		for _, f := range facts {
			s.Add(f)
		}
	}
	return s
}

// add adds a record to the frame and the model.
func (w *world) add(r record.Record, f *model.Fact) types.TxID {
	id := types.NewTxID(w.journal, types.Position{LSN: types.LSN(len(w.shelf.frames) + 1), Index: w.count})
	w.body, _ = record.Add(w.body, 0, &r)
	w.count++
	w.saw[r.Kind.String()]++
	if f != nil {
		f.Kind, f.Tenant, f.ID, f.At, f.Asked, f.Ref = r.Kind.String(), r.Tenant, id, w.at, r.Hash, string(r.Ref.Text)
		f.From, f.To, f.Asset, f.Amount = string(r.From.Text), string(r.To.Text), string(r.Asset.Text), r.Amount
		f.Nonce, f.Seq, f.Until, f.Hold, f.Memo = r.Nonce, r.Seq, r.ExpiresAt, r.Hold, string(r.Memo)
		if r.IsOutcome() && !w.batch {
			f.Key = string(r.Key.Text)
		}
		w.now = append(w.now, *f)
	}
	return id
}

// lapse ends some of the expired holds.
func (w *world) lapse() {
	for i := 0; i < len(w.holds); i++ {
		h := w.holds[i]
		if h.until > w.at || w.pick(3) == 0 {
			continue
		}
		w.holds = slices.Delete(w.holds, i, i+1)
		i--
		w.held[h.pot] = less(w.held[h.pot], h.amount)
		w.add(record.Record{Kind: record.HoldExpired, Tenant: h.pot.tenant, Seq: w.seq(h.pot.tenant), Hold: h.id, HeldBalance: w.held[h.pot]}, &model.Fact{})
	}
}

func (w *world) seq(t types.Tenant) types.Seq {
	w.seqs[t]++
	return w.seqs[t]
}

func less(a, b types.Amount) types.Amount {
	rest, ok := a.Sub(b)
	types.Assert(ok, "world: negative amount")
	return rest
}

func more(a, b types.Amount) types.Amount {
	sum, ok := a.Add(b)
	types.Assert(ok, "world: more than there can be")
	return sum
}

// asked returns a record with a new or an expired key.
func (w *world) asked() record.Record {
	w.n++
	r := record.Record{Tenant: types.Tenant(1 + w.pick(2)), Caller: 7, Key: text(fmt.Sprintf("k%d", w.n)),
		Hash: types.RequestHash{byte(w.n), byte(w.n >> 8)}, Asset: text([]string{"EUR/2", "USD/2", "X"}[w.pick(3)]), Amount: types.MinorUnits(uint64(1 + w.pick(50)))}
	if i := w.pick(len(w.keys)+3) - 3; i >= 0 && w.keys[i].at+ttl <= w.at {
		r.Tenant, r.Key = w.keys[i].tenant, text(w.keys[i].key)
		w.keys[i].at = w.at
		w.saw["key used anew"]++
	} else {
		w.keys = append(w.keys, used{r.Tenant, string(r.Key.Text), w.at})
	}
	return r
}

func (w *world) account() string { return []string{"ann", "bob", "an", "shop:1", "z"}[w.pick(5)] }

// one adds an operation with its own key.
func (w *world) one() {
	r := w.asked()
	if w.pick(8) == 0 {
		r.Op, r.Kind, r.From, r.Memo = event.Freeze+event.Op(w.pick(2)), record.FreezeChanged, text(w.account()), []byte("why not")
		r.Seq, r.Asset, r.Amount = w.seq(r.Tenant), types.Name{}, types.Amount{}
		w.add(r, &model.Fact{Op: r.Op.String()})
		return
	}
	w.item(r)
}

// items adds a batch, or a rejected atomic batch.
func (w *world) items() {
	r := w.asked()
	head := r
	head.Kind, head.Op, head.Items, head.Atomic = record.Batched, event.Batch, uint16(1+w.pick(5)), w.pick(2) == 0
	head.Asset, head.Amount = types.Name{}, types.Amount{}
	if head.Atomic && w.pick(2) == 0 {
		head.Problem, head.Nonce, head.Items = event.InsufficientFunds, 3, 0
		w.add(head, &model.Fact{})
		return
	}
	w.add(head, &model.Fact{})
	w.batch = true
	for range head.Items {
		r.Asset, r.Amount = text([]string{"EUR/2", "USD/2", "X"}[w.pick(3)]), types.MinorUnits(uint64(1+w.pick(50)))
		w.item(r)
	}
}

// item adds one operation that the state permits.
func (w *world) item(r record.Record) {
	if w.pick(4) == 0 {
		if ref := fmt.Sprintf("r%d", w.n*8+w.pick(8)); !w.refs[ref] {
			w.refs[ref] = true
			r.Ref = text(ref)
		}
	}
	if w.pick(3) == 0 {
		r.Memo = []byte("for " + w.account())
	}
	asset := string(r.Asset.Text)
	from := pot{r.Tenant, w.account(), asset}
	to := pot{r.Tenant, w.account(), asset}
	free := less(w.has[from], w.held[from])
	if w.pick(4) == 0 && !free.IsZero() {
		r.Amount = free // the whole balance: the next operation finds none
	}
	enough := !free.Less(r.Amount) && from != to
	switch n := w.pick(8); {
	case n < 2 && enough:
		w.moved(r, event.Transfer, from, to)
	case n == 2 && enough:
		w.moved(r, event.Burn, from, pot{r.Tenant, types.Burned + asset, asset})
	case n < 5 && enough:
		w.hold(r, from, to)
	case n >= 4 && len(w.holds) > 0:
		w.ended(r)
	case n == 7 || n == 6:
		r.Kind, r.Op, r.Problem, r.Nonce, r.Ref = record.Rejected, event.Transfer, event.InsufficientFunds, 9, types.Name{}
		r.Asset, r.Amount, r.Memo = types.Name{}, types.Amount{}, nil
		w.add(r, &model.Fact{})
	default:
		issuance := pot{r.Tenant, types.Issuance + asset, asset}
		w.moved(r, event.Issue, issuance, to)
	}
}

func (w *world) moved(r record.Record, op event.Op, from, to pot) {
	r.Kind, r.Op, r.Seq = record.Posted, op, w.seq(r.Tenant)
	if op == event.Issue {
		w.has[from] = more(w.has[from], r.Amount)
	} else {
		w.has[from] = less(w.has[from], r.Amount)
		r.From, r.Nonce = text(from.account), w.nonce(from)
	}
	w.has[to] = more(w.has[to], r.Amount)
	if op != event.Burn {
		r.To = text(to.account)
	}
	r.FromBalance, r.ToBalance = w.has[from], w.has[to]
	w.add(r, &model.Fact{Op: op.String()})
}

func (w *world) nonce(p pot) types.Nonce {
	p.asset = ""
	w.nonces[p]++
	return w.nonces[p]
}

func (w *world) hold(r record.Record, from, to pot) {
	w.held[from] = more(w.held[from], r.Amount)
	r.Kind, r.Op, r.Seq, r.From, r.Nonce = record.HoldOpened, event.Hold, w.seq(r.Tenant), text(from.account), w.nonce(from)
	r.HeldBalance, r.ExpiresAt = w.held[from], w.at+types.Time(1+w.pick(3000))
	if w.pick(2) == 0 {
		r.To = text(to.account)
	}
	id := w.add(r, &model.Fact{})
	w.holds = append(w.holds, held{id, from, string(r.To.Text), r.Amount, r.ExpiresAt})
}

// ended adds the capture or the release of a hold.
func (w *world) ended(r record.Record) {
	i := w.pick(len(w.holds))
	h := w.holds[i]
	if h.pot.tenant != r.Tenant {
		r.Kind, r.Op, r.Problem, r.Ref, r.Asset, r.Amount, r.Memo = record.Rejected, event.Release, event.HoldNotActive, types.Name{}, types.Name{}, types.Amount{}, nil
		w.add(r, &model.Fact{})
		return
	}
	w.holds = slices.Delete(w.holds, i, i+1)
	w.held[h.pot] = less(w.held[h.pot], h.amount)
	r.Seq, r.Hold, r.From, r.Asset, r.HeldBalance = w.seq(r.Tenant), h.id, text(h.pot.account), text(h.pot.asset), w.held[h.pot]
	to := h.to
	if to == "" {
		to = "till"
	}
	if w.pick(2) == 0 {
		r.Kind, r.Op, r.Amount, r.To = record.HoldReleased, event.Release, h.amount, text(h.to)
		w.add(r, &model.Fact{})
		return
	}
	if h.amount.Less(r.Amount) {
		r.Amount = h.amount
	}
	paid := pot{r.Tenant, to, h.pot.asset}
	w.has[h.pot] = less(w.has[h.pot], r.Amount)
	w.has[paid] = more(w.has[paid], r.Amount)
	r.Kind, r.Op, r.To = record.HoldCaptured, event.Capture, text(to)
	r.FromBalance, r.ToBalance = w.has[h.pot], w.has[paid]
	w.add(r, &model.Fact{})
}

// accounts returns all accounts, and one that does not exist.
func (w *world) accounts() []string {
	all := map[string]bool{"nobody": true}
	for p := range w.has { //nolint:maporder // sorted below
		all[p.account] = true
	}
	return slices.Sorted(maps.Keys(all))
}
