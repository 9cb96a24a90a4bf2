package fuzz

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"

	"macronode/adapters/httpapi"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// ear is a node that hears a request and has no room for it, books with one key, and
// a meter that counts nothing. Nobody asks it for more.
type ear struct {
	httpapi.Books
	heard *event.Request
}

// mouth is an ear as a node.
type mouth struct {
	httpapi.Node
	*ear
}

func (m mouth) Submit(ctx context.Context, in *event.Request) (event.Reply, bool) {
	return m.ear.Submit(ctx, in)
}
func (m mouth) Find(ctx context.Context, in *event.FindOutcome) (event.Reply, bool) {
	return m.Node.Find(ctx, in)
}
func (m mouth) Status() event.Status     { return m.ear.Status() }
func (m mouth) Journal() types.JournalID { return m.ear.Journal() }

func (e *ear) Submit(_ context.Context, in *event.Request) (event.Reply, bool) {
	e.heard = in
	return event.Reply{}, false
}
func (*ear) Status() event.Status     { return event.Status{Reads: true, Writes: true} }
func (*ear) Journal() types.JournalID { return 1 }

const openSecret = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

func (*ear) Find(id types.KeyID) (event.Key, bool) {
	return event.Key{ID: id, Tenant: types.DefaultTenant, Hash: digest.Sum([]byte(openSecret)), Scopes: event.AllScopes}, true
}
func (*ear) Render(to []byte, _ types.Position) ([]byte, int, types.Tenant, error) {
	return to, 0, 0, receipt.ErrNoAnswer
}
func (*ear) Balance(types.Tenant, []byte, []byte) event.Balance     { return event.Balance{} }
func (*ear) AwaitSeq(context.Context, types.Tenant, types.Seq) bool { return true }
func (*ear) Endpoint(string, string) (func(time.Duration, int, []byte), func()) {
	return discard, func() {}
}
func (*ear) Refused(types.Facet, event.Problem)            {}
func (*ear) Barred(types.Class, event.RejectReason)        {}
func (*ear) Settle(types.Ticket, uint64, event.Completion) {}
func (*ear) Arrive(context.Context, event.Admit) (event.Decision, bool) {
	return event.Decision{}, true
}
func (*ear) Stream(_ context.Context, t types.Ticket, bytes uint64) (event.Decision, bool) {
	return event.Decision{Ticket: t, Bytes: bytes}, true
}
func (*ear) Decided(time.Duration)       {}
func (*ear) Replayed()                   {}
func (*ear) TimedOut(event.Problem)      {}
func (*ear) Panicked()                   {}
func discard(time.Duration, int, []byte) {}

// FuzzTransferBody: whatever the body, the answer is no fault of ours; what reaches
// the node is an operation; and it reaches the node exactly if a second reader, the
// document's schema and the rules that no schema can say have nothing against it.
func FuzzTransferBody(f *testing.F) {
	for _, seed := range []string{
		`{"from":"a","to":"b","asset":"USD/2","amount_minor":"7","nonce":1}`,
		`{"from":"a","to":"b","asset":"USD/2","amount_minor":"7","nonce":1,"memo":"\u00f6 \n"}`,
		`{"from":"a","to":"a","asset":"USD/2","amount_minor":"7","nonce":1}`,
		`{"from":"a","to":"b","asset":"USD/2","amount_minor":"340282366920938463463374607431768211456","nonce":1}`,
		`{"from":"a","to":"b","asset":"USD/2","amount_minor":"7","nonce":1.0}`,
		`{"from":"a","to":"b","asset":"USD/2","amount_minor":"7","nonce":9007199254740992}`,
		`{"from":"issuance:A","to":"b","asset":"A","amount_minor":"1","nonce":1}`,
		`{"from":"a","to":"b","asset":"A","amount_minor":"1","nonce":1,"from":"a"}`,
		`{"from":"a","To":"b","asset":"A","amount_minor":"1","nonce":1}`,
		`{"from":"a","to":"b","asset":"A","amount_minor":"1","nonce":1,"ref":[{}]}`,
		`{"from":"a","to":"b","asset":"A","amount_minor":"1","nonce":1,"memo":null}`,
		`{"from":"a","to":"b","asset":"A","amount_minor":"1","nonce":1,"ref":"pay:2024-17"}`,
		`{"from":"a","to":"b","asset":"A","amount_minor":"1","nonce":1,"ref":"no good"}`,
		`{"from":"a","to":"b","asset":"A","amount_minor":"1","nonce":1} x`,
		"{\"from\":\"a\",\"to\":\"b\",\"asset\":\"A\",\"amount_minor\":\"1\",\"nonce\":1,\"memo\":\"\xff\"}",
		"{\"from\":\"\xff\",\"to\":\"\\ud800\"}", `[[[[[[[[[[]]]]]]]]]]`, ``, `null`, `{`,
	} {
		f.Add([]byte(seed))
	}
	p := newPair(f)
	f.Fuzz(func(t *testing.T, body []byte) { p.agree(t, body) })
}

