package s3sign

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"macronode/adapters/sigv4"
)

// TestSignaturesAreValid verifies a signature as the node does.
func TestSignaturesAreValid(t *testing.T) {
	at := time.Date(2026, 11, 24, 23, 59, 59, 0, time.UTC)
	s := New(Credentials{AccessKey: "MK01", Secret: "secret", Region: "us-east-1"}, "127.0.0.1:9000")
	for range 2 { // the second one has the key of another day
		raw := string(s.Append(nil, http.MethodPut, "/bench/a-1", at))
		r, err := http.NewRequest(http.MethodPut, "http://127.0.0.1:9000/bench/a-1", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(raw, "\r\n"), "\r\n") {
			name, value, _ := strings.Cut(line, ": ")
			r.Header[http.CanonicalHeaderKey(name)] = []string{value}
		}
		signed, err := sigv4.Parse(r, at, sigv4.Policy{Region: "us-east-1", Service: "s3", Skew: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if err := signed.Verify("secret", nil); err != nil {
			t.Error(err)
		}
		if signed.Verify("Secret", nil) == nil {
			t.Error("the signature of another secret is valid")
		}
		at = at.Add(time.Second)
	}
}
