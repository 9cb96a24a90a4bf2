package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"macronode/adapters/httpapi"
	"macronode/adapters/s3"
	"macronode/core/event"
	"macronode/core/types"
)

// A noticed index calls read before each read of a list.
type noticed struct {
	httpapi.Index
	read func()
}

func (n noticed) Changes(t types.Tenant, after types.Seq, limit int) ([]event.Change, event.Watermark, error) {
	n.read()
	return n.Index.Changes(t, after, limit)
}

func (n noticed) Entries(t types.Tenant, account []byte, after types.Seq, limit int, yield func(*event.Entry) bool) (event.Watermark, error) {
	n.read()
	return n.Index.Entries(t, account, after, limit, yield)
}

func (n noticed) Accounts(t types.Tenant, prefix, after []byte, limit int, yield func(account, asset []byte) bool) (event.Watermark, error) {
	n.read()
	return n.Index.Accounts(t, prefix, after, limit, yield)
}

func (n noticed) Assets(t types.Tenant, prefix, after []byte, limit int) ([][]byte, event.Watermark, error) {
	n.read()
	return n.Index.Assets(t, prefix, after, limit)
}

func (n noticed) Holds(t types.Tenant, account []byte, state event.HoldOutcome, any bool, from types.TxID, limit int, at types.Time) ([]event.HoldView, types.TxID, event.Watermark, error) {
	n.read()
	return n.Index.Holds(t, account, state, any, from, limit, at)
}

type noticedKeys struct {
	httpapi.ReadModel
	read func()
}

func (n noticedKeys) Keys(t types.Tenant, skip, limit int) []event.Key {
	n.read()
	return n.ReadModel.Keys(t, skip, limit)
}

type noticedNames struct {
	s3.Names
	read func()
}

func (n noticedNames) Objects(ctx context.Context, t types.Tenant, bucket types.NameHash, prefix, from string, yield func(s3.Listed) bool) error {
	n.read()
	return n.Names.Objects(ctx, t, bucket, prefix, from, yield)
}

type noticedRows struct {
	httpapi.PlaneState
	read func()
}

func (n noticedRows) PlaneRows(p types.Plane, t types.Tenant, prefix, from []byte, limit int, each func(key, value []byte) bool) ([]byte, bool, error) {
	n.read()
	return n.PlaneState.PlaneRows(p, t, prefix, from, limit, each)
}

