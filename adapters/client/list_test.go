package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"macronode/adapters/client"
)

// Golden receipts have the hash that they contain, and any change of a byte is detected.
func TestReceiptsAreVerified(t *testing.T) {
	text, err := os.ReadFile("../../core/wallet/receipt/testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		var g struct {
			Answer string `json:"answer"`
			Name   string `json:"name"`
		}
		if strings.HasPrefix(line, "#") || json.Unmarshal([]byte(line), &g) != nil || !strings.HasPrefix(g.Answer, `{"txid":`) {
			continue
		}
		n++
		r := client.Receipt{RawResponse: client.RawResponse{Raw: []byte(g.Answer)}}
		if err := r.Verify(); err != nil {
			t.Errorf("%s: %v", g.Name, err)
		}
		for _, change := range [][2]string{{`"seq":`, `"seq":1`}, {`"txid":"tx_`, `"txid":"tx-`}, {`{"txid"`, `{"more":1,"txid"`},
			{`"receipt_hash":"b3:`, `"receipt_hash":"b4:`}, {`"receipt_hash"`, `"receipt"`}, {`"op"`, `"txid":"x","op"`}} {
			r.Raw = []byte(strings.Replace(g.Answer, change[0], change[1], 1))
			if err := r.Verify(); err == nil || string(r.Raw) == g.Answer {
				t.Errorf("%s: %q in the place of %q is not found out", g.Name, change[1], change[0])
			}
		}
	}
	if n < 10 {
		t.Fatalf("%d golden receipts", n)
	}
}

func entry(seq int) string {
	return fmt.Sprintf(`{"seq":%d,"txid":"tx_%d","op":"issue","direction":"credit","amount_minor":"1"}`, seq, seq)
}

// A listing is read page by page, each with retries.
func TestPages(t *testing.T) {
	s := play(t, `200 {"entries":[`+entry(4)+`,`+entry(7)+`],"next_after_seq":7}`, busy, `200 {"entries":[`+entry(9)+`],"next_after_seq":9}`,
		`200 {"entries":[]}`)
	k, _ := dial(t, s, client.Options{})
	var got []int64
	for e, err := range k.Entries(t.Context(), "a/b", 3, client.ListOptions{Page: 2, MinSeq: 5}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Seq)
	}
	const at = "GET /v1/accounts/a%2Fb/entries?"
	if fmt.Sprint(got) != "[4 7 9]" || fmt.Sprint(s.asked()) != fmt.Sprint([]string{at + "after_seq=3&limit=2&min_seq=5  ",
		at + "after_seq=7&limit=2&min_seq=5  ", at + "after_seq=7&limit=2&min_seq=5  ", at + "after_seq=9&limit=2&min_seq=5  "}) {
		t.Errorf("%v, asked %q", got, s.asked())
	}
}

// Not more items are requested than needed or allowed.
func TestListingLimit(t *testing.T) {
	page := `200 {"entries":[` + entry(1) + `,` + entry(2) + `],"next_after_seq":2}`
	for _, c := range []struct {
		list client.ListOptions
		take int
		want string
	}{
		{client.ListOptions{Limit: 1, Page: 2}, 9, "limit=1"},
		{client.ListOptions{Limit: 3, Page: 2}, 9, "limit=2 limit=1"},
		{client.ListOptions{Limit: 5000}, 2, "limit=1000"},
		{client.ListOptions{}, 1, "limit=100"},
	} {
		s := play(t, page)
		k, _ := dial(t, s, client.Options{})
		n := 0
		for _, err := range k.Entries(t.Context(), "a", 0, c.list) {
			if n++; n == c.take || err != nil {
				break
			}
		}
		var asked []string
		for _, one := range s.asked() {
			asked = append(asked, strings.TrimSpace(one[strings.Index(one, "limit="):]))
		}
		if got := strings.Join(asked, " "); got != c.want || n != min(c.take, max(1, c.list.Limit), 3) && c.list.Limit < 5000 {
			t.Errorf("%+v: asked %q, took %d", c.list, got, n)
		}
	}
}

// A response that cannot be parsed is an error, and the last item.
func TestInvalidPageEndsListing(t *testing.T) {
	for answer, want := range map[string]error{
		"cut": io.EOF, barred: client.Forbidden, "200 hello": client.ErrWrongNode, "200 {}": client.ErrWrongNode,
		`200 {"entries":[{"seq":"one"}]}`:                          client.ErrWrongNode,
		`200 {"entries":[` + entry(1) + `],"next_after_seq":true}`: client.ErrWrongNode,
	} {
		s := play(t, answer)
		k, _ := dial(t, s, client.Options{})
		var last error
		n := 0
		for _, err := range k.Entries(t.Context(), "a", 0, client.ListOptions{}) {
			if last != nil {
				t.Errorf("%s: it goes on after %v", answer, last)
			}
			if last = err; n > 5 {
				break
			}
			n++
		}
		if !errors.Is(last, want) {
			t.Errorf("%s: %v", answer, last)
		}
	}
	s := play(t, `200 {"accounts":[],"next_cursor":"x"}`)
	k, _ := dial(t, s, client.Options{})
	n := 0
	for _, err := range k.Accounts(t.Context(), "", client.ListOptions{}) {
		if n++; !errors.Is(err, client.ErrWrongNode) {
			t.Error(err)
		}
	}
	if n != 1 || len(s.asked()) != 2 {
		t.Errorf("a page that is its own next one is asked for %d times", len(s.asked()))
	}
}

func change(seq int) string { return fmt.Sprintf(`{"seq":%d,"op":"issue","txid":"tx_%d"}`, seq, seq) }

