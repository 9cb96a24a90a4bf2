package kill_test

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"macronode/chaos/kill"
)

// The tests in this file check the checks of this package: by histories of which it is known whether they are right.

// isExplained searches an order of some writes and one read of a key that respects real time, in which the read follows a
// write with its ETag. Every acknowledged write is in it, and any of the others.
func isExplained(writes []*keyWrite, etag string, from, to uint64) bool {
	var search func(done int, current *keyWrite, hasRead bool) bool
	search = func(done int, current *keyWrite, hasRead bool) bool {
		next, left := uint64(math.MaxUint64), false // what comes next began before everything that is left has ended
		for i, w := range writes {
			if done&(1<<i) == 0 && w.state == acknowledged {
				next, left = min(next, w.end), true
			}
		}
		if !hasRead {
			next = min(next, to)
		}
		if hasRead && !left {
			return true
		}
		found := current == nil && etag == deleted || current != nil && current.canStore(etag)
		if !hasRead && found && from < next && search(done, current, true) {
			return true
		}
		for i, w := range writes {
			if done&(1<<i) != 0 || w.begin >= next {
				continue
			}
			if w.state != acknowledged && hasRead || w.end < latest(writes, done, hasRead, from) {
				continue
			}
			if search(done|1<<i, w, hasRead) {
				return true
			}
		}
		return false
	}
	return search(0, nil, false)
}

// latest returns when the last of what is ordered already began: what ended before that cannot follow it.
func latest(writes []*keyWrite, done int, hasRead bool, from uint64) (begin uint64) {
	for i, w := range writes {
		if done&(1<<i) != 0 {
			begin = max(begin, w.begin)
		}
	}
	if hasRead {
		begin = max(begin, from)
	}
	return begin
}

// TestKeyHistoryAgreesWithSearch compares the check of what a read finds with a search of all orders, on small histories of which
// many are wrong.
func TestKeyHistoryAgreesWithSearch(t *testing.T) {
	var explained, rejected int
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 4).Draw(t, "writes")
		times := rapid.Permutation([]uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}).Draw(t, "times")
		at := func(i int) (from, to uint64) {
			return min(times[2*i], times[2*i+1]), max(times[2*i], times[2*i+1])
		}
		h := newKeyHistory()
		for i := range n {
			w := &keyWrite{key: "k", etag: rapid.SampledFrom([]string{deleted, "a", "b", "c"}).Draw(t, "etag")}
			w.begin, w.end = at(i + 1)
			if w.state = rapid.SampledFrom([]writeState{acknowledged, acknowledged, unanswered}).Draw(t, "state"); w.state == unanswered {
				if rapid.Bool().Draw(t, "open") {
					w.end = math.MaxUint64
				}
				w.copies = w.etag != deleted && rapid.Bool().Draw(t, "copies")
			}
			h.recent["k"] = append(h.recent["k"], w)
		}
		from, to := at(0)
		etag := rapid.SampledFrom([]string{deleted, "a", "b", "c"}).Draw(t, "read")
		want, err := isExplained(h.recent["k"], etag, from, to), h.check("k", etag, from, to)
		if want != (err == nil) {
			t.Fatalf("the read of %q at %d..%d is explained by an order: %v; the check: %v", etag, from, to, want, err)
		}
		if err == nil {
			explained++
		} else {
			rejected++
		}
	})
	t.Logf("%d histories are right, %d wrong", explained, rejected)
	if explained == 0 || rejected == 0 {
		t.Errorf("%d histories are right, %d wrong: one kind is missing", explained, rejected)
	}
}

// TestKeyHistorySettles: what is read while no write is open replaces the writes before it.
func TestKeyHistorySettles(t *testing.T) {
	h := newKeyHistory()
	w := h.open(keyWrite{key: "k", etag: "a"})
	h.interrupt()
	for _, etag := range []string{deleted, "a"} {
		if err := h.check("k", etag, h.now(), h.now()); err != nil {
			t.Errorf("%q after a write without an answer: %v", etag, err)
		}
	}
	h.settle("k", deleted)
	if err := h.check("k", "a", h.now(), h.now()); err == nil {
		t.Error("the write takes effect after a read that did not find it")
	}
	h.reopen(w)
	h.finish(w, refused, "")
	if err := h.check("k", "a", h.now(), h.now()); err == nil {
		t.Error("a write that was refused is read")
	}
}

