package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"sync"
)

// MaxKeys is the number of signing keys that a KeyCache keeps.
const MaxKeys = 1024

// keyID names a signing key. It contains the secret, so a changed secret never finds an old key.
type keyID struct {
	accessKey string
	scope     scope
	secret    string
}

// KeyCache keeps signing keys of verified requests. A signing key costs four HMACs and is the same
// for all requests of a day. At MaxKeys entries, the oldest entry is removed. A nil cache keeps
// nothing. It is safe for concurrent use.
type KeyCache struct {
	mu   sync.Mutex
	keys map[keyID][]byte
	ring []keyID // in the order of insertion; next is the oldest if it is full
	next int
}

// NewKeyCache returns an empty cache.
func NewKeyCache() *KeyCache { return &KeyCache{keys: make(map[keyID][]byte)} }

func (c *KeyCache) find(id keyID) (key []byte, ok bool) {
	if c == nil {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key, ok = c.keys[id]
	return key, ok
}

func (c *KeyCache) add(id keyID, key []byte) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.keys[id]; ok {
		return
	}
	if len(c.ring) < MaxKeys {
		c.ring = append(c.ring, id)
	} else {
		delete(c.keys, c.ring[c.next])
		c.ring[c.next] = id
		c.next = (c.next + 1) % MaxKeys
	}
	c.keys[id] = key
}

// deriveKey returns the signing key of a secret for a scope.
func deriveKey(secret string, s scope) []byte {
	key := sign([]byte("AWS4"+secret), []byte(s.date))
	key = sign(key, []byte(s.region))
	key = sign(key, []byte(s.service))
	return sign(key, []byte("aws4_request"))
}

func sign(key, text []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return mac.Sum(nil)
}

// stringToSign joins time, scope and canonical request.
func stringToSign(stamp string, s scope, request [sha256.Size]byte) []byte {
	text := []byte(algorithm + "\n" + stamp + "\n" + s.String() + "\n")
	return hex.AppendEncode(text, request[:])
}
