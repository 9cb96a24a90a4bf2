package index_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"macronode/adapters/index"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// noteView has a row for each record: the payload is a key of one byte and its value.
var noteView = index.View{Plane: types.PlaneExample, Rows: func(r *record.Record, _ types.Time, put func(key, value []byte)) {
	if r.Problem == event.None {
		put(r.Payload[:1], r.Payload[1:])
	}
}}

// notes makes frames of a plane with a View, and knows its rows.
type notes struct {
	*world
	rows map[types.Tenant]map[string]string
}

// change makes a frame that sets a row, removes one, or has no row.
func (n *notes) change() {
	r := record.Record{Kind: record.PlaneKind(types.PlaneExample, 0), Tenant: types.Tenant(1 + n.pick(2)), Key: text("k")}
	key, value := string(rune('a'+n.pick(20))), ""
	switch n.pick(4) {
	case 0:
	case 1:
		r.Problem = event.AmountLimitExceeded
	default:
		value = string(rune('A' + n.pick(26)))
	}
	if r.Problem == event.None {
		r.Payload = []byte(key + value)
		n.rows[r.Tenant][key] = value
	}
	s := record.Sealed{Journal: 3, LSN: types.LSN(len(n.shelf.frames) + 1)}
	s.Body, _ = record.Add(record.Begin(nil, s.LSN, 1_700_000_000_000), 0, &r)
	if s.LSN > 1 {
		s.Prev = n.shelf.frames[s.LSN-2].Root
	}
	s.Root, _ = digest.Chain(nil, s.Prev, s.Body)
	n.shelf.add(s)
	n.shelf.upto.Store(uint64(s.LSN))
}

// compare lists the rows of both tenants, page by page.
func (n *notes) compare(t tb, x *index.Indexer) {
	for tenant := types.Tenant(1); tenant <= 2; tenant++ {
		want, got := "", ""
		for _, key := range slices.Sorted(maps.Keys(n.rows[tenant])) {
			if value := n.rows[tenant][key]; value != "" {
				want += key + value
			}
		}
		var from []byte
		for more := true; more; {
			var err error
			from, more, err = x.PlaneRows(types.PlaneExample, tenant, nil, from, 1+n.pick(5), func(key, value []byte) bool {
				got += string(key) + string(value)
				return true
			})
			if err != nil {
				t.Fatalf("%v", err)
			}
		}
		if got != want {
			t.Fatalf("rows of tenant %d: %s, want %s", tenant, got, want)
		}
	}
}

// TestViewIsListed: the rows of a plane's view are those of the last records, whatever is in tails and in tables.
func TestViewIsListed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := diced(rapid.Uint64().Draw(t, "seed"))
		n := &notes{newWorld(pick), map[types.Tenant]map[string]string{1: {}, 2: {}}}
		limits := small(n.pick)
		limits.Frames = 1 + n.pick(90)
		fs := vfs.NewMem()
		d := newDesk(t, n.world, fs, limits).open()
		d.c.Views = []index.View{noteView}
		d.x = index.New(d.c).On(fs, 3)
		d.start()
		for range 1 + n.pick(5) {
			from := len(n.shelf.frames)
			for range 1 + n.pick(40) {
				n.change()
			}
			d.x.Offer(n.shelf.frames[from:])
			d.comes()
			n.compare(t, d.x)
		}
		if err := d.ends(); err != nil {
			t.Fatalf("it ends with %v", err)
		}
	})
}
