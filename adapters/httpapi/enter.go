package httpapi

import (
	"crypto/subtle"
	"strconv"
	"strings"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/words"
)

// The parts of an API key: mk_, the id in hexadecimal, _, the secret in base64url.
const (
	keyPrefix = "mk_"
	idLen     = 16
	secretLen = 43
	keyLen    = len(keyPrefix) + idLen + 1 + secretLen
)

// enter finds out who calls, and whether he may.
func (k *call) enter(scope event.Scopes) error {
	said := k.r.Header["Authorization"]
	if len(said) != 1 {
		return problem(event.Unauthorized)
	}
	id, secret, ok := parseKey(said[0])
	if !ok {
		return problem(event.Unauthorized)
	}
	known, found := k.Books.Find(id)
	hash := digest.Sum([]byte(secret))
	if match := subtle.ConstantTimeCompare(hash[:], known.Hash[:]) == 1; !match || !found {
		return problem(event.Unauthorized)
	}
	if known.Scopes&scope != scope {
		return problem(event.Forbidden)
	}
	k.key = known
	return nil
}

// parseKey reads the value of Authorization.
func parseKey(said string) (id words.KeyID, secret string, ok bool) {
	scheme, text, ok := strings.Cut(said, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || len(text) != keyLen {
		return 0, "", false
	}
	digits := text[len(keyPrefix) : len(keyPrefix)+idLen]
	if text[:len(keyPrefix)] != keyPrefix || text[len(keyPrefix)+idLen] != '_' || !hexadecimal(digits) {
		return 0, "", false
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	return words.KeyID(n), text[keyLen-secretLen:], err == nil
}
