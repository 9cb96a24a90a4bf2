package httpapi

import (
	"strconv"
	"strings"

	"macronode/core/event"
	"macronode/core/types"
)

// The parts of an API key: mk_, the id in hexadecimal, _, the secret in base64url.
const (
	keyPrefix = "mk_"
	idLen     = 16
	secretLen = 43
	keyLen    = len(keyPrefix) + idLen + 1 + secretLen
)

// enter refuses who has shown no key, or one that may not.
func (k *call) enter(scope event.Scopes) error {
	if k.key.ID == 0 || k.over {
		k.lacks = k.keyless()
		return problem(event.Unauthorized)
	}
	if k.key.Scopes&scope != scope {
		k.lacks = "Its key lacks the scope that this wants."
		return problem(event.Forbidden)
	}
	return nil
}

// keyless is why a call has no key that counts, for those who run the node: whoever asks is told
// nothing of keys.
func (k *call) keyless() string {
	switch {
	case k.key.Revoked:
		return "The key that it showed was revoked."
	case k.over:
		return "The key that it showed had expired."
	case len(k.r.Header["Authorization"]) == 0:
		return "It showed no API key."
	}
	return "What it showed is no API key of this node."
}

// bounded reports that the key covers less than all of its tenant's names.
func (k *call) bounded() bool { return !k.key.Accounts.CoversAll() || !k.key.Assets.CoversAll() }

// all refuses a key that is bounded.
func (k *call) all() error {
	if k.bounded() {
		return because(event.Forbidden, "This operation needs an API key without limits on accounts and assets.")
	}
	return nil
}

// covers refuses an account and an asset that the key does not cover. An empty asset
// is none.
func (k *call) covers(account, asset string) error {
	if !types.Covers(&k.key.Accounts, account) || asset != "" && !types.Covers(&k.key.Assets, asset) {
		return problem(event.Forbidden)
	}
	return nil
}

// sees reports that what became of in may be shown: it was asked by this very key, or
// the key covers one side of each operation, and its asset.
func (k *call) sees(in *event.Request) bool {
	if !k.bounded() || in.Caller == k.key.ID {
		return true
	}
	n := 0
	for _, i := range in.Each {
		side := len(i.From.Text) > 0 && types.Covers(&k.key.Accounts, i.From.Text) ||
			len(i.To.Text) > 0 && types.Covers(&k.key.Accounts, i.To.Text)
		if !side || len(i.Asset.Text) > 0 && !types.Covers(&k.key.Assets, i.Asset.Text) {
			return false
		}
		n++
	}
	return n > 0
}

// parseKey reads the value of Authorization.
func parseKey(said string) (id types.KeyID, secret string, ok bool) {
	scheme, text, ok := strings.Cut(said, " ")
	text = strings.TrimLeft(text, " ") // RFC 9110 lets one space stand there, and some clients send more
	if !ok || !strings.EqualFold(scheme, "Bearer") || len(text) != keyLen || text[:len(keyPrefix)] != keyPrefix || text[len(keyPrefix)+idLen] != '_' {
		return 0, "", false
	}
	id, ok = parseKeyID(text[len(keyPrefix) : len(keyPrefix)+idLen])
	return id, text[keyLen-secretLen:], ok
}

func parseKeyID(digits string) (types.KeyID, bool) {
	if len(digits) != idLen || !hexadecimal(digits) {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	return types.KeyID(n), err == nil
}
