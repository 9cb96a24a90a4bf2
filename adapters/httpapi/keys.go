package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"macronode/adapters/httpapi/wire"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/types"
)

var (
	errScopes   = problemDetail(event.BadRequest, "scopes: must be some of read, issue, transfer, burn, hold, capture, admin, store and meter, each once")
	errPatterns = "needs 1 to 128 names, with or without * at the end, of at most 255 bytes together, with one byte between two"
	errExpiry   = problemDetail(event.BadRequest, "expires_at: must be in the future")
	errTenant   = errors.New("tenant: must be default, or the number of another one")
	errKeyID    = problemDetail(event.BadRequest, "key_id: must be 16 hexadecimal digits")
	errAdmin    = problemDetail(event.Forbidden, "Only keys of the default tenant may manage API keys of another tenant.")
)

// administer returns an error unless the key may manage keys. A bounded key may not, because it could create one
// that covers more.
func (k *call) administer() error {
	if err := k.requireScope(event.ScopeAdmin); err != nil {
		return err
	}
	return k.requireUnboundedKey()
}

// createKey creates an API key.
func createKey(k *call) error {
	if err := k.administer(); err != nil {
		return err
	}
	switch {
	case len(k.r.Header["Idempotency-Key"]) > 0:
		return problemDetail(event.BadRequest, "This operation accepts no Idempotency-Key: a repeated request creates a second API key.")
	case k.r.URL.RawQuery != "":
		return errNoQuery
	}
	wanted, err := k.parseKeyRequest()
	if err != nil {
		return err
	}
	text, err := k.generateKey(&wanted)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(k.r.Context(), k.Deadline)
	defer cancel()
	reply, taken := k.Node.CreateKey(ctx, &event.CreateKey{Permit: k.permit, Caller: k.key.ID, Tenant: k.key.Tenant, Key: wanted})
	if err := replyError(reply, taken); err != nil {
		return err
	}
	k.isFirst = true
	o := jsonObject{'{'}
	o.text("key", text)
	o.keyMembers(&wanted, k.at)
	return k.send(o)
}

// replyError returns the problem of a reply that is not a record.
func replyError(r event.Reply, taken bool) error {
	switch {
	case !taken:
		return problem(event.Busy)
	case r.Problem != event.None:
		return problem(r.Problem)
	default:
		return nil
	}
}

// generateKey sets a random ID and secret, and returns the text of the key.
func (k *call) generateKey(to *event.Key) (string, error) {
	for {
		var drawn [8 + 32]byte
		if _, err := io.ReadFull(k.Random, drawn[:]); err != nil {
			return "", fmt.Errorf("draw an API key: %w", err)
		}
		to.ID = types.KeyID(binary.BigEndian.Uint64(drawn[:]))
		secret := base64.RawURLEncoding.EncodeToString(drawn[8:])
		to.Hash = digest.Sum([]byte(secret))
		if _, known := k.ReadModel.Find(to.ID); to.ID != 0 && !known {
			return keyPrefix + keyText(to.ID) + "_" + secret, nil
		}
	}
}

func keyText(id types.KeyID) string { return fmt.Sprintf("%016x", uint64(id)) }

// parseKeyRequest parses the body of create_key.
func (k *call) parseKeyRequest() (to event.Key, err error) {
	body := takeBuffer()
	defer giveBuffer(body)
	isEmpty, err := k.readJSON(body)
	if isEmpty {
		err = problem(event.UnsupportedMedia)
	}
	if err != nil {
		return to, err
	}
	var request wire.KeyRequest
	if err := decode(*body, &request, strict); err != nil {
		return to, err
	}
	if err := types.CheckLabel(request.Name); err != nil {
		return to, invalid(err)
	}
	to.Label, to.Tenant = types.NewLabel(request.Name), k.key.Tenant
	if to.Scopes, err = parseScopes(request.Scopes); err != nil {
		return to, err
	}
	if to.Accounts, err = parsePatterns("accounts", request.Accounts); err != nil {
		return to, err
	}
	if to.Assets, err = parsePatterns("assets", request.Assets); err != nil {
		return to, err
	}
	if request.ExpiresAt != nil {
		if to.Expires = types.Time(request.ExpiresAt.UnixMilli()); to.Expires <= k.at {
			return to, errExpiry
		}
	}
	if request.Tenant != nil {
		if to.Tenant, err = parseTenant(*request.Tenant); err != nil {
			return to, invalid(err)
		}
	}
	return to, nil
}