// serveNoticed serves all lists, and calls read before each read of one.
func serveNoticed(t *testing.T, h *backend, read func()) *testServer {
	t.Helper()
	s := serve(t, h, func(c *httpapi.Config) {
		c.Index, c.ReadModel, c.Names = noticed{c.Index, read}, noticedKeys{c.ReadModel, read}, noticedNames{c.Names, read}
		c.Added, c.Planes = []httpapi.PlaneRoutes{noteRoutes}, noticedRows{&notes{rows: []string{"a1"}}, read}
		c.Deadline = 10 * time.Second
	})
	s.client.Transport = http.DefaultTransport // the checker knows only the document of the product
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

// TestLargePagesTakeASlot: a list that may have more rows than a page without a limit takes a slot while it is read, and others take none.
// So exports and event streams, which have the slots, never delay a page of the default size.
func TestLargePagesTakeASlot(t *testing.T) {
	var s *testServer
	reads, withSlot := 0, 0
	s = serveNoticed(t, manyAccounts(t), func() {
		depth, _ := s.api.HistoryReads()
		reads, withSlot = reads+1, withSlot+depth
	})
	for _, list := range []string{"/v1/changes?", "/v1/accounts?", "/v1/assets?", "/v1/holds?account=user:0&", "/v1/accounts/user:0/entries?", "/v1/keys?", "/o?", "/v1/notes?"} {
		for query, takes := range map[string]bool{"": false, "limit=100": false, "limit=101": true, "limit=1000": true} {
			reads, withSlot = 0, 0
			if a := s.send(s.get(list + query)); a.status != http.StatusOK {
				t.Fatalf("%s%s: %d %s", list, query, a.status, a.body)
			}
			if want := map[bool]int{true: reads}[takes]; reads == 0 || withSlot != want {
				t.Errorf("%s%s: %d reads, %d with a slot, want %d", list, query, reads, withSlot, want)
			}
			if depth, _ := s.api.HistoryReads(); depth != 0 {
				t.Errorf("%s%s: %d slots are taken after the response", list, query, depth)
			}
		}
	}
}

// TestLargePagesReadInTurn: the large pages of a tenant are read one after the other, and leave the other slot to another tenant. A page that
// gets no slot until its deadline is rejected.
func TestLargePagesReadInTurn(t *testing.T) {
	h := build(t)
	h.addKey(90, 90, event.AllScopes)
	var now, most atomic.Int32
	released := make(chan struct{})
	s := serveNoticed(t, h, func() {
		defer now.Add(-1)
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		<-released
	})
	pages := []types.KeyID{1, 1, 1, 1, 90, 90}
	done := make(chan answer, len(pages))
	for _, key := range pages {
		r := s.get("/v1/changes?limit=1000")
		r.Header.Set("Authorization", bearer(key))
		go func() { done <- s.send(r) }()
	}
	for now.Load() < 2 || now.Load() == 2 && s.api.HistoryWaits() < len(pages)-2 {
		runtime.Gosched() // until two are read, and all others wait
	}
	close(released)
	for range pages {
		if a := <-done; a.status != http.StatusOK {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if most.Load() != 2 {
		t.Errorf("%d pages were read at the same time", most.Load())
	}
}

// TestLargePageIsRejectedAtItsDeadline: a large page that gets no slot until its deadline is rejected, and keeps none.
func TestLargePageIsRejectedAtItsDeadline(t *testing.T) {
	h := build(t)
	s := serve(t, h)
	release := s.api.TakeHistoryReads(types.DefaultTenant)
	if a := s.send(s.get("/v1/changes?limit=1000")); a.status != http.StatusTooManyRequests || !strings.Contains(a.body, "large pages") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := s.send(s.get("/v1/changes")); a.status != http.StatusOK {
		t.Errorf("a page of the default size: %d %s", a.status, a.body)
	}
	release()
	if a := s.send(s.get("/v1/changes?limit=1000")); a.status != http.StatusOK {
		t.Errorf("after the others: %d %s", a.status, a.body)
	}
	if depth, _ := s.api.HistoryReads(); depth != 0 {
		t.Errorf("%d slots are taken", depth)
	}
}

// manyAssets is an index with one account, which has many assets.
type manyAssets struct{ httpapi.Index }

const assetsOfOne = 600

func (manyAssets) Accounts(_ types.Tenant, _, after []byte, limit int, yield func(account, asset []byte) bool) (m event.Watermark, err error) {
	for i := range assetsOfOne {
		asset := fmt.Sprintf("A%03d", i)
		if string(after) >= "a\x00"+asset {
			continue
		}
		if limit--; limit < 0 || !yield([]byte("a"), []byte(asset)) {
			break
		}
	}
	return m, nil
}

// TestAccountWithManyAssetsTakesASlot: a page of few accounts has many balances if an account has many assets. What exceeds a part is
// read with a slot.
func TestAccountWithManyAssetsTakesASlot(t *testing.T) {
	var s *testServer
	var depths []int
	s = serve(t, build(t), func(c *httpapi.Config) {
		c.Index = noticed{manyAssets{c.Index}, func() {
			depth, _ := s.api.HistoryReads()
			depths = append(depths, depth)
		}}
	})
	a := s.send(s.get("/v1/accounts"))
	if got := strings.Count(a.body, `"asset"`); got != assetsOfOne {
		t.Errorf("%d balances, %d %.300s", got, a.status, a.body)
	}
	if want := []int{0, 1, 1, 1}; !slices.Equal(depths, want) {
		t.Errorf("slots at the reads: %v, want %v", depths, want)
	}
}
