package event_test

import (
	"errors"
	"strings"
	"testing"

	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/types"
)

func TestOpsMatchContract(t *testing.T) {
	for i, want := range []struct {
		op    event.Op
		name  string
		scope event.Scopes
	}{
		{event.Issue, "issue", event.ScopeIssue},
		{event.Transfer, "transfer", event.ScopeTransfer},
		{event.Burn, "burn", event.ScopeBurn},
		{event.Hold, "hold", event.ScopeHold},
		{event.Capture, "capture", event.ScopeCapture},
		{event.Release, "release", event.ScopeHold},
		{event.Freeze, "freeze", event.ScopeAdmin},
		{event.Unfreeze, "unfreeze", event.ScopeAdmin},
		{event.Batch, "batch", 0}, // each of its items wants its own
	} {
		if o := want.op; int(o) != i+1 || !o.Known() || o.String() != want.name || o.Scope() != want.scope {
			t.Errorf("%d: %s, scope %b, known %v", o, o, o.Scope(), o.Known())
		}
	}
	for _, o := range []event.Op{0, event.Batch + 1, 255} {
		if o.Known() {
			t.Errorf("operation %d is known", o)
		}
	}
}

// TestScopesAreApart: each scope is a bit of its own, and AllScopes has all.
func TestScopesAreApart(t *testing.T) {
	var all event.Scopes
	for i, s := range []event.Scopes{event.ScopeRead, event.ScopeIssue, event.ScopeTransfer, event.ScopeBurn, event.ScopeHold, event.ScopeCapture, event.ScopeAdmin, event.ScopeStore, event.ScopeMeter} {
		if s != 1<<i {
			t.Errorf("the scope %d is %b: its bit stands in records", i, s)
		}
		all |= s
	}
	if all != event.AllScopes {
		t.Errorf("all scopes are %b, want %b", event.AllScopes, all)
	}
}

func name(text string) types.Name { return types.Name{Text: []byte(text)} }

// goodRequest returns a valid request of an operation, with a change.
func goodRequest(op event.Op, change func(*event.Request)) *event.Request {
	r := &event.Request{Header: command.Header{Key: name("k1")},
		Item: event.Item{Op: op, Asset: name("EUR/2"), Amount: types.MinorUnits(5)}}
	if op != event.Issue {
		r.From, r.Nonce = name("ann"), 1
	}
	if op != event.Burn {
		r.To = name("bob")
	}
	change(r)
	r.Seal(nil)
	return r
}

