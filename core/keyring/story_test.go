package keyring_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"macronode/ci/story"
	"macronode/core/event"
	"macronode/core/keyring"
	"macronode/core/words"
)

// scopes are called as they are on the wire.
var scopes = map[string]event.Scopes{"read": event.MayRead, "issue": event.MayIssue, "transfer": event.MayTransfer,
	"burn": event.MayBurn, "hold": event.MayHold, "capture": event.MayCapture, "admin": event.MayAdmin, "all": event.AllScopes}

// TestKeys plays
//
//	ring 4                           with room for so many
//	add 7 tenant 1 read,issue        or `add 7 tenant 1 all boot`
//	may 7 tenant 1 issue
//	find 7 · first
func TestKeys(t *testing.T) {
	ring := keyring.New(8, 1)
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	story.Play(t, "testdata/keys", func(w []string) string {
		defer func() {
			if err := ring.Check(); err != nil {
				t.Fatalf("%v: %v", w, err)
			}
		}()
		switch w[0] {
		case "ring":
			ring = keyring.New(number(w[1]), 1)
			return ""
		case "add":
			if err := ring.Admit(); err != nil {
				return err.Error()
			}
			k := event.Key{ID: words.KeyID(number(w[1])), Tenant: words.Tenant(number(w[3])), Scopes: parse(t, w[4]), Boot: len(w) > 5}
			k.Hash[0], k.Hash[31] = byte(k.ID), 0xee
			ring.Add(k)
			return "known"
		case "may":
			if ring.Allows(words.KeyID(number(w[1])), words.Tenant(number(w[3])), parse(t, w[4])) {
				return "yes"
			}
			return "no"
		case "find":
			k, ok := ring.Find(words.KeyID(number(w[1])))
			if !ok {
				return "nobody"
			}
			return fmt.Sprintf("key %d of tenant %d, scopes %07b, boot %v, hash %x…%x", k.ID, k.Tenant, k.Scopes, k.Boot, k.Hash[0], k.Hash[31])
		case "first":
			return fmt.Sprint(ring.Bootstrapped())
		}
		t.Fatalf("nobody knows how to %s", w[0])
		return ""
	})
}

func parse(t *testing.T, names string) (all event.Scopes) {
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
