package httpapi_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"macronode/adapters/httpapi"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/wire anew; commit it only if you know why it differs")

// sequentialReader returns the bytes 1, 2, 3, … in place of random ones.
type sequentialReader byte

func (c *sequentialReader) Read(p []byte) (int, error) {
	for i := range p {
		*c++
		p[i] = byte(*c)
	}
	return len(p), nil
}

// A wireRequest is a request of the golden conversation: method, path, idempotency key and body.
type wireRequest struct{ method, path, key, body string }

// conversation uses every operation of the document, and gets most of its responses.
func conversation() []wireRequest {
	const h1, h2, h3 = "hold_0123456789abcdef0000000000040000", "hold_0123456789abcdef0000000000080000", "hold_0123456789abcdef00000000000b0000"
	until, over := later(3600_000_000_000), later(-1)
	return []wireRequest{
		{"POST", "/v1/issue", "k1", `{"to":"shop:1","asset":"USD/2","amount_minor":"1000","ref":"pay-1","memo":"say \"hi\""}`},
		{"POST", "/v1/issue", "k1", `{"memo":"say \"hi\"","ref":"pay-1","to":"shop:1","asset":"USD/2","amount_minor":"1000"}`},
		{"POST", "/v1/issue", "k2", `{"to":"shop:1","asset":"USD/2","amount_minor":"1000","ref":"pay-1"}`},
		{"POST", "/v1/transfer", "k3", `{"from":"shop:1","to":"ann/2","asset":"USD/2","amount_minor":"300","nonce":1,"ref":"pay-2"}`},
		{"POST", "/v1/holds", "k4", `{"from":"shop:1","asset":"USD/2","amount_minor":"200","nonce":2,"beneficiary":"bob","expires_at":"` + until + `","memo":"trip"}`},
		{"POST", "/v1/holds", "k5", `{"from":"shop:1","asset":"USD/2","amount_minor":"1","nonce":3,"expires_at":"` + over + `"}`},
		{"POST", "/v1/holds", "k6", `{"from":"shop:1","asset":"USD/2","amount_minor":"501","nonce":3,"expires_at":"` + until + `"}`},
		{"GET", "/v1/balance?account=shop:1&asset=USD/2", "", ""},
		{"POST", "/v1/holds/" + h1 + "/capture", "k7", `{"amount_minor":"150","to":"bob"}`},
		{"POST", "/v1/holds/" + h1 + "/release", "k8", ""},
		{"POST", "/v1/holds", "k9", `{"from":"ann/2","asset":"USD/2","amount_minor":"10","nonce":1,"expires_at":"` + until + `"}`},
		{"POST", "/v1/holds/" + h2 + "/release", "k10", `{}`},
		{"POST", "/v1/holds/hold_0123456789abcdef0000000000010000/release", "k11", ""},
		{"POST", "/v1/holds/hold_0123456789abcdef0000000000990000/capture", "k11", `{"amount_minor":"1","to":"bob"}`},
		{"POST", "/v1/batch", "k12", `{"atomic":true,"items":[{"op":"issue","to":"shop:1","asset":"EUR","amount_minor":"5"},{"op":"burn","from":"ann/2","asset":"USD/2","amount_minor":"1","nonce":2}]}`},
		{"POST", "/v1/batch", "k13", `{"atomic":false,"items":[{"op":"hold","from":"shop:1","asset":"EUR","amount_minor":"4","nonce":3,"expires_at":"` + until + `"},{"op":"transfer","from":"shop:1","to":"bob","asset":"EUR","amount_minor":"2","nonce":4},{"op":"issue","to":"bob","asset":"EUR","amount_minor":"1","ref":"pay-2"}]}`},
		{"POST", "/v1/batch", "k14", `{"atomic":true,"items":[{"op":"issue","to":"bob","asset":"EUR","amount_minor":"1"},{"op":"burn","from":"bob","asset":"EUR","amount_minor":"1","nonce":7}]}`},
		{"POST", "/v1/batch", "k15", `{"atomic":true,"items":[{"op":"issue","to":"bob","asset":"EUR","amount_minor":"1"},{"op":"burn","from":"bob","asset":"EUR","amount_minor":"9","nonce":1}]}`},
		{"POST", "/v1/accounts/ann%2F2/freeze", "k16", `{"reason":"court order 7"}`},
		{"POST", "/v1/burn", "k17", `{"from":"ann/2","asset":"USD/2","amount_minor":"1","nonce":3}`},
		{"POST", "/v1/accounts/ann%2F2/unfreeze", "k18", `{"reason":"paid"}`},
		{"GET", "/v1/tx/tx_0123456789abcdef0000000000010000", "", ""},
		{"GET", "/v1/tx?ref=pay-2", "", ""},
		{"GET", "/v1/tx?idempotency_key=k12", "", ""},
		{"GET", "/v1/tx?idempotency_key=k99", "", ""},
		{"GET", "/v1/holds?account=shop:1", "", ""},
		{"GET", "/v1/holds/" + h1, "", ""},
		{"GET", "/v1/holds/" + h3, "", ""},
		{"GET", "/v1/accounts/shop:1/entries?limit=2", "", ""},
		{"GET", "/v1/accounts/shop:1/entries?after_seq=2&format=ndjson", "", ""},
		{"GET", "/v1/accounts/shop:1/entries?format=csv", "", ""},
		{"GET", "/v1/accounts/shop:1/balance-at?asset=USD/2&seq=3", "", ""},
		{"GET", "/v1/accounts?limit=2", "", ""},
		{"GET", "/v1/assets", "", ""},
		{"GET", "/v1/changes?after_seq=3&limit=2", "", ""},
		{"POST", "/v1/keys", "", `{"name":"till-4","scopes":["read","transfer"],"accounts":["shop:*","ann/2"],"assets":["USD/2"],"expires_at":"` + until + `"}`},
		{"POST", "/v1/keys", "", `{"name":"other","scopes":["admin"],"tenant":"7"}`},
		{"GET", "/v1/keys?limit=2", "", ""},
		{"GET", "/v1/s3-credentials", "", ""},
		{"DELETE", "/v1/keys/0000000000000003", "", ""},
		{"DELETE", "/v1/keys/00000000000000ff", "", ""},
		{"POST", "/v1/usage-events", "", `[{"specversion":"1.0","id":"1","source":"shop","type":"use","time":"` + later(0) + `","subject":"Ann","data":{"dimension":"requests","value":3,"labels":{"service":"till","route":"/pay/{id}"}}},` +
			`{"specversion":"1.0","id":"2","source":"shop","type":"use","time":"` + later(-time.Hour) + `","data":{"dimension":"bytes_in","value":"18446744073709551615"}}]`},
		{"POST", "/v1/usage-events", "", `[{"specversion":"1.0","id":"1","source":"shop","type":"use","time":"` + later(0) + `","data":{"dimension":"requests","value":4}}]`},
		{"POST", "/v1/usage-events", "", `[{"specversion":"1.0","id":"1","source":"shop","type":"use","data":{"dimension":"cats","value":4}}]`},
		{"GET", "/v1/usage?from=2023-11-14T00:00:00Z&to=2023-11-15T00:00:00Z&group=window,subject", "", ""},
		{"GET", "/v1/usage?from=2023-11-14T00:00:00Z&to=2023-11-15T00:00:00Z&format=csv", "", ""},
		{"GET", "/v1/usage-slices?dimension=requests", "", ""},
		{"PUT", "/o/" + addressOf("hello"), "", "hello"},
		{"PUT", "/o/" + addressOf("hello"), "", "hello"},
		{"PUT", "/o/" + addressOf("hello"), "", "hallo"},
		{"POST", "/o?bucket=photos", "", "hi"},
		{"GET", "/o/" + addressOf("hello"), "", ""},
		{"HEAD", "/o/" + addressOf("hello"), "", ""},
		{"GET", "/o?bucket=photos&limit=100", "", ""},
		{"DELETE", "/o/" + addressOf("hello"), "", ""},
		{"DELETE", "/o/" + addressOf("hello"), "", ""},
		{"GET", "/o/" + addressOf("hello"), "", ""},
		{"PUT", "/o/" + addressOf("hello"), "upload-1", ""},
		{"GET", "/o/" + addressOf("hello") + "/uploads/" + firstUpload, "", ""},
		{"HEAD", "/o/" + addressOf("hello") + "/uploads/" + firstUpload, "", ""},
		{"PATCH", "/o/" + addressOf("hello") + "/uploads/" + firstUpload, "", "hello"},
		{"GET", "/o/" + addressOf("hello") + "/uploads/" + firstUpload, "", ""},
		{"DELETE", "/o/" + addressOf("hello") + "/uploads/" + firstUpload, "", ""},
		{"PUT", "/o/" + addressOf("hi"), "upload-2", ""},
		{"DELETE", "/o/" + addressOf("hi") + "/uploads/" + secondUpload, "", ""},
	}
}

