package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"macronode/adapters/httpapi/wire"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/types"
)

var (
	errScopes   = because(event.BadRequest, "scopes: must be some of read, issue, transfer, burn, hold, capture and admin, each once")
	errPatterns = "wants 1..128 names, each perhaps ending in *, of at most 255 bytes with a byte between two"
	errEnds     = because(event.BadRequest, "expires_at: must be in the future")
	errTenant   = errors.New("tenant: must be default, or the number of another one")
	errKeyID    = because(event.BadRequest, "key_id: must be 16 hexadecimal digits")
	errAdmin    = because(event.Forbidden, "Only keys of the default tenant may manage API keys of another tenant.")
)

// administer lets in who may make keys and end them. A key that covers less than all
// could make one that covers more.
func (k *call) administer() error {
	if err := k.enter(event.ScopeAdmin); err != nil {
		return err
	}
	return k.all()
}

// makeKey makes an API key.
func makeKey(k *call) error {
	if err := k.administer(); err != nil {
		return err
	}
	switch {
	case len(k.r.Header["Idempotency-Key"]) > 0:
		return because(event.BadRequest, "This operation accepts no Idempotency-Key: a repeated request creates a second API key.")
	case k.r.URL.RawQuery != "":
		return errNoQuery
	}
	wanted, err := k.parseKey()
	if err != nil {
		return err
	}
	text, err := k.draw(&wanted)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(k.r.Context(), k.Deadline)
	defer cancel()
	reply, taken := k.Node.Enrol(ctx, &event.CreateKey{Caller: k.key.ID, Tenant: k.key.Tenant, Key: wanted})
	if err := done(reply, taken); err != nil {
		return err
	}
	k.changed = true
	o := object{'{'}
	o.text("key", text)
	o.key(&wanted, k.at)
	return k.send(o)
}

// done is what became of what is no operation on money.
func done(r event.Reply, taken bool) error {
	switch {
	case !taken:
		return problem(event.Busy)
	case r.Problem != event.None:
		return problem(r.Problem)
	default:
		return nil
	}
}

// draw gives a key its id and its secret, and returns the text that its holder says.
func (k *call) draw(to *event.Key) (string, error) {
	for {
		var drawn [8 + 32]byte
		if _, err := io.ReadFull(k.Random, drawn[:]); err != nil {
			return "", fmt.Errorf("draw an API key: %w", err)
		}
		to.ID = types.KeyID(binary.BigEndian.Uint64(drawn[:]))
		secret := base64.RawURLEncoding.EncodeToString(drawn[8:])
		to.Hash = digest.Sum([]byte(secret))
		if _, known := k.Books.Find(to.ID); to.ID != 0 && !known {
			return keyPrefix + keyText(to.ID) + "_" + secret, nil
		}
	}
}

func keyText(id types.KeyID) string { return fmt.Sprintf("%016x", uint64(id)) }

// parseKey reads what a key shall be.
func (k *call) parseKey() (to event.Key, err error) {
	body := takeBuffer()
	defer giveBuffer(body)
	bare, err := k.take(body)
	if bare {
		err = problem(event.UnsupportedMedia)
	}
	if err != nil {
		return to, err
	}
	var said wire.KeyRequest
	if err := decode(*body, &said, strict); err != nil {
		return to, err
	}
	if err := types.CheckLabel(said.Name); err != nil {
		return to, wrong(err)
	}
	to.Label, to.Tenant = types.NewLabel(said.Name), k.key.Tenant
	if to.Scopes, err = parseScopes(said.Scopes); err != nil {
		return to, err
	}
	if to.Accounts, err = parsePatterns("accounts", said.Accounts); err != nil {
		return to, err
	}
	if to.Assets, err = parsePatterns("assets", said.Assets); err != nil {
		return to, err
	}
	if said.ExpiresAt != nil {
		if to.Expires = types.Time(said.ExpiresAt.UnixMilli()); to.Expires <= k.at {
			return to, errEnds
		}
	}
	if said.Tenant != nil {
		if to.Tenant, err = parseTenant(*said.Tenant); err != nil {
			return to, wrong(err)
		}
	}
	return to, nil
}

// scopeNames are the scopes in the order of their bits.
func scopeNames() []wire.Scope {
	return []wire.Scope{wire.ScopeRead, wire.ScopeIssue, wire.ScopeTransfer, wire.ScopeBurn, wire.ScopeHold, wire.ScopeCapture, wire.ScopeAdmin, wire.ScopeStore}
}

