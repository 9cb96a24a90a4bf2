package export

import (
	"net/url"
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPathSegment(t *testing.T) {
	for name, want := range map[string]string{
		"storage.byte_seconds":            "storage.byte_seconds",
		"custom:a/b":                      "custom:a~2Fb",
		"custom:x/../../3/requests":       "custom:x~2F..~2F..~2F3~2Frequests",
		"custom:{n}":                      "custom:~7Bn~7D",
		"..":                              "~2E~2E",
		"~2F":                             "~7E2F",
		"%2F..":                           "~252F..",
		"custom:a\\..\\b":                 "custom:a~5C..~5Cb",
		"\u00fc":                          "~C3~BC",
		"custom:0123456789_-abcdefghijkl": "custom:0123456789_-abcdefghijkl",
	} {
		if got := pathSegment(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

// TestItemPathsAreDistinct: other items have other paths, also for a receiver that decodes the path, any number of times, and
// removes the segments . and .. of it.
func TestItemPathsAreDistinct(t *testing.T) {
	name := rapid.OneOf(rapid.StringMatching(`[.a/%~2F]{1,6}`), rapid.StringMatching(`custom:[a/.]{1,6}`), rapid.StringN(1, 4, -1))
	item := rapid.Custom(func(t *rapid.T) Item {
		i := Item{Stream: Wallet, Tenant: name.Draw(t, "tenant"), Seq: rapid.Uint64Range(0, 11).Draw(t, "seq")}
		if rapid.Bool().Draw(t, "usage") {
			i.Stream, i.Dimension = Usage, name.Draw(t, "dimension")
		}
		return i
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := item.Draw(t, "a"), item.Draw(t, "b")
		same := a.Stream == b.Stream && a.Tenant == b.Tenant && a.Dimension == b.Dimension && a.Seq == b.Seq
		if p, q := itemPath(&a), itemPath(&b); (p == q) != same {
			t.Errorf("%+v has %s, %+v has %s", a, p, b, q)
		}
		sent := itemPath(&a)
		got := sent
		for range 3 {
			decoded, err := url.PathUnescape(got)
			if err != nil {
				t.Fatalf("%s: %v", got, err)
			}
			got = path.Clean(strings.ReplaceAll(decoded, `\`, "/"))
		}
		if got != sent {
			t.Errorf("a receiver takes %s as %s", sent, got)
		}
	})
}