// The uploads of the conversation.
const firstUpload, secondUpload = "0000000000190000", "00000000001c0000"

// TestWireGolden: the responses do not change by a byte, and the conversation uses every operation.
func TestWireGolden(t *testing.T) {
	var drawn sequentialReader
	h := build(t)
	s := serve(t, h, func(c *httpapi.Config) { c.Random = &drawn })
	doc, router := contract()
	met := make(map[string]bool)
	var out bytes.Buffer
	fmt.Fprintln(&out, "# A conversation with the API. Blank lines stand between the pairs of request and answer.")
	for _, a := range conversation() {
		r := s.get(a.path)
		r.Method = a.method
		if a.body != "" {
			setBody(r, a.body)
			r.Header.Set("Content-Type", "application/json")
			if a.path == "/v1/usage-events" {
				r.Header.Set("Content-Type", "application/cloudevents-batch+json")
			}
			if strings.HasPrefix(a.path, "/o") {
				r.Header.Set("Content-Type", "application/octet-stream")
			}
		}
		if a.key != "" {
			r.Header.Set("Idempotency-Key", a.key)
		}
		if strings.HasPrefix(a.key, "upload-") {
			r.Header.Set("Upload-Complete", "?0")
		}
		if a.method == "PATCH" {
			r.Header["Content-Type"], r.Header["Upload-Offset"], r.Header["Upload-Complete"] = []string{"application/partial-upload"}, []string{"0"}, []string{"?1"}
		}
		if route, _, err := router.FindRoute(r); err == nil {
			met[route.Operation.OperationID] = true
		}
		if a.path == "/v1/usage-slices?dimension=requests" {
			h.usage().seal(now.Add(time.Hour))
		}
		got := s.send(r)
		fmt.Fprintf(&out, "\n> %s %s %s\n", a.method, a.path, a.key)
		if a.body != "" {
			fmt.Fprintf(&out, "> %s\n", a.body)
		}
		fmt.Fprintf(&out, "< %d %s", got.status, got.header.Get("Content-Type"))
		if got.header.Get("Idempotency-Replayed") != "" {
			fmt.Fprint(&out, " replayed")
		}
		fmt.Fprintf(&out, "\n< %s\n", strings.ReplaceAll(strings.TrimRight(got.body, "\r\n"), "\n", "\n< "))
	}
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			if id := op.OperationID; !met[id] && id != "openapi" && id != "balance_at" {
				t.Errorf("%s is not used", id)
			}
		}
	}
	compare(t, "testdata/wire", out.Bytes())
}

func compare(t *testing.T, path string, now []byte) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, now, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a, b := strings.Split(string(was), "\n"), strings.Split(string(now), "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			at := func(s []string) string {
				if i < len(s) {
					return s[i]
				}
				return "nothing"
			}
			t.Fatalf("%s:%d is\n%s\nwas\n%s", path, i+1, at(b), at(a))
		}
	}
}