func parseScopes(said []wire.Scope) (all event.Scopes, err error) {
	for _, s := range said {
		one := event.Scopes(0)
		for bit, name := range scopeNames() {
			if name == s {
				one = 1 << bit
			}
		}
		if one == 0 || all&one != 0 {
			return 0, errScopes
		}
		all |= one
	}
	if all == 0 {
		return 0, errScopes
	}
	return all, nil
}

// parsePatterns joins patterns. An empty list would cover everything: whoever wants
// that leaves it away.
func parsePatterns(member string, said *wire.SomePatterns) (p types.Patterns, err error) {
	if said == nil {
		return p, nil
	}
	for _, one := range *said {
		if _, err = types.ParsePatterns(one); err != nil || one == "" || strings.Contains(one, ",") {
			return p, because(event.BadRequest, member+": "+errPatterns)
		}
	}
	if p, err = types.ParsePatterns(strings.Join(*said, ",")); err != nil || len(*said) == 0 {
		return p, because(event.BadRequest, member+": "+errPatterns)
	}
	return p, nil
}

const defaultTenant = "default"

func parseTenant(s string) (types.Tenant, error) {
	if s == defaultTenant {
		return types.DefaultTenant, nil
	}
	n, err := number(s, 1<<32-1)
	if err != nil || n <= uint64(types.DefaultTenant) {
		return 0, errTenant
	}
	return types.Tenant(n), nil
}

func tenantText(t types.Tenant) string {
	if t == types.DefaultTenant {
		return defaultTenant
	}
	return strconv.FormatUint(uint64(t), 10)
}

// keys lists API keys.
func keys(k *call) error {
	if err := k.administer(); err != nil {
		return err
	}
	of, limit, after := k.key.Tenant, 0, []byte(nil)
	err := k.query(limitParam(&limit), k.cursorParam(&after, ofKeys, func(b []byte) bool { return len(b) == 4 }),
		param{"tenant", false, func(s string) (err error) { of, err = parseTenant(s); return err }})
	if err != nil {
		return err
	}
	if of != k.key.Tenant && k.key.Tenant != types.DefaultTenant {
		return errAdmin
	}
	skip := 0
	if after != nil {
		skip = int(binary.BigEndian.Uint32(after))
	}
	list := k.Books.Keys(of, skip, limit+1)
	more := len(list) > limit
	list = list[:min(limit, len(list))]
	o := object{'{'}
	o.list("keys")
	for i := range list {
		o.open()
		o.key(&list[i], k.at)
		o.close('}')
	}
	o.close(']')
	if more {
		o.text("next_cursor", k.cursor(ofKeys, binary.BigEndian.AppendUint32(nil, uint32(skip+limit))))
	}
	return k.send(o)
}

// revokeKey ends an API key.
func revokeKey(k *call) error {
	if err := k.administer(); err != nil {
		return err
	}
	if k.r.URL.RawQuery != "" {
		return errNoQuery
	}
	id, ok := parseKeyID(k.params[0])
	if !ok {
		return errKeyID
	}
	ctx, cancel := context.WithTimeout(k.r.Context(), k.Deadline)
	defer cancel()
	reply, taken := k.Node.Revoke(ctx, &event.RevokeKey{Caller: k.key.ID, Tenant: k.key.Tenant, Key: id})
	if err := done(reply, taken); err != nil {
		return err
	}
	was, known := k.Books.Find(id)
	if !known || !was.Revoked {
		return errNoRecord
	}
	k.changed = true
	o := object{'{'}
	o.key(&was, k.at)
	return k.send(o)
}

// key adds the members of an API key, without anything secret.
func (o *object) key(key *event.Key, at types.Time) {
	o.text("id", keyText(key.ID))
	o.text("name", key.Label.String())
	o.text("tenant", tenantText(key.Tenant))
	var scopes []string
	for bit, name := range scopeNames() {
		if key.Scopes>>bit&1 == 1 {
			scopes = append(scopes, string(name))
		}
	}
	o.texts("scopes", scopes)
	for _, p := range [...]struct {
		name string
		of   *types.Patterns
	}{{"accounts", &key.Accounts}, {"assets", &key.Assets}} {
		var all []string
		if !p.of.CoversAll() {
			all = strings.Split(p.of.String(), ",")
		}
		o.texts(p.name, all)
	}
	if key.Expires > 0 {
		o.stamp("expires_at", key.Expires)
	}
	state := wire.KeyStateActive
	switch {
	case key.Revoked:
		state = wire.KeyStateRevoked
	case expired(key, at):
		state = wire.KeyStateExpired
	}
	o.text("state", string(state))
}