func TestCheckRefuses(t *testing.T) {
	long := func(n int) string { return strings.Repeat("a", n) }
	for _, c := range []struct {
		rule   string
		op     event.Op
		change func(*event.Request)
		want   error
	}{
		{"an issue", event.Issue, func(*event.Request) {}, nil},
		{"a transfer", event.Transfer, func(*event.Request) {}, nil},
		{"a burn", event.Burn, func(*event.Request) {}, nil},
		{"the longest of all", event.Transfer, func(r *event.Request) {
			r.From, r.To = name(long(types.MaxAccount)), name(long(types.MaxAccount-1)+"b")
			r.Key, r.Asset, r.Memo = name(long(types.MaxKey)), name(long(types.MaxAsset)), []byte(long(types.MaxMemo))
			r.Amount, r.Nonce = types.MaxSupply(), types.MaxNonce
		}, nil},

		{"no key", event.Issue, func(r *event.Request) { r.Key = types.Name{} }, types.ErrKey},
		{"a long key", event.Issue, func(r *event.Request) { r.Key = name(long(types.MaxKey + 1)) }, types.ErrKey},
		{"no asset", event.Issue, func(r *event.Request) { r.Asset = types.Name{} }, types.ErrAsset},
		{"a long asset", event.Issue, func(r *event.Request) { r.Asset = name(long(types.MaxAsset + 1)) }, types.ErrAsset},
		{"a long memo", event.Issue, func(r *event.Request) { r.Memo = []byte(long(types.MaxMemo + 1)) }, types.ErrMemo},
		{"a memo with a newline", event.Burn, func(r *event.Request) { r.Memo = []byte("a\nb") }, types.ErrMemo},

		{"no operation", 0, func(r *event.Request) { r.From, r.Nonce = name("ann"), 1 }, event.ErrOp},
		{"an operation of tomorrow", event.Batch + 1, func(*event.Request) {}, event.ErrOp},
		{"an operation of no day", 255, func(*event.Request) {}, event.ErrOp},
		{"nothing", event.Transfer, func(r *event.Request) { r.Amount = types.Amount{} }, event.ErrAmount},

		{"an issue with a nonce", event.Issue, func(r *event.Request) { r.Nonce = 1 }, event.ErrNonce},
		{"a transfer without one", event.Transfer, func(r *event.Request) { r.Nonce = 0 }, event.ErrNonce},
		{"a burn without one", event.Burn, func(r *event.Request) { r.Nonce = 0 }, event.ErrNonce},
		{"a nonce beyond 2^53-1", event.Transfer, func(r *event.Request) { r.Nonce = types.MaxNonce + 1 }, event.ErrNonce},

		{"an issue from somebody", event.Issue, func(r *event.Request) { r.From = name("ann") }, event.ErrSide},
		{"a burn to somebody", event.Burn, func(r *event.Request) { r.To = name("bob") }, event.ErrSide},
		{"an issue to nobody", event.Issue, func(r *event.Request) { r.To = types.Name{} }, types.ErrAccount},
		{"a transfer from nobody", event.Transfer, func(r *event.Request) { r.From = types.Name{} }, types.ErrAccount},
		{"a transfer to nobody", event.Transfer, func(r *event.Request) { r.To = types.Name{} }, types.ErrAccount},
		{"a burn from nobody", event.Burn, func(r *event.Request) { r.From = types.Name{} }, types.ErrAccount},
		{"to oneself", event.Transfer, func(r *event.Request) { r.To = name("ann") }, event.ErrSelf},

		{"from issuance", event.Transfer, func(r *event.Request) { r.From = name("issuance:EUR/2") }, types.ErrReserved},
		{"to issuance", event.Transfer, func(r *event.Request) { r.To = name("issuance:EUR/2") }, types.ErrReserved},
		{"issued to issuance", event.Issue, func(r *event.Request) { r.To = name("issuance:") }, types.ErrReserved},
		{"from burned", event.Burn, func(r *event.Request) { r.From = name("burned:EUR/2") }, types.ErrReserved},
		{"to burned", event.Transfer, func(r *event.Request) { r.To = name("burned:EUR/2") }, types.ErrReserved},
		{"a bad ref", event.Issue, func(r *event.Request) { r.Ref = name("no good") }, types.ErrRef},
		{"a long ref", event.Burn, func(r *event.Request) { r.Ref = name(long(types.MaxKey + 1)) }, types.ErrRef},
		{"the longest ref", event.Transfer, func(r *event.Request) { r.Ref = name(long(types.MaxKey)) }, nil},
		{"almost issuance", event.Transfer, func(r *event.Request) { r.From = name("issuance") }, nil},
	} {
		if got := goodRequest(c.op, c.change).Validate(); !errors.Is(got, c.want) {
			t.Errorf("%s: %v, want %v", c.rule, got, c.want)
		}
	}
}

// TestSealNames: the digests are those of the current texts, and not of an earlier use of the request.
func TestSealNames(t *testing.T) {
	r := goodRequest(event.Transfer, func(r *event.Request) { r.Ref = name("pay:1") })
	for _, n := range []types.Name{r.Key, r.From, r.To, r.Asset, r.Ref} {
		if n.ID != digest.Name(n.Text) || n.ID == (types.NameHash{}) {
			t.Errorf("%s is sealed as %x", n.Text, n.ID)
		}
	}
	r.Op, r.From.Text, r.Nonce, r.Ref.Text = event.Issue, nil, 0, nil
	if r.Seal(nil); r.From.ID != (types.NameHash{}) || r.Ref.ID != (types.NameHash{}) {
		t.Errorf("nobody is sealed as %x, nothing as %x", r.From.ID, r.Ref.ID)
	}
	f := event.FindOutcome{Key: name("k1")}
	if f.Seal(); f.Key.ID != digest.Name([]byte("k1")) {
		t.Errorf("the key that is looked for is sealed as %x", f.Key.ID)
	}
}