// TestTransferBodies asks the same of bodies that are nearly right, which random
// bytes seldom are.
func TestTransferBodies(t *testing.T) {
	p := newPair(t)
	heard := 0
	texts := rapid.SampledFrom([]string{`"a"`, `"b"`, `"USD/2"`, `"issuance:A"`, `"burned:"`, `"issuance"`, `"a.b"`, `""`, `"\u0061"`, `"ä"`, `"7"`, `"0"`, `"07"`,
		`"-7"`, `"340282366920938463463374607431768211455"`, `"340282366920938463463374607431768211456"`, `"` + strings.Repeat("9", 40) + `"`,
		`"` + strings.Repeat("x", 32) + `"`, `"` + strings.Repeat("x", 33) + `"`, `"` + strings.Repeat("x", 256) + `"`, `"` + strings.Repeat("x", 257) + `"`,
		`"` + strings.Repeat("ö", 128) + `"`, `"` + strings.Repeat("ö", 129) + `"`, `"\n"`, `"\u0085"`, `"\u007f"`, `"\u00a0"`,
		`1`, `2`, `0`, `-0`, `-1`, `1.0`, `1e0`, `9007199254740991`, `9007199254740992`, `18446744073709551617`, `null`, `true`, `[]`, `{"from":"a"}`})
	good := [...][2]string{{"from", `"a"`}, {"to", `"b"`}, {"asset", `"USD/2"`}, {"amount_minor", `"7"`}, {"nonce", `1`}, {"memo", `"m"`}, {"ref", `"r"`}}
	rapid.Check(t, func(t *rapid.T) {
		body := slices.Clone(good[:])
		for range rapid.IntRange(0, 2).Draw(t, "changes") {
			at := rapid.IntRange(0, len(body)-1).Draw(t, "member")
			switch rapid.SampledFrom([]string{"say", "say", "drop", "double", "rename", "add"}).Draw(t, "change") {
			case "say":
				body[at][1] = texts.Draw(t, "value")
			case "drop":
				body = slices.Delete(body, at, at+1)
			case "double":
				body = append(body, body[at])
			case "rename":
				name := body[at][0]
				body[at][0] = rapid.SampledFrom([]string{strings.ToUpper(name), name[:1] + "_" + name[1:], name + " ", `\u006` + name[1:], "reference"}).Draw(t, "name")
			case "add":
				body = append(body, [2]string{"hold_id", texts.Draw(t, "value")})
			}
		}
		var members []string
		for _, at := range rapid.Permutation(body).Draw(t, "order") {
			members = append(members, `"`+at[0]+`":`+at[1])
		}
		if p.agree(t, []byte("{"+strings.Join(members, ",")+"}"+rapid.SampledFrom([]string{"", "", "", "", "\n", " ", " x"}).Draw(t, "end"))) {
			heard++
		}
	})
	if heard == 0 {
		t.Fatal("no body was good: the test has tested nothing")
	}
}

// A pair is the API and a second opinion about it.
type pair struct {
	ear    *ear
	api    http.Handler
	schema *openapi3.Schema
}