// TestJournalOfObjectsIsChecked: each acknowledged write is in the journal, and nothing else but writes without an answer.
func TestJournalOfObjectsIsChecked(t *testing.T) {
	write := func(state writeState, etag string, copies bool) *keyWrite {
		return &keyWrite{key: "k", etag: etag, state: state, copies: copies}
	}
	for name, test := range map[string]struct {
		writes []*keyWrite
		stored map[string]int // by ETag
		right  bool
	}{
		"acknowledged":               {[]*keyWrite{write(acknowledged, "a", false)}, map[string]int{"a": 1}, true},
		"acknowledged, not stored":   {[]*keyWrite{write(acknowledged, "a", false)}, nil, false},
		"acknowledged, stored twice": {[]*keyWrite{write(acknowledged, "a", false)}, map[string]int{"a": 2}, false},
		"unanswered, stored":         {[]*keyWrite{write(unanswered, "a", false)}, map[string]int{"a": 1}, true},
		"unanswered, not stored":     {[]*keyWrite{write(unanswered, "a", false)}, nil, true},
		"refused, stored":            {[]*keyWrite{write(refused, "a", false)}, map[string]int{"a": 1}, false},
		"never sent":                 {nil, map[string]int{"a": 1}, false},
		"copy of an unknown source":  {[]*keyWrite{write(unanswered, "", true)}, map[string]int{"a": 1}, true},
		"one copy, two objects":      {[]*keyWrite{write(unanswered, "", true)}, map[string]int{"a": 1, "b": 1}, false},
		"deleted":                    {[]*keyWrite{write(acknowledged, deleted, false)}, nil, true},
	} {
		j := &paidJournal{stored: map[keyETag]int{}}
		for etag, n := range test.stored {
			j.stored[keyETag{"k", etag}] = n
		}
		if err := j.checkWrites(&keyHistory{all: test.writes}); (err == nil) != test.right {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A lyingStore answers requests for objects. lie is what it does wrong; empty: nothing.
type lyingStore struct {
	lie     string
	objects map[string][]byte
	left    int // requests until it stops answering
}

func (s *lyingStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.left--; s.left < 0 {
		panic(http.ErrAbortHandler)
	}
	body, _ := io.ReadAll(r.Body)
	had, ok := s.objects[r.URL.Path]
	status := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[ok]
	switch r.Method {
	case http.MethodPut:
		if s.lie != "loses what it acknowledged" {
			s.objects[r.URL.Path] = body
		}
		if status = http.StatusCreated; ok {
			status = http.StatusOK
		}
	case http.MethodDelete:
		if s.lie != "keeps what was deleted" {
			delete(s.objects, r.URL.Path)
		}
	case http.MethodGet:
		if s.lie == "changes a byte" && len(had) > 0 {
			had = slices.Concat(had[:len(had)-1], []byte{'x'})
		}
		if s.lie == "cuts the end" && len(had) > 0 {
			had = had[:len(had)-1]
		}
	}
	if s.lie == "forgets everything once" && s.left == 50 {
		clear(s.objects)
	}
	w.WriteHeader(status)
	_, _ = w.Write(had)
}

// TestObjectClientDetectsLies: a client accepts a server that keeps its objects, and no other one.
func TestObjectClientDetectsLies(t *testing.T) {
	for _, lie := range []string{"", "loses what it acknowledged", "keeps what was deleted", "changes a byte", "cuts the end", "forgets everything once"} {
		store := &lyingStore{lie: lie, objects: map[string][]byte{}, left: 100}
		server := httptest.NewServer(store)
		err := kill.NewObjectClient(1).Run(t.Context(), &kill.Node{HTTP: server.URL})
		server.Close()
		if (err == nil) != (lie == "") {
			t.Errorf("a store that %q: %v", lie, err)
		}
		if lie == "" && store.left >= 0 {
			t.Errorf("the client stopped %d requests early", store.left)
		}
	}
}
