package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"macronode/adapters/httpapi"
	"macronode/core/accounting"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/types"
)

// notes are rows of tenant 1 in the view of a plane.
type notes struct {
	rows   []string
	behind bool // the index does not follow
	broken bool
	slow   bool // each page is empty, and ends after the deadline
}

func (n *notes) ReadPlane(types.Plane, func(plane.Plane, types.Time)) types.LSN { return 9 }

func (n *notes) AwaitFrame(_ context.Context, lsn types.LSN) bool { return lsn == 9 && !n.behind }

func (n *notes) PlaneRows(p types.Plane, t types.Tenant, prefix, from []byte, limit int, each func(key, value []byte) bool) (next []byte, more bool, err error) {
	if n.slow {
		time.Sleep(60 * time.Millisecond)
		return from, true, nil
	}
	if n.broken {
		return nil, false, errors.New("the disk is gone")
	}
	for _, row := range n.rows {
		switch key := []byte(row); {
		case p != types.PlaneExample, t != 1, !bytes.HasPrefix(key, prefix), bytes.Compare(key, from) < 0:
		case limit == 0:
			return key, true, nil
		default:
			limit--
			each(key, []byte("v"))
		}
	}
	return nil, false, nil
}

// noteRoutes are a list and a write.
var noteRoutes = httpapi.PlaneRoutes{Plane: types.PlaneExample, Document: []byte(`{"paths": {"/v1/notes/{name}": {"post": {"operationId": "add_note", "responses": {}}}}}`),
	Routes: []httpapi.PlaneRoute{
		{Name: "notes", Method: http.MethodGet, Path: "/v1/notes", ReadsIndex: true, Serve: func(c *httpapi.PlaneCall) error {
			page, err := c.Page()
			if err != nil {
				return err
			}
			text := ""
			next, err := c.Rows(page, func(key, _ []byte) bool { text += string(key) + " "; return true })
			if err != nil {
				return err
			}
			return c.Send(fmt.Appendf(nil, "{%q:%q}", text, next))
		}},
		{Name: "add_note", Method: http.MethodPost, Path: "/v1/notes/:name", Serve: func(c *httpapi.PlaneCall) error {
			var body struct {
				Text string `json:"text"`
			}
			h, err := c.Command(event.ScopeStore, &body)
			if err != nil {
				return err
			}
			name, err := c.PathParam()
			if err == nil && name == "bad name" {
				err = httpapi.Invalid(errors.New("name: must have no space"))
			}
			if err != nil {
				return err
			}
			return c.Execute(&accounting.RecordEvents{Header: h}, func(p event.Problem) string {
				return strings.ToUpper(p.Code())
			})
		}},
	}}

func serveNotes(t *testing.T) (*testServer, *notes) {
	t.Helper()
	n := &notes{rows: []string{"a1", "a2", "b1", "b2", "b3"}}
	s := serve(t, build(t), func(c *httpapi.Config) { c.Added, c.Planes = []httpapi.PlaneRoutes{noteRoutes}, n })
	s.client.Transport = http.DefaultTransport // the checker knows only the document of the product
	t.Cleanup(s.client.CloseIdleConnections)
	return s, n
}

// TestListOfAPlane: pages of a view, with the rules of every list.
func TestListOfAPlane(t *testing.T) {
	s, n := serveNotes(t)
	page := s.do(t, 200, "/v1/notes?limit=2&prefix=b").body
	if !strings.HasPrefix(page, `{"b1 b2 ":"`) {
		t.Errorf("the first page is %s", page)
	}
	cursor := strings.TrimSuffix(strings.TrimPrefix(page, `{"b1 b2 ":"`), `"}`)
	if rest := s.do(t, 200, "/v1/notes?limit=2&prefix=b&cursor="+cursor).body; rest != `{"b3 ":""}` {
		t.Errorf("the second page is %s", rest)
	}
	s.do(t, 400, "/v1/assets?cursor="+cursor) // of another list
	s.do(t, 400, "/v1/notes?cursor="+s.t.Name())
	s.do(t, 400, "/v1/notes?order=up")
	for id, want := range map[types.KeyID]int{2: 200, 3: 403, 4: 200, 9: 401} {
		r := s.get("/v1/notes")
		r.Header.Set("Authorization", bearer(id))
		a := s.send(r)
		if a.status != want || id == 4 && a.body != `{"":""}` {
			t.Errorf("key %d: %d %s", id, a.status, a.body)
		}
	}
	s.addBoundedKey(5, 1, event.AllScopes, "a*", "")
	r := s.get("/v1/notes")
	r.Header.Set("Authorization", bearer(5))
	if a := s.send(r); a.status != 403 {
		t.Errorf("a key with limits on accounts: %d", a.status)
	}
	n.behind = true
	s.do(t, 503, "/v1/notes")
	n.behind, n.broken = false, true
	s.do(t, 500, "/v1/notes")
	n.broken, n.slow = false, true
	s.do(t, 504, "/v1/notes")
	if admitted := s.admits[0]; admitted.Facet != types.FacetQuery || admitted.Route != 0 {
		t.Errorf("admitted was %+v", admitted)
	}
}

// TestCommandOfAPlane: a write has the rules of every write, and a problem of the node has the detail of the plane.
func TestCommandOfAPlane(t *testing.T) {
	s, _ := serveNotes(t)
	s.reply = &event.Reply{Problem: event.QuotaExceeded}
	for body, want := range map[string]string{
		`{"text":"x"}`:   `"detail":"QUOTA_EXCEEDED","code":"quota_exceeded"`,
		`{"text":1}`:     `text: must be a JSON string`,
		`{"texts":"x"}`:  `texts: is not accepted by this operation`,
		`{"text":"x"} 1`: `"status":400`,
	} {
		if a := s.send(s.post("notes/one", "k", body)); !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	if a := s.send(s.post("notes/bad%20name", "k", `{"text":"x"}`)); a.status != 400 || !strings.Contains(a.body, "name: must have no space") {
		t.Errorf("an invalid name: %d %s", a.status, a.body)
	}
	for status, change := range map[int]func(*http.Request){
		400: func(r *http.Request) { r.Header.Del("Idempotency-Key") },
		401: func(r *http.Request) { r.Header.Del("Authorization") },
		403: func(r *http.Request) { r.Header.Set("Authorization", bearer(3)) },
		405: func(r *http.Request) { r.Method = http.MethodDelete },
		415: func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
	} {
		r := s.post("notes/one", "k", `{"text":"x"}`)
		change(r)
		if a := s.send(r); a.status != status {
			t.Errorf("%d %s, want %d", a.status, a.body, status)
		}
	}
}

// TestDocumentHasTheOperationsOfPlanes: they are added to the document; nothing else changes.
func TestDocumentHasTheOperationsOfPlanes(t *testing.T) {
	s, _ := serveNotes(t)
	served := s.do(t, 200, "/openapi.json").body
	for _, want := range []string{`"/v1/notes/{name}"`, `"add_note"`, `"/v1/transfer"`, `"lookup_tx"`} {
		if !strings.Contains(served, want) {
			t.Errorf("the document lacks %s", want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a plane describes an operation that is there already")
		}
	}()
	again := noteRoutes
	again.Document = []byte(`{"paths": {"/v1/transfer": {"post": {"operationId": "other"}}}}`)
	httpapi.New(httpapi.Config{Meter: s.count, Log: nil, Added: []httpapi.PlaneRoutes{again}})
}