func newPair(t testing.TB) *pair {
	doc, err := openapi3.NewLoader().LoadFromData(httpapi.Document())
	if err != nil {
		t.Fatal(err)
	}
	e := new(ear)
	return &pair{e, httpapi.New(httpapi.Config{Large: 2, Node: mouth{ear: e}, Gate: e, Books: e, Meter: e, Log: slog.New(slog.DiscardHandler), Deadline: time.Second}),
		doc.Components.Schemas["TransferRequest"].Value}
}

// agree holds one body against both, and says whether the node heard of it.
func (p *pair) agree(t interface{ Fatalf(string, ...any) }, body []byte) bool {
	p.ear.heard = nil
	r := httptest.NewRequest(http.MethodPost, "/v1/transfer", bytes.NewReader(body))
	r.Header = http.Header{"Authorization": {"Bearer mk_0000000000000001_" + openSecret}, "Content-Type": {"application/json"}, "Idempotency-Key": {"k"}}
	w := httptest.NewRecorder()
	p.api.ServeHTTP(w, r)
	heard, want := p.ear.heard != nil, http.StatusBadRequest
	if heard {
		want = http.StatusTooManyRequests
		if err := p.ear.heard.Validate(); err != nil {
			t.Fatalf("the node heard what is no operation: %v", err)
		}
	}
	if w.Code != want && len(body) <= types.MaxBody {
		t.Fatalf("answered %d %s", w.Code, w.Body)
	}
	said, err := read(body)
	if errors.Is(err, errUnsure) {
		return heard
	}
	if err == nil {
		err = p.schema.VisitJSON(said, openapi3.EnableJSONSchema2020())
	}
	if err == nil {
		err = beyond(said.(map[string]any))
	}
	if (err == nil) != heard {
		t.Fatalf("heard: %v; the second reader: %v; of %q", heard, err, body)
	}
	return heard
}

// beyond is what the schema cannot say.
func beyond(said map[string]any) error {
	amount, _ := new(big.Int).SetString(said["amount_minor"].(string), 10)
	memo, _ := said["memo"].(string)
	switch {
	case said["from"] == said["to"]:
		return errors.New("to oneself")
	case amount.BitLen() > 128:
		return errors.New("more than 128 bits")
	case len(memo) > types.MaxMemo:
		return errors.New("more than 256 bytes")
	case strings.ContainsAny(string(said["nonce"].(json.Number)), ".eE"):
		return errors.New("a whole number, but not written as one")
	}
	return nil
}

var (
	errUnsure = errors.New("the second reader mends what it cannot read")
	errTwice  = errors.New("a member twice")
	errMore   = errors.New("more behind it")
	errUTF8   = errors.New("no UTF-8")
)

// read is a second reader, on encoding/json's tokens: it shares nothing with the first.
func read(body []byte) (any, error) {
	if !utf8.Valid(body) {
		return nil, errUTF8
	}
	if !json.Valid(body) {
		return nil, errors.New("no JSON")
	}
	from := json.NewDecoder(bytes.NewReader(body))
	from.UseNumber()
	v, err := value(from)
	if err == nil {
		if _, more := from.Token(); !errors.Is(more, io.EOF) {
			err = errMore
		}
	}
	return v, err
}

func value(from *json.Decoder) (any, error) {
	token, err := from.Token()
	if err != nil {
		return nil, err
	}
	switch x := token.(type) {
	case string:
		if strings.ContainsRune(x, utf8.RuneError) {
			return nil, errUnsure
		}
	case json.Delim:
		if x == '[' {
			return array(from)
		}
		return object(from)
	}
	return token, nil
}

func array(from *json.Decoder) (any, error) {
	list := []any{}
	for from.More() {
		v, err := value(from)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := from.Token()
	return list, err
}

func object(from *json.Decoder) (any, error) {
	members, twice := make(map[string]any), error(nil)
	for from.More() {
		name, err := value(from)
		if err != nil {
			return nil, err
		}
		v, err := value(from)
		if err != nil {
			return nil, err
		}
		if _, ok := members[name.(string)]; ok {
			twice = errTwice
		}
		members[name.(string)] = v
	}
	if _, err := from.Token(); err != nil {
		return nil, err
	}
	return members, twice
}
