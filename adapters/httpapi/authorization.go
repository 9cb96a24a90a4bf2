package httpapi

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"macronode/core/event"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// The parts of an API key: mk_, the ID in hexadecimal, _, and the secret in base64url.
const (
	keyPrefix = "mk_"
	idLen     = 16
	secretLen = 43
	keyLen    = len(keyPrefix) + idLen + 1 + secretLen
)

// requireScope returns an error unless the caller has a valid key with a scope.
func (k *call) requireScope(scope event.Scopes) error {
	if k.key.ID == 0 || k.isRevoked {
		k.detail = k.keyProblem()
		return problem(event.Unauthorized)
	}
	if k.key.Scopes&scope != scope {
		k.detail = "Its key lacks the required scope."
		return problem(event.Forbidden)
	}
	return nil
}

// keyProblem describes for operators why a call has no valid key. The client gets no details about keys.
func (k *call) keyProblem() string {
	switch {
	case k.key.Revoked:
		return "The key that it showed was revoked."
	case k.isRevoked:
		return "The key that it showed had expired."
	case len(k.r.Header["Authorization"]) == 0:
		return "It showed no API key."
	}
	return "What it showed is no API key of this node."
}

// isBounded reports whether the key is limited to some accounts or assets of its tenant.
func (k *call) isBounded() bool { return !k.key.Accounts.CoversAll() || !k.key.Assets.CoversAll() }

// requireUnboundedKey returns an error if the key is bounded.
func (k *call) requireUnboundedKey() error {
	if k.isBounded() {
		return problemDetail(event.Forbidden, "This operation needs an API key without limits on accounts and assets.")
	}
	return nil
}

// requireCovered returns an error unless the key covers an account and an asset. An empty asset is not checked.
func (k *call) requireCovered(account, asset string) error {
	if !types.Covers(&k.key.Accounts, account) || asset != "" && !types.Covers(&k.key.Assets, asset) {
		return problem(event.Forbidden)
	}
	return nil
}

// maySee reports whether the caller may see the outcome of in: its key sent the request, or covers one account and
// the asset of each operation.
func (k *call) maySee(in *event.Request) bool {
	if !k.isBounded() || in.Caller == k.key.ID {
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

// hideTxIDs leaves out the txids of operations that the key may not see from the problems of an answer: those that have used a ref. A receipt
// begins with its txid, and a text has no quote that is not escaped.
func (k *call) hideTxIDs(answer []byte) []byte {
	const member = `,"txid":"`
	for from := 0; k.isBounded(); {
		at := bytes.Index(answer[from:], []byte(member))
		if at < 0 {
			break
		}
		at += from
		text, _, _ := bytes.Cut(answer[at+len(member):], []byte(`"`))
		from = at + len(member) + len(text) + 1
		if !k.maySeeTx(string(text)) {
			answer = slices.Delete(answer, at, from)
			from = at
		}
	}
	return answer
}

// maySeeTx reports whether the key may see the record with a txid.
func (k *call) maySeeTx(text string) bool {
	id, err := receipt.ParseTxID(text)
	if err != nil {
		return false
	}
	var in event.Request
	of, err := k.ReadModel.RequestAt(id.Position(), &in)
	return err == nil && of == id.Journal() && in.Tenant == k.key.Tenant && k.maySee(&in)
}

// parseKey parses the value of Authorization.
func parseKey(header string) (id types.KeyID, secret string, ok bool) {
	scheme, text, ok := strings.Cut(header, " ")
	text = strings.TrimLeft(text, " ") // RFC 9110 allows one space; some clients send more
	if !ok || !strings.EqualFold(scheme, "Bearer") || len(text) != keyLen || text[:len(keyPrefix)] != keyPrefix || text[len(keyPrefix)+idLen] != '_' {
		return 0, "", false
	}
	id, ok = parseKeyID(text[len(keyPrefix) : len(keyPrefix)+idLen])
	return id, text[keyLen-secretLen:], ok
}

// bearsKey reports whether a value of Authorization contains an API key, also as a user name or a password.
func bearsKey(header string) bool {
	if containsKey(header) {
		return true
	}
	scheme, text, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Basic") {
		return false
	}
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimSpace(text)) // some clients write it as in a URL
	credentials, _ := base64.StdEncoding.DecodeString(text)                         // as far as it is base64
	return containsKey(string(credentials))
}

// containsKey reports whether a text contains what begins like an API key: mk_, an ID and _.
func containsKey(text string) bool {
	for {
		_, after, found := strings.Cut(text, keyPrefix)
		if !found {
			return false
		}
		if len(after) > idLen && after[idLen] == '_' && hexadecimal(after[:idLen]) {
			return true
		}
		text = after
	}
}

func parseKeyID(digits string) (types.KeyID, bool) {
	if len(digits) != idLen || !hexadecimal(digits) {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	return types.KeyID(n), err == nil
}