// A feed with a gap ends.
func TestGapEndsFeed(t *testing.T) {
	s := play(t, `200 {"changes":[`+change(1)+`,`+change(3)+`]}`)
	k, _ := dial(t, s, client.Options{})
	var seqs []int64
	var last error
	for ch, err := range k.Changes(t.Context(), client.FeedOptions{}) {
		seqs, last = append(seqs, ch.Seq), err
	}
	if !errors.Is(last, client.ErrGap) || fmt.Sprint(seqs) != "[1 3]" {
		t.Error(seqs, last)
	}
}

// At the end of the feed, a reader with Wait continues to ask.
func TestFeedWaits(t *testing.T) {
	s := play(t, `200 {"changes":[`+change(1)+`]}`, `200 {"changes":[]}`, late, `200 {"changes":[`+change(2)+`]}`)
	k, _ := dial(t, s, client.Options{})
	for ch, err := range k.Changes(t.Context(), client.FeedOptions{Wait: 3 * time.Second}) {
		if err != nil {
			t.Fatal(err)
		}
		if ch.Seq == 2 {
			break
		}
	}
	const first, then = "GET /v1/changes?limit=1000&wait=3000  ", "GET /v1/changes?after_seq=1&limit=1000&wait=3000  "
	if got := s.asked(); len(got) != 4 || got[0] != first || got[1] != then || got[3] != then {
		t.Errorf("asked %q", got)
	}
}

// A caster sends scripted streams, one for each connection, and records where each began.
func cast(t *testing.T, parts ...string) (*httptest.Server, func() string) {
	began := make(chan string, 99)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began <- r.Header.Get("Last-Event-ID")
		if r.Header.Get("Accept") != "text/event-stream, application/problem+json" {
			t.Errorf("accepts %q", r.Header.Get("Accept"))
		}
		part := parts[0]
		if len(parts) > 1 {
			parts = parts[1:]
		}
		if part[0] >= '0' && part[0] <= '9' {
			var status int
			_, _ = fmt.Sscanf(part, "%d", &status)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, part[4:])
			return
		}
		_, _ = io.WriteString(w, part)
		w.(http.Flusher).Flush()
		if strings.HasSuffix(part, ":silent\n") {
			<-r.Context().Done()
		}
	}))
	t.Cleanup(s.Close)
	return s, func() string {
		var all []string
		for len(began) > 0 {
			all = append(all, <-began)
		}
		return strings.Join(all, " ")
	}
}

func sent(seqs ...int) string {
	text := ":\n\n"
	for _, n := range seqs {
		text += fmt.Sprintf("id: %d\nevent: change\ndata: %s\n\n", n, change(n))
	}
	return text
}

// A stream continues where it was, whatever ended it.
func TestStreamResumes(t *testing.T) {
	const end = "event: end\ndata: {\"reason\":\"draining\"}\n\n"
	for _, c := range []struct {
		name  string
		parts []string
		began string
		last  error
		seqs  string
	}{
		{"it ends, breaks off, is not ready", []string{sent(6, 7) + end, sent(8), late, sent(9, 10)}, "5 7 8 8", nil, "[6 7 8 9 10]"},
		{"it is cut in the middle of an event", []string{sent(6, 7)[:60], sent(6, 7, 8, 9, 10)}, "5 5", nil, "[6 7 8 9 10]"},
		{"an event of another kind", []string{"event: novel\ndata: {}\n\n" + sent(6, 7, 8, 9, 10)}, "5", nil, "[6 7 8 9 10]"},
		{"nothing comes any more", []string{sent(6), end}, "5 6 6", errEnd, "[6 0]"},
		{"the key has ended", []string{sent(6) + "event: end\ndata: {\"reason\":\"unauthorized\"}\n\n", sent(7)}, "5", errEnd, "[6 0]"},
		{"the key does not cover it", []string{barred}, "5", client.Forbidden, "[0]"},
		{"a stranger", []string{"404 nothing"}, "5", client.ErrWrongNode, "[0]"},
		{"a gap", []string{sent(6, 8), sent(7)}, "5", client.ErrGap, "[6 8]"},
		{"silence", []string{sent(6) + ":silent\n", sent(7, 8, 9, 10)}, "5 6", nil, "[6 7 8 9 10]"},
		{"a line too long", []string{sent(6) + "data: " + strings.Repeat("x", 70_000) + "\n", sent(7, 8, 9, 10)}, "5 6", nil, "[6 7 8 9 10]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, began := cast(t, c.parts...)
			time := &clock{}
			o := client.Options{Environment: time.world()}
			if c.name == "silence" {
				o.StreamIdleTimeout = 1000 * ms
			}
			k, err := client.New(s.URL, "secret", o)
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close()
			var seqs []int64
			var last error
			for ch, err := range k.Stream(t.Context(), 5) {
				if seqs, last = append(seqs, ch.Seq), err; ch.Seq == 10 {
					break
				}
			}
			if got := began(); got != c.began || fmt.Sprint(seqs) != c.seqs || (last == nil) != (c.last == nil) {
				t.Errorf("began at %q, %v, %v", got, seqs, last)
			}
			why := new(client.StreamEnded)
			if ended := errors.Is(c.last, errEnd); ended && !errors.As(last, &why) || !ended && !errors.Is(last, c.last) {
				t.Error(last)
			}
		})
	}
}

const ms = time.Millisecond

var errEnd = errors.New("any *client.Ended")

// A reader that stops the iteration ends the stream.
func TestStoppedStreamEnds(t *testing.T) {
	s, _ := cast(t, sent(1)+":silent\n")
	k, err := client.New(s.URL, "secret", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range k.Stream(ctx, 0) {
		last = err
		cancel()
	}
	if !errors.Is(last, context.Canceled) {
		t.Error(last)
	}
}