// TestSealDistinguishesRequests: equal requests have equal digests and others do not, however their texts run
// together. The caller and the key are not part of it.
func TestSealDistinguishesRequests(t *testing.T) {
	same := func(*event.Request) {}
	of := func(op event.Op, change func(*event.Request)) types.RequestHash { return goodRequest(op, change).Hash }

	questions := map[string]types.RequestHash{
		"as it is":       of(event.Transfer, same),
		"another op":     of(event.Transfer, func(r *event.Request) { r.Op = event.Burn }),
		"another from":   of(event.Transfer, func(r *event.Request) { r.From = name("cy") }),
		"another to":     of(event.Transfer, func(r *event.Request) { r.To = name("cy") }),
		"another asset":  of(event.Transfer, func(r *event.Request) { r.Asset = name("USD") }),
		"another amount": of(event.Transfer, func(r *event.Request) { r.Amount.Lo++ }),
		"far more":       of(event.Transfer, func(r *event.Request) { r.Amount.Hi++ }),
		"another nonce":  of(event.Transfer, func(r *event.Request) { r.Nonce++ }),
		"a memo":         of(event.Transfer, func(r *event.Request) { r.Memo = []byte("m") }),
		"another memo":   of(event.Transfer, func(r *event.Request) { r.Memo = []byte("n") }),
		"ab, c":          of(event.Transfer, func(r *event.Request) { r.From, r.To = name("ab"), name("c") }),
		"a, bc":          of(event.Transfer, func(r *event.Request) { r.From, r.To = name("a"), name("bc") }),
		"c, ab":          of(event.Transfer, func(r *event.Request) { r.From, r.To = name("c"), name("ab") }),
		"to and asset":   of(event.Transfer, func(r *event.Request) { r.To, r.Asset = name("bobE"), name("UR/2") }),
		"asset and memo": of(event.Transfer, func(r *event.Request) { r.Asset, r.Memo = name("EUR"), []byte("/2") }),
		"a text as long as a length": of(event.Transfer, func(r *event.Request) {
			r.From, r.To = name("ann\x03bob"), name("")
		}),
		"nobody":        of(event.Transfer, func(r *event.Request) { r.From, r.To = name(""), name("ann\x03bob") }),
		"a ref":         of(event.Transfer, func(r *event.Request) { r.Ref = name("r") }),
		"another ref":   of(event.Transfer, func(r *event.Request) { r.Ref = name("s") }),
		"a memo of ten": of(event.Transfer, func(r *event.Request) { r.Memo = make([]byte, 10) }),
		"a memo of two": of(event.Transfer, func(r *event.Request) { r.Memo = make([]byte, 2) }),
	}
	seen := map[types.RequestHash]string{}
	for what, q := range questions {
		if other, twice := seen[q]; twice {
			t.Errorf("%q asks the same as %q", what, other)
		}
		seen[q] = what
	}

	for what, change := range map[string]func(*event.Request){
		"a ticket": func(r *event.Request) { r.Ticket++ },
		"a caller": func(r *event.Request) { r.Caller++ },
		"a tenant": func(r *event.Request) { r.Tenant++ },
		"a key":    func(r *event.Request) { r.Key = name("k2") },
		"what the index said": func(r *event.Request) {
			r.IndexedTo, r.Prior, r.PriorRef = 7, command.PriorOutcome{At: 1, ID: types.TxID{1}}, types.TxID{2}
		},
		"what it was sealed as before": func(r *event.Request) {
			r.Hash, r.From.ID, r.Key.ID = types.RequestHash{1}, types.NameHash{2}, types.NameHash{3}
		},
	} {
		if of(event.Transfer, change) != questions["as it is"] {
			t.Errorf("%s changes the question", what)
		}
	}
}

// TestSealReuses: it allocates once.
func TestSealReuses(t *testing.T) {
	r := goodRequest(event.Transfer, func(*event.Request) {})
	scratch := r.Seal(nil)
	if n := testing.AllocsPerRun(100, func() { scratch = r.Seal(scratch) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	b := batch(true, good(event.Hold), good(event.Issue))
	scratch = b.Seal(scratch)
	if n := testing.AllocsPerRun(100, func() { scratch = b.Seal(scratch) }); n != 0 {
		t.Errorf("%v allocations of a batch", n)
	}
}
