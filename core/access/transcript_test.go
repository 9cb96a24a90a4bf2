package access_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"macronode/ci/transcript"
	"macronode/core/access"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/types"
)

// scopes have their names in the API.
var scopes = map[string]event.Scopes{"read": event.ScopeRead, "issue": event.ScopeIssue, "transfer": event.ScopeTransfer,
	"burn": event.ScopeBurn, "hold": event.ScopeHold, "capture": event.ScopeCapture, "admin": event.ScopeAdmin, "store": event.ScopeStore, "meter": event.ScopeMeter, "all": event.AllScopes, "none": 0}

// ops have their names in the API.
var ops = map[string]event.Op{"issue": event.Issue, "transfer": event.Transfer, "burn": event.Burn, "hold": event.Hold,
	"capture": event.Capture, "release": event.Release, "freeze": event.Freeze, "unfreeze": event.Unfreeze}

// transcriptRing is the keyring of a transcript, and its current time.
type transcriptRing struct {
	testing.TB
	ring access.Keys
	at   types.Time
}

// TestKeys plays transcripts:
//
//	keyring 4                                     a keyring for four keys
//	add 7 tenant 1 read,issue till accounts=till:*,shop assets=EUR expires=50
//	add 7 tenant 1 all boot
//	revoke 7 · revoke-all
//	at 50                                         sets the time
//	may 7 tenant 1 issue                          a scope, on any account
//	do 7 tenant 1 transfer from till:1 to ann EUR
//	do 7 tenant 1 burn from ann EUR ref usage:1
//	do 7 tenant 1 batch issue to till:1 EUR and burn from till:1 EUR
//	find 7 · first · list 1
//	reload                                        loads a dump into a keyring with another seed
func TestKeys(t *testing.T) {
	b := &transcriptRing{TB: t, ring: access.New(8, 1)}
	transcript.Play(t, "testdata/keys", func(w []string) string {
		defer func() {
			if err := b.ring.Check(); err != nil {
				t.Fatalf("%v: %v", w, err)
			}
		}()
		return b.say(w)
	})
}

func (b *transcriptRing) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

func (b *transcriptRing) id(text string) types.KeyID { return types.KeyID(b.number(text)) }

func (b *transcriptRing) say(w []string) string {
	switch w[0] {
	case "keyring":
		b.ring = access.New(b.number(w[1]), 1)
	case "at":
		b.at = types.Time(b.number(w[1]))
	case "add":
		if b.ring.Full() {
			return access.ErrFull.Error()
		}
		b.ring.Add(b.key(w))
		return "added"
	case "revoke":
		b.ring.Revoke(b.id(w[1]))
	case "revoke-all":
		b.ring.RevokeAll()
	case "may":
		return yes(b.ring.Allows(b.at, b.id(w[1]), types.Tenant(b.number(w[3])), parse(b, w[4])))
	case "do":
		return yes(b.ring.Authorizes(b.at, b.request(w)))
	case "find":
		k, ok := b.ring.Find(b.id(w[1]))
		if !ok {
			return "no key"
		}
		return describeKey(k)
	case "first":
		k, any := b.ring.Bootstrap()
		if any != b.ring.Bootstrapped() {
			b.Fatal("the first key is there, and it is not")
		}
		return fmt.Sprint(any, " ", uint64(k.ID))
	case "list":
		var all []string
		b.ring.Each(types.Tenant(b.number(w[1])), func(k event.Key) bool { all = append(all, describeKey(k)); return true })
		return strings.Join(all, "\n")
	case "reload":
		b.ring = reload(b, &b.ring, 77)
	default:
		b.Fatalf("unknown command %s", w[0])
	}
	return ""
}

func yes(ok bool) string {
	if ok {
		return "yes"
	}
	return "no"
}

func describeKey(k event.Key) string {
	line := fmt.Sprintf("key %d of tenant %d, scopes %07b, hash %x…%x", k.ID, k.Tenant, k.Scopes, k.Hash[0], k.Hash[31])
	for what, text := range []string{k.Label.String(), k.Accounts.String(), k.Assets.String()} {
		if text != "" {
			line += ", " + [...]string{"called", "accounts", "assets"}[what] + " " + text
		}
	}
	if k.Expires > 0 {
		line += fmt.Sprintf(", until %d", k.Expires)
	}
	if k.Bootstrap {
		line += ", bootstrap"
	}
	if k.Revoked {
		line += ", revoked"
	}
	return line
}

// key parses the key of add.
func (b *transcriptRing) key(w []string) event.Key {
	k := event.Key{ID: b.id(w[1]), Tenant: types.Tenant(b.number(w[3])), Scopes: parse(b, w[4])}
	k.Hash[0], k.Hash[31] = byte(k.ID), 0xee
	var err error
	for _, more := range w[5:] {
		what, text, _ := strings.Cut(more, "=")
		switch what {
		case "boot":
			k.Bootstrap = true
		case "accounts":
			k.Accounts, err = types.ParsePatterns(text)
		case "assets":
			k.Assets, err = types.ParsePatterns(text)
		case "expires":
			k.Expires = types.Time(b.number(text))
		default:
			k.Label = types.NewLabel(what)
		}
		if err != nil {
			b.Fatal(more, err)
		}
	}
	return k
}

// request parses the request of do.
func (b *transcriptRing) request(w []string) *event.Request {
	r := &event.Request{Header: command.Header{Caller: b.id(w[1]), Tenant: types.Tenant(b.number(w[3]))}}
	if w[4] != "batch" {
		r.Item = b.item(w[4:])
		return r
	}
	r.Op = event.Batch
	for item := range strings.SplitSeq(strings.Join(w[5:], " "), " and ") {
		r.Items = append(r.Items, b.item(strings.Fields(item)))
	}
	return r
}

func (b *transcriptRing) item(w []string) (item event.Item) {
	op, known := ops[w[0]]
	if !known {
		b.Fatalf("no operation is called %s", w[0])
	}
	item.Op = op
	for w = w[1:]; len(w) > 0; w = w[1:] {
		switch w[0] {
		case "from", "to":
			side := &item.From
			if w[0] == "to" {
				side = &item.To
			}
			w = w[1:]
			side.Text = []byte(w[0])
		case "ref":
			w = w[1:]
			item.Ref.Text = []byte(w[0])
		default:
			item.Asset.Text = []byte(w[0])
		}
	}
	return item
}

// reload loads a dump into a keyring with another seed.
func reload(t testing.TB, from *access.Keys, seed types.Hash64) access.Keys {
	t.Helper()
	to := access.New(from.Len(), seed)
	from.Dump(func(kind uint8, b []byte) {
		if err := to.Load(kind, b); err != nil {
			t.Fatal(err)
		}
	})
	if to.Hash() != from.Hash() {
		t.Fatalf("loaded %x of %x", to.Hash(), from.Hash())
	}
	return to
}

func parse(t testing.TB, names string) (all event.Scopes) {
	t.Helper()
	for name := range strings.SplitSeq(names, ",") {
		s, known := scopes[name]
		if !known {
			t.Fatalf("no scope is called %s", name)
		}
		all |= s
	}
	return all
}
