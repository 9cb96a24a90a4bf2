package kill

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"macronode/core/types"
)

// Receiver takes exports over HTTP, with faults that it draws. It keeps the items of each stream without repeated ones.
type Receiver struct {
	*httptest.Server
	mu       sync.Mutex
	dice     types.Rand
	calm     bool                  // no more faults
	items    map[string][]exported // by stream: those that were taken, in order
	wrong    error
	attempts int
	Faults   int
	Again    int // items that were taken before
}

type exported struct {
	id   string
	body []byte
}

// NewReceiver returns a receiver with faults.
func NewReceiver(seed uint64) *Receiver {
	r := &Receiver{dice: types.NewRand(seed), items: map[string][]exported{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	return r
}

// AwaitAttempts waits until the node has made some more attempts. It gives up after half a minute.
func (r *Receiver) AwaitAttempts(more int) (ok bool) {
	made := func() int { r.mu.Lock(); defer r.mu.Unlock(); return r.attempts }
	for from, end := made(), time.Now().Add(30*time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if made() >= from+more {
			return true
		}
	}
	return false
}

// Calm ends the faults.
func (r *Receiver) Calm() { r.mu.Lock(); r.calm = true; r.mu.Unlock() }

// serve takes an item, before or after a fault, or not at all.
func (r *Receiver) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the node was killed
	}
	r.mu.Lock()
	r.attempts++
	fault := r.dice.Uint64n(12)
	if r.calm {
		fault = 99
	}
	if fault < 5 {
		r.Faults++
	}
	if fault != 0 && fault != 1 && fault != 2 {
		r.take(req, body)
	}
	r.mu.Unlock()
	switch fault {
	case 0, 3: // not taken, or taken: no response
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = conn.Close()
		}
	case 1:
		w.WriteHeader(http.StatusInternalServerError)
	case 2:
		w.WriteHeader(http.StatusServiceUnavailable)
	case 4: // taken, and slow
		time.Sleep(50 * time.Millisecond)
	}
}

// take keeps an item. It must be the one after the last, or one that was taken before, with the same bytes.
func (r *Receiver) take(req *http.Request, body []byte) {
	path := req.URL.EscapedPath()
	stream, text, _ := strings.Cut(path[:strings.LastIndexByte(path, '/')]+"\x00"+path[strings.LastIndexByte(path, '/')+1:], "\x00")
	n, err := strconv.Atoi(text)
	is, id := r.items[stream], req.Header.Get("Idempotency-Key")
	switch {
	case err != nil || n < 1 || n > len(is)+1:
		r.fail(fmt.Errorf("%s after %d items: %w", path, len(is), err))
	case n == len(is)+1:
		r.items[stream] = append(is, exported{id, bytes.Clone(body)})
	case is[n-1].id != id || !bytes.Equal(is[n-1].body, body):
		r.fail(fmt.Errorf("%s has another id or content than before: %s %s", path, id, body))
	default:
		r.Again++
	}
}

func (r *Receiver) fail(err error) { r.wrong = errors.Join(r.wrong, err) }

// Items returns the number of items of each stream. Its error is the first thing that was wrong.
func (r *Receiver) Items() (of map[string]int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of = map[string]int{}
	for stream, all := range r.items {
		of[stream] = len(all)
	}
	return of, r.wrong
}

// AdminGet reads a path of the admin listener.
func (n *Node) AdminGet(path string) (status int, body []byte, err error) {
	req, err := http.NewRequest(http.MethodGet, n.Admin+path, nil) //nolint:noctx // the node answers at once
	if err != nil {
		return 0, nil, err
	}
	return n.do(req, n.Token)
}
