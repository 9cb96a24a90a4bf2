package kill_test

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"sync"
)

// deleted is the ETag of a key without an object.
const deleted = ""

// A writeState is what a client knows of a write.
type writeState uint8

const (
	unanswered   writeState = iota // no answer, or an answer that does not say the outcome
	acknowledged                   // it happened
	refused                        // it did not happen
)

// A keyWrite is a request that gives a key another object, or deletes the object.
type keyWrite struct {
	key, etag  string
	copies     bool // the ETag is that of a source, and is not known before the answer
	state      writeState
	begin, end uint64 // of the clock; while the request may still take effect, end is math.MaxUint64
}

// canStore reports whether w may have stored the object with an ETag.
func (w *keyWrite) canStore(etag string) bool {
	return w.etag == etag || w.copies && w.state == unanswered && etag != deleted
}

// A keyHistory has the writes of all clients to some keys. Its clock counts the events.
type keyHistory struct {
	mu       sync.Mutex
	clock    uint64
	contents map[string][]byte // of objects, by ETag
	recent   map[string][]*keyWrite
	all      []*keyWrite // also those before the last settled object
}

func newKeyHistory() *keyHistory {
	return &keyHistory{contents: map[string][]byte{}, recent: map[string][]*keyWrite{}}
}

// now returns the time of the clock.
func (h *keyHistory) now() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	return h.clock
}

// learn notes the content of an object that is stored in parts. It returns its ETag.
func (h *keyHistory) learn(parts ...[]byte) string {
	whole := slices.Concat(parts...)
	sum := md5.Sum(whole)
	etag := hex.EncodeToString(sum[:])
	h.mu.Lock()
	defer h.mu.Unlock()
	h.contents[etag] = whole
	return etag
}

// learnUpload notes the content of a multipart upload. It returns its ETag.
func (h *keyHistory) learnUpload(parts [][]byte) string {
	sums := md5.New()
	for _, p := range parts {
		sum := md5.Sum(p)
		sums.Write(sum[:])
	}
	etag := fmt.Sprintf("%x-%d", sums.Sum(nil), len(parts))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.contents[etag] = slices.Concat(parts...)
	return etag
}

// content returns the content with an ETag.
func (h *keyHistory) content(etag string) ([]byte, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, ok := h.contents[etag]
	return b, ok
}

// open begins a write.
func (h *keyHistory) open(w keyWrite) *keyWrite {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	w.begin, w.end = h.clock, math.MaxUint64
	h.recent[w.key], h.all = append(h.recent[w.key], &w), append(h.all, &w)
	return &w
}

// reopen begins a retry of a write that was interrupted.
func (h *keyHistory) reopen(w *keyWrite) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.end = math.MaxUint64
	if !slices.Contains(h.recent[w.key], w) {
		h.recent[w.key] = append(h.recent[w.key], w)
	}
}

// finish notes the answer of a write. A copy learns its ETag from the answer.
func (h *keyHistory) finish(w *keyWrite, state writeState, etag string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	if w.state = state; state != unanswered {
		w.end = h.clock
	}
	if w.copies {
		w.etag = etag
	}
	if state == refused {
		h.recent[w.key] = slices.DeleteFunc(h.recent[w.key], func(x *keyWrite) bool { return x == w })
	}
}

// interrupt ends every write without an answer: the process that could have done it is gone.
func (h *keyHistory) interrupt() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	for _, writes := range h.recent {
		for _, w := range writes {
			w.end = min(w.end, h.clock)
		}
	}
}

// check returns an error if no order of the writes explains that a key had the object with an ETag at some time between
// two times: each write takes effect between its begin and its end.
func (h *keyHistory) check(key, etag string, from, to uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	writes := h.recent[key]
	isReplaced := func(end uint64) bool { // by a write that began later, and was acknowledged before
		return slices.ContainsFunc(writes, func(w *keyWrite) bool { return w.state == acknowledged && w.begin > end && w.end < from })
	}
	if !slices.ContainsFunc(writes, func(w *keyWrite) bool { return w.begin == 0 }) && etag == deleted && !isReplaced(0) {
		return nil // the key had no object at first
	}
	for _, w := range writes {
		if w.begin < to && w.canStore(etag) && !isReplaced(w.end) {
			return nil
		}
	}
	text := fmt.Sprintf("%s has the ETag %q at %d..%d after:", key, etag, from, to)
	for _, w := range writes {
		text += fmt.Sprintf("\n  %q, state %d, copy %v, %d..%d", w.etag, w.state, w.copies, w.begin, w.end)
	}
	return fmt.Errorf("no order of the writes explains that %s", text)
}

// settle notes what a key has while no write is open: earlier writes cannot explain a later read any more.
func (h *keyHistory) settle(key, etag string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recent[key] = []*keyWrite{{key: key, etag: etag, state: acknowledged}}
}
