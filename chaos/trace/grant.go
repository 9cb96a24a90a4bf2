package trace

import (
	"strings"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// A grant is an API key as its record created it.
type grant struct {
	event.Key
	acknowledged bool // its revocation was acknowledged
}

// A keyAsker is a request that waits for its reply.
type keyAsker struct {
	caller  types.KeyID
	revokes types.KeyID // the key that the request revokes; 0: none
	invalid bool        // the caller's key had expired, or its revocation was acknowledged, on arrival
}

// grants checks API keys: a key has the grants that its creation named, and no record has a key
// that does not cover it.
type grants struct {
	keys   map[types.KeyID]*grant
	askers map[types.Ticket]keyAsker
	rec    record.Record
}

func newGrants() grants {
	return grants{keys: map[types.KeyID]*grant{}, askers: map[types.Ticket]keyAsker{}}
}

func (g *grants) step(before *View, s *Step) error {
	g.asks(before, s.In)
	if len(s.Frame) > 0 {
		if err := g.frame(s.Frame, s.In); err != nil {
			return err
		}
	}
	for i := range s.Replies {
		if err := g.replies(&s.Replies[i]); err != nil {
			return err
		}
	}
	if in, ok := s.In.(event.Cancel); ok {
		delete(g.askers, in.Ticket)
	}
	return nil
}

// asks records the key of a request.
func (g *grants) asks(before *View, in event.Event) {
	var a keyAsker
	switch in := in.(type) { //nolint:gochecksumtype // the others have no key
	case *event.Request:
		a.caller = in.Caller
	case *event.FindOutcome:
		a.caller = in.Caller
	case *event.CreateKey:
		a.caller = in.Caller
	case *event.RevokeKey:
		a.caller, a.revokes = in.Caller, in.Key
	default:
		return
	}
	if k := g.keys[a.caller]; k != nil {
		a.invalid = k.acknowledged || k.Expires != 0 && k.Expires <= before.At
	}
	g.askers[ticket(in)] = a
}

// replies checks a reply: a request with an invalid key fails.
func (g *grants) replies(r *event.Reply) error {
	a, known := g.askers[r.Ticket]
	delete(g.askers, r.Ticket)
	if !known || r.Problem != event.None {
		return nil
	}
	if a.invalid {
		return broken("InvalidKeyGetsNothing", "a request by key %d, which had expired or was revoked, succeeds", a.caller)
	}
	if k := g.keys[a.revokes]; k != nil {
		k.acknowledged = true
	}
	return nil
}

// frame folds a frame. In is the event that wrote it; nil for a recovered frame.
func (g *grants) frame(body []byte, in event.Event) error {
	h, rest, err := record.Open(body)
	for range h.Count {
		if err == nil {
			rest, err = record.Next(rest, &g.rec)
		}
		if err != nil {
			return broken("StateIsFold", "frame %v: %v", h.LSN, err)
		}
		if err := g.record(h.At, &g.rec, in); err != nil {
			return err
		}
	}
	return nil
}

func (g *grants) record(at types.Time, r *record.Record, in event.Event) error {
	switch r.Kind { //nolint:exhaustive // the others do not concern keys
	case record.KeyCreated, record.BootstrapKeyCreated:
		return g.creates(at, r, in)
	case record.KeyRevoked:
		if k := g.keys[r.APIKey.ID]; k != nil {
			k.Revoked = true
		}
		return nil
	case record.AllKeysRevoked:
		for _, k := range g.keys {
			k.Revoked = true
		}
		return nil
	}
	if _, live := in.(*event.Request); !live || r.Caller == 0 || !r.IsOutcome() {
		return nil
	}
	k := g.keys[r.Caller]
	if why := uncovered(k, at, r); why != "" {
		return broken("GrantCovers", "a record of key %d: %s", r.Caller, why)
	}
	return nil
}

// creates checks a new key against the request and against the grants of its creator.
func (g *grants) creates(at types.Time, r *record.Record, in event.Event) error {
	if asked, ok := in.(*event.CreateKey); in != nil && (!ok || *r.APIKey != asked.Key) {
		return broken("GrantIsNamed", "key %d has what its creation did not name: %+v", r.APIKey.ID, r.APIKey)
	}
	if by := g.keys[r.Caller]; in != nil && r.Kind == record.KeyCreated &&
		(by == nil || !by.isValid(at) || by.Scopes&(event.ScopeAdmin|r.APIKey.Scopes) != event.ScopeAdmin|r.APIKey.Scopes || !by.Accounts.CoversAll() || !by.Assets.CoversAll()) {
		return broken("GrantWithin", "key %d was created by key %d, which has less", r.APIKey.ID, r.Caller)
	}
	g.keys[r.APIKey.ID] = &grant{Key: *r.APIKey}
	return nil
}

func (k *grant) isValid(at types.Time) bool {
	return !k.Revoked && (k.Expires == 0 || at < k.Expires)
}

// uncovered returns why a key does not cover a record; empty: it does.
func uncovered(k *grant, at types.Time, r *record.Record) string {
	switch {
	case k == nil:
		return "there is no such key"
	case !k.isValid(at):
		return "it has expired or was revoked before"
	case k.Tenant != r.Tenant:
		return "it is of another tenant"
	case !r.IsMovement() || r.Kind == record.HoldExpired:
		return "" // a rejection, or a batch whose items follow
	}
	scope, account := wanted(r)
	switch {
	case k.Scopes&scope == 0:
		return "it has no scope " + r.Op.String()
	case !covers(k.Accounts.String(), string(account.Text)):
		return "it does not cover account " + string(account.Text)
	case !covers(k.Assets.String(), string(r.Asset.Text)):
		return "it does not cover asset " + string(r.Asset.Text)
	case k.Accounts.String() != "" && strings.HasPrefix(string(r.Ref.Text), "usage:"):
		return "it is limited to accounts, and the ref is reserved: " + string(r.Ref.Text)
	}
	return ""
}

// wanted returns the scope that an operation needs and the account that its key must cover: the
// debited account; for an issue and a capture, the credited one.
func wanted(r *record.Record) (event.Scopes, types.Name) {
	switch r.Op {
	case event.Issue:
		return event.ScopeIssue, r.To
	case event.Capture:
		return event.ScopeCapture, r.To
	case event.Transfer:
		return event.ScopeTransfer, r.From
	case event.Burn:
		return event.ScopeBurn, r.From
	case event.Hold, event.Release:
		return event.ScopeHold, r.From
	default:
		return event.ScopeAdmin, r.From
	}
}

// covers reports whether a name equals one of the patterns, or matches a prefix that ends with *.
func covers(patterns, name string) bool {
	for one := range strings.SplitSeq(patterns, ",") {
		if begin, any := strings.CutSuffix(one, "*"); any && strings.HasPrefix(name, begin) || one == name {
			return true
		}
	}
	return patterns == ""
}
