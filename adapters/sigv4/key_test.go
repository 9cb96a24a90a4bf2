package sigv4

import (
	"fmt"
	"sync"
	"testing"
)

// TestKeyCacheIsBounded: at MaxKeys entries, the oldest one makes room.
func TestKeyCacheIsBounded(t *testing.T) {
	c := NewKeyCache()
	id := func(i int) keyID { return keyID{accessKey: fmt.Sprint(i)} }
	for i := range 2*MaxKeys + 10 {
		c.add(id(i), []byte{1})
		c.add(id(i), []byte{2}) // again: the first stays
		if len(c.keys) > MaxKeys || len(c.ring) > MaxKeys {
			t.Fatalf("%d keys", len(c.keys))
		}
		if key, ok := c.find(id(i)); !ok || key[0] != 1 {
			t.Fatalf("key %d: %v", i, key)
		}
		if _, ok := c.find(id(i - MaxKeys)); ok {
			t.Fatalf("key %d is still there", i-MaxKeys)
		}
		if _, ok := c.find(id(max(0, i-MaxKeys+1))); !ok {
			t.Fatalf("key %d is not there any more", i-MaxKeys+1)
		}
	}
}

// TestKeyCacheKeepsVerifiedKeysOnly: a request with a wrong signature leaves no entry, and a changed
// secret or scope does not find the key of another.
func TestKeyCacheKeepsVerifiedKeysOnly(t *testing.T) {
	c := NewKeyCache()
	s := &Signed{accessKey: "AKID", scope: scope{"20260504", "r", "s3"}, stamp: "20260504T120000Z", requests: make([][32]byte, 1)}
	if s.Verify("secret", c) == nil || len(c.keys) != 0 {
		t.Fatalf("%d keys after a wrong signature", len(c.keys))
	}
	s.signature = [32]byte(sign(deriveKey("secret", s.scope), stringToSign(s.stamp, s.scope, s.requests[0])))
	for range 2 {
		if err := s.Verify("secret", c); err != nil || len(c.keys) != 1 {
			t.Fatalf("%d keys, %v", len(c.keys), err)
		}
	}
	if s.Verify("changed", c) == nil {
		t.Error("a changed secret verifies")
	}
	other := *s
	other.scope.date = "20260505"
	if other.Verify("secret", c) == nil {
		t.Error("another day verifies")
	}
	if err := s.Verify("secret", nil); err != nil {
		t.Errorf("without a cache: %v", err)
	}
}

// TestKeyCacheIsSafe uses the cache from several goroutines; the race detector checks it.
func TestKeyCacheIsSafe(t *testing.T) {
	c := NewKeyCache()
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 2 * MaxKeys {
				c.add(keyID{accessKey: fmt.Sprint(i, g%2)}, []byte{1})
				c.find(keyID{accessKey: fmt.Sprint(i / 2)})
			}
		})
	}
	all.Wait()
	if len(c.keys) != MaxKeys {
		t.Errorf("%d keys", len(c.keys))
	}
}
