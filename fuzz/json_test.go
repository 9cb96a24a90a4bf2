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

// fullNode is a node that takes a request and has no room for it, a read model with one key, and a meter that
// counts nothing.
type fullNode struct {
	httpapi.ReadModel
	heard *event.Request
}

// nodePort is a fullNode as a Node.
type nodePort struct {
	httpapi.Node
	*fullNode
}

func (m nodePort) Submit(ctx context.Context, in *event.Request) (event.Reply, bool) {
	return m.fullNode.Submit(ctx, in)
}
func (m nodePort) Find(ctx context.Context, in *event.FindOutcome) (event.Reply, bool) {
	return m.Node.Find(ctx, in)
}
func (m nodePort) Status() event.Status     { return m.fullNode.Status() }
func (m nodePort) Journal() types.JournalID { return m.fullNode.Journal() }

func (e *fullNode) Submit(_ context.Context, in *event.Request) (event.Reply, bool) {
	e.heard = in
	return event.Reply{}, false
}
func (*fullNode) Status() event.Status     { return event.Status{Reads: true, Writes: true} }
func (*fullNode) Journal() types.JournalID { return 1 }

const openSecret = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

func (*fullNode) Find(id types.KeyID) (event.Key, bool) {
	return event.Key{ID: id, Tenant: types.DefaultTenant, Hash: digest.Sum([]byte(openSecret)), Scopes: event.AllScopes}, true
}
func (*fullNode) Render(to []byte, _ types.Position) ([]byte, int, types.Tenant, error) {
	return to, 0, 0, receipt.ErrNoAnswer
}
func (*fullNode) Balance(types.Tenant, []byte, []byte) event.Balance     { return event.Balance{} }
func (*fullNode) AwaitSeq(context.Context, types.Tenant, types.Seq) bool { return true }
func (*fullNode) Endpoint(string, string) (func(time.Duration, int, []byte), func()) {
	return discard, func() {}
}
func (*fullNode) Refused(types.Facet, event.Problem)            {}
func (*fullNode) Rejected(types.Class, event.RejectReason)      {}
func (*fullNode) Finish(types.Ticket, uint64, event.Completion) {}
func (*fullNode) Admit(context.Context, event.Admit, httpapi.Holder) (event.Decision, bool) {
	return event.Decision{}, true
}
func (*fullNode) ReserveBytes(_ context.Context, t types.Ticket, bytes uint64) (event.Decision, bool) {
	return event.Decision{Ticket: t, Bytes: bytes}, true
}
func (*fullNode) Decided(time.Duration)        {}
func (*fullNode) Replayed()                    {}
func (*fullNode) TimedOut(event.Problem)       {}
func (*fullNode) Panicked()                    {}
func (*fullNode) PrepaidRejected()             {}
func (*fullNode) Usage(uint64, uint64, uint64) {}
func discard(time.Duration, int, []byte)       {}

// FuzzTransferBody: no body causes an internal error. An operation reaches the node exactly if a second parser,
// the schema of the document and the rules beyond the schema accept its body.
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

// TestTransferBodies does the same with almost valid bodies, which random bytes seldom are.
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

// An apiAndReference is the API, and a second implementation of its checks.
type apiAndReference struct {
	ear    *fullNode
	api    http.Handler
	schema *openapi3.Schema
}

func newPair(t testing.TB) *apiAndReference {
	doc, err := openapi3.NewLoader().LoadFromData(httpapi.Document())
	if err != nil {
		t.Fatal(err)
	}
	e := new(fullNode)
	return &apiAndReference{e, httpapi.New(httpapi.Config{MaxLargeBodies: 2, Node: nodePort{fullNode: e}, Admission: e, ReadModel: e, Meter: e, Log: slog.New(slog.DiscardHandler), Deadline: time.Second}),
		doc.Components.Schemas["TransferRequest"].Value}
}

// agree compares both for one body, and reports whether the node got it.
func (p *apiAndReference) agree(t interface{ Fatalf(string, ...any) }, body []byte) bool {
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
	parsed, err := read(body)
	if errors.Is(err, errUnsure) {
		return heard
	}
	if err == nil {
		err = p.schema.VisitJSON(parsed, openapi3.EnableJSONSchema2020())
	}
	if err == nil {
		err = checkRules(parsed.(map[string]any))
	}
	if (err == nil) != heard {
		t.Fatalf("heard: %v; the second reader: %v; of %q", heard, err, body)
	}
	return heard
}

// checkRules checks what the schema cannot express.
func checkRules(body map[string]any) error {
	amount, _ := new(big.Int).SetString(body["amount_minor"].(string), 10)
	memo, _ := body["memo"].(string)
	switch {
	case body["from"] == body["to"]:
		return errors.New("to oneself")
	case amount.BitLen() > 128:
		return errors.New("more than 128 bits")
	case len(memo) > types.MaxMemo:
		return errors.New("more than 256 bytes")
	case strings.ContainsAny(string(body["nonce"].(json.Number)), ".eE"):
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

// read is a second parser on the tokens of encoding/json; it shares nothing with the first.
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