// scopeNames returns the names of the scopes in the order of their bits.
func scopeNames() []wire.Scope {
	return []wire.Scope{wire.ScopeRead, wire.ScopeIssue, wire.ScopeTransfer, wire.ScopeBurn, wire.ScopeHold, wire.ScopeCapture, wire.ScopeAdmin, wire.ScopeStore, wire.ScopeMeter}
}

func parseScopes(request []wire.Scope) (all event.Scopes, err error) {
	for _, s := range request {
		entry := event.Scopes(0)
		for bit, name := range scopeNames() {
			if name == s {
				entry = 1 << bit
			}
		}
		if entry == 0 || all&entry != 0 {
			return 0, errScopes
		}
		all |= entry
	}
	if all == 0 {
		return 0, errScopes
	}
	return all, nil
}

// parsePatterns joins patterns. An empty list is rejected, because no patterns cover everything.
func parsePatterns(member string, request *wire.SomePatterns) (p types.Patterns, err error) {
	if request == nil {
		return p, nil
	}
	for _, entry := range *request {
		if _, err = types.ParsePatterns(entry); err != nil || entry == "" || strings.Contains(entry, ",") {
			return p, problemDetail(event.BadRequest, member+": "+errPatterns)
		}
	}
	if p, err = types.ParsePatterns(strings.Join(*request, ",")); err != nil || len(*request) == 0 {
		return p, problemDetail(event.BadRequest, member+": "+errPatterns)
	}
	return p, nil
}

func parseTenant(s string) (types.Tenant, error) {
	if t, ok := types.ParseTenant(s); ok {
		return t, nil
	}
	return 0, errTenant
}

// keys lists API keys.
func keys(k *call) error {
	if err := k.administer(); err != nil {
		return err
	}
	tenant, limit, after := k.key.Tenant, 0, []byte(nil)
	err := k.query(limitParam(&limit), k.cursorParam(&after, ofKeys, func(b []byte) bool { return len(b) == 4 }),
		param{"tenant", false, func(s string) (err error) { tenant, err = parseTenant(s); return err }})
	if err != nil {
		return err
	}
	if tenant != k.key.Tenant && k.key.Tenant != types.DefaultTenant {
		return errAdmin
	}
	skip := 0
	if after != nil {
		skip = int(binary.BigEndian.Uint32(after))
	}
	o, more := jsonObject{'{'}, false
	o.list("keys")
	err = k.readPage(limit, func() error {
		list := k.ReadModel.Keys(tenant, skip, limit+1)
		more = len(list) > limit
		for i := range list[:min(limit, len(list))] {
			o.open()
			o.keyMembers(&list[i], k.at)
			o.close('}')
		}
		return nil
	})
	if err != nil {
		return err
	}
	o.close(']')
	if more {
		o.text("next_cursor", k.cursor(ofKeys, binary.BigEndian.AppendUint32(nil, uint32(skip+limit))))
	}
	return k.send(o)
}

// revokeKey revokes an API key.
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
	reply, taken := k.Node.RevokeKey(ctx, &event.RevokeKey{Permit: k.permit, Caller: k.key.ID, Tenant: k.key.Tenant, Key: id})
	if err := replyError(reply, taken); err != nil {
		return err
	}
	was, known := k.ReadModel.Find(id)
	if !known || !was.Revoked {
		return errNoRecord
	}
	k.isFirst = true
	o := jsonObject{'{'}
	o.keyMembers(&was, k.at)
	return k.send(o)
}

// keyMembers adds the members of an API key, without its secret.
func (o *jsonObject) keyMembers(key *event.Key, at types.Time) {
	o.text("id", keyText(key.ID))
	o.text("name", key.Label.String())
	o.text("tenant", key.Tenant.Text())
	var scopes []string
	for bit, name := range scopeNames() {
		if key.Scopes>>bit&1 == 1 {
			scopes = append(scopes, string(name))
		}
	}
	o.texts("scopes", scopes)
	for _, p := range [...]struct {
		name     string
		patterns *types.Patterns
	}{{"accounts", &key.Accounts}, {"assets", &key.Assets}} {
		var all []string
		if !p.patterns.CoversAll() {
			all = strings.Split(p.patterns.String(), ",")
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
