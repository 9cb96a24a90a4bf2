package index_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"macronode/adapters/index"
	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/idempotency"
	"macronode/core/record"
	"macronode/core/types"
)

// keyed returns a frame that issues 1 to ann under a key, and optionally a ref.
func keyed(prev []record.Sealed, at types.Time, key, ref string) record.Sealed {
	n := uint64(len(prev) + 1)
	r := record.Record{Kind: record.Posted, Op: event.Issue, Tenant: 1, Key: text(key), Hash: types.RequestHash{1}, To: text("ann"), Asset: text("EUR"),
		Amount: types.MinorUnits(1), Seq: types.Seq(n), FromBalance: types.MinorUnits(n), ToBalance: types.MinorUnits(n), Ref: text(ref)}
	body, _ := record.Add(record.Begin(nil, types.LSN(n), at), 0, &r)
	s := record.Sealed{Journal: 3, LSN: types.LSN(n), Body: body}
	if n > 1 {
		s.Prev = prev[n-2].Root
	}
	s.Root, _ = digest.Chain(nil, s.Prev, body)
	return s
}

// keys returns a world of such frames with a number of ms in between.
func keys(count int, apart types.Time) *world {
	w := newWorld(diced(1))
	for n := range count {
		w.shelf.frames = append(w.shelf.frames, keyed(w.shelf.frames, 1_000_000+types.Time(n)*apart, "k"+itoa(n+1), "r"+itoa(n+1)))
	}
	w.shelf.upto.Store(uint64(count))
	return w
}

// TestMarkIsReadBeforeLookup: the index advances between a look-up and the node, which has
// evicted the key. Only a mark that was read before the look-up shows the node that the answer is
// stale.
func TestMarkIsReadBeforeLookup(t *testing.T) {
	w := keys(3, 1)
	d := newDesk(t, w, vfs.NewMem(), index.Limits{}).open()
	w.shelf.upto.Store(2)
	d.start()
	d.comes()
	in := event.Request{Header: command.Header{Tenant: 1}, Item: event.Item{Op: event.Issue}}
	in.Key.ID = digest.Name([]byte("k3"))
	if err := d.x.Look(&in); err != nil || in.IndexedTo != 2 || in.Prior != (command.PriorOutcome{}) {
		t.Fatalf("at 2 the index returns %+v up to %v, %v", in.Prior, in.IndexedTo, err)
	}

	third := types.NewTxID(3, types.Position{LSN: 3})
	node := idempotency.New(idempotency.Limits{Keys: 8, PerTenant: 8, Tenants: 2, TTL: ttl * time.Millisecond}, 1)
	key := idempotency.Key{Tenant: 1, Name: in.Key.ID}
	node.Remember(key, command.PriorOutcome{Hash: types.RequestHash{1}, ID: third, At: 1_000_002})
	w.shelf.upto.Store(3)
	d.x.Offer(w.shelf.frames[2:])
	d.comes()
	node.Forget(3)

	if node.IndexReadIsFresh(in.IndexedTo, 1_000_003, false) {
		t.Error("the node accepts an answer from before frame 3")
	}
	late := in
	late.IndexedTo = d.x.Mark().LSN
	if _, found, _ := node.Resolve(key, types.RequestHash{1}, late.Prior, 1_000_003); !node.IndexReadIsFresh(late.IndexedTo, 1_000_003, false) || found {
		t.Error("with a mark read after the look-up, the key would not be new again: this test shows nothing")
	}
	if err := d.x.Look(&in); err != nil || in.IndexedTo != 3 || in.Prior.ID != third || !node.IndexReadIsFresh(in.IndexedTo, 1_000_003, false) {
		t.Fatalf("on a retry the index returns %+v up to %v, %v", in.Prior, in.IndexedTo, err)
	}
	if id, found, err := node.Resolve(key, types.RequestHash{1}, in.Prior, 1_000_003); !found || err != nil || id != third {
		t.Errorf("on a retry the key is new: %x, %v", id, err)
	}
	if err := d.ends(); err != nil {
		t.Fatal(err)
	}
}

// TestLook: the result of look-ups for requests and queries, from the tails and from the tables;
// and LSN 0 if the look-up is not needed.
func TestLook(t *testing.T) {
	w := keys(6, 1)
	d := newDesk(t, w, vfs.NewMem(), index.Limits{Frames: 3}).open()
	aged := true
	d.c.Aged = func() bool { return aged }
	d.x = index.New(d.c).On(d.fs, 3)
	d.start()
	d.comes()
	id := func(n uint64) types.TxID { return types.NewTxID(3, types.Position{LSN: types.LSN(n)}) }
	for n := uint64(1); n <= 6; n++ {
		in := event.Request{Header: command.Header{Tenant: 1, Prior: command.PriorOutcome{At: 9}}, Item: event.Item{Op: event.Batch}, Items: make([]event.Item, 3)}
		in.Key.ID = digest.Name([]byte("k" + itoa(int(n))))
		in.Items[0].Ref = types.Name{ID: digest.Name([]byte("r" + itoa(int(n)))), Text: []byte("r")}
		in.Items[1].Ref = types.Name{ID: digest.Name([]byte("r9")), Text: []byte("r")}
		in.Items[1].PriorRef, in.Items[2].PriorRef = id(9), id(9)
		err := d.x.Look(&in)
		want := command.PriorOutcome{Hash: types.RequestHash{1}, ID: id(n), At: 999_999 + types.Time(n)}
		if err != nil || in.IndexedTo != 6 || in.Prior != want || in.Items[0].PriorRef != id(n) || in.Items[1].PriorRef != id(0) && in.Items[1].PriorRef != (types.TxID{}) || in.Items[2].PriorRef != (types.TxID{}) {
			t.Fatalf("key and ref %d: %+v, %v", n, in, err)
		}
		in.Tenant = 2
		if err := d.x.Look(&in); err != nil || in.IndexedTo != 6 || in.Prior != (command.PriorOutcome{}) || in.Items[0].PriorRef != (types.TxID{}) {
			t.Fatalf("another tenant gets %+v, %v", in, err)
		}
		find := event.FindOutcome{Tenant: 1, Key: types.Name{ID: digest.Name([]byte("k" + itoa(int(n))))}}
		if err := d.x.Look(&find); err != nil || find.IndexedTo != 6 || find.Prior != want {
			t.Fatalf("a query for key %d gets %+v, %v", n, find, err)
		}
		aged = false
		in = event.Request{Header: command.Header{Tenant: 1, IndexedTo: 4, Prior: want}}
		if err := d.x.Look(&in); err != nil || in.IndexedTo != 0 || in.Prior != (command.PriorOutcome{}) {
			t.Fatalf("where the node need not know it claims %+v, %v", in, err)
		}
		if err := d.x.Look(&find); err != nil || find.IndexedTo != 0 || find.Prior != (command.PriorOutcome{}) {
			t.Fatalf("where the node need not know it claims %+v, %v", find, err)
		}
		in.Ref = types.Name{ID: digest.Name([]byte("r" + itoa(int(n)))), Text: []byte("r")}
		if err := d.x.Look(&in); err != nil || in.IndexedTo != 6 || in.PriorRef != id(n) {
			t.Fatalf("a ref is always looked up: %+v, %v", in, err)
		}
		aged = true
	}
	if err := d.ends(); err != nil {
		t.Fatal(err)
	}
	if err := d.x.Look(&event.Request{}); !errors.Is(err, index.ErrShut) {
		t.Fatalf("an index that does not run says %v", err)
	}
}

// TestExpiredKeysLeaveTables: expired keys are removed, and nothing else.
func TestExpiredKeysLeaveTables(t *testing.T) {
	w := keys(200, 250) // 50 s; the TTL is 4 s
	d := newDesk(t, w, vfs.NewMem(), index.Limits{Frames: 10}).open()
	d.start()
	d.comes()
	if err := d.ends(); err != nil {
		t.Fatal(err)
	}
	d.start()
	const key, ref, entry = 2, 3, 4
	if got := d.x.Rows(key); got < 16 || got > 16+4 {
		t.Errorf("the tables have %d keys, want the 16 of 4 s and at most a bucket more", got)
	}
	if refs, entries := d.x.Rows(ref), d.x.Rows(entry); refs != 200 || entries != 400 {
		t.Errorf("the tables have %d refs and %d entries, want 200 and 400", refs, entries)
	}
	for n := 1; n <= 200; n++ {
		lives := n > 184
		if _, found, err := d.x.Key(1, digest.Name([]byte("k"+itoa(n)))); err != nil || found != lives {
			t.Errorf("key %d is there: %v, %v", n, found, err)
		}
	}
	if err := d.ends(); err != nil {
		t.Fatal(err)
	}
}

// TestOfferNeverWaits: frames without room are read from the journal.
func TestOfferNeverWaits(t *testing.T) {
	w := grown(5, 50, 50)
	d := newDesk(t, w, vfs.NewMem(), index.Limits{Ring: 4, Frames: 6, Page: 100}) // the gate is closed
	w.shelf.upto.Store(0)
	d.start()
	for n, s := range w.shelf.frames {
		w.shelf.upto.Store(uint64(n + 1))
		d.x.Offer([]record.Sealed{s}) // no reader: it must not wait
	}
	if s := d.x.Stats(); s.Lag != 50 || s.Mark.LSN != 0 {
		t.Errorf("folded without room: %+v", s)
	}
	d.open().comes()
	same(t, w, d.x)
	if s := d.x.Stats(); s.Lag != 0 || s.Mark.LSN != 50 || s.Kept.LSN+types.LSN(s.Tail) != 50 {
		t.Errorf("all is folded: %+v", s)
	}
	if err := d.ends(); err != nil {
		t.Fatal(err)
	}
}

// TestAwait: a fold wakes its waiting readers; one reader too many, or a stopping index, returns
// false.
func TestAwait(t *testing.T) {
	w := keys(3, 1)
	d := newDesk(t, w, vfs.NewMem(), index.Limits{Waiters: 2}).open()
	if d.x.Await(t.Context(), 1, 1) {
		t.Fatal("an index that does not run has it")
	}
	w.shelf.upto.Store(2)
	d.start()
	d.comes()
	if !d.x.Await(t.Context(), 1, 2) || !d.x.Await(t.Context(), 9, 0) {
		t.Fatal("waits for an existing movement")
	}
	ctx, stop := context.WithCancel(t.Context())
	got := make(chan bool, 2)
	go func() { got <- d.x.Await(t.Context(), 1, 3) }()
	go func() { got <- d.x.Await(ctx, 2, 1) }()
	d.waiting(2)
	if d.x.Await(t.Context(), 1, 3) {
		t.Fatal("a third one may wait")
	}
	stop()
	if <-got {
		t.Fatal("a cancelled wait returns true")
	}
	w.shelf.upto.Store(3)
	d.x.Offer(w.shelf.frames[2:])
	if !<-got {
		t.Fatal("a waiting reader is not woken")
	}
	go func() { got <- d.x.Await(t.Context(), 1, 4) }()
	d.waiting(1)
	if err := d.ends(); err != nil {
		t.Fatal(err)
	}
	if <-got {
		t.Fatal("an index that has stopped has it")
	}
}

// TestRebuild: a request rebuilds the index.
func TestRebuild(t *testing.T) {
	w := grown(6, 30, 30)
	d := newDesk(t, w, vfs.NewMem(), index.Limits{Frames: 7, Page: 100}).open()
	d.start()
	d.comes()
	if err := d.x.Run(t.Context()); !errors.Is(err, index.ErrRunning) {
		t.Errorf("it runs twice: %v", err)
	}
	d.x.Rebuild()
	if err := <-d.done; !errors.Is(err, index.ErrDamaged) {
		t.Fatalf("it ends with %v", err)
	}
	d.start()
	d.comes()
	same(t, w, d.x)
	if err := d.ends(); err != nil || d.x.Stats().Rebuilt != 1 {
		t.Fatalf("it ends with %v: %+v", err, d.x.Stats())
	}
}

// TestLookupsDuringFolding: look-ups while frames are folded and tails are written find every key
// up to the mark that they return.
func TestLookupsDuringFolding(t *testing.T) {
	const frames = 3000
	w := keys(frames, 0)
	w.shelf.upto.Store(0)
	d := newDesk(t, w, vfs.NewMem(), index.Limits{Frames: 50, Ring: 64}).open()
	d.start()
	over := make(chan struct{})
	go func() {
		defer close(over)
		for n := range frames {
			w.shelf.upto.Store(uint64(n + 1))
			d.x.Offer(w.shelf.frames[n : n+1])
		}
	}()
	for asked := 0; d.x.Mark().LSN < frames; asked++ {
		n := d.x.Mark().LSN + types.LSN(asked%3)
		if n == 0 || n > frames {
			continue
		}
		in := event.Request{Header: command.Header{Tenant: 1}, Item: event.Item{Ref: types.Name{ID: digest.Name([]byte("r" + itoa(int(n)))), Text: []byte("r")}}}
		in.Key.ID = digest.Name([]byte("k" + itoa(int(n))))
		if err := d.x.Look(&in); err != nil {
			t.Fatal(err)
		}
		key, ref := in.Prior.ID.Position().LSN, in.PriorRef.Position().LSN
		if in.IndexedTo >= n && (key != n || ref != n) || key > 0 && key != n || ref > 0 && ref != n {
			t.Fatalf("up to %v key %d is of %v, its ref of %v", in.IndexedTo, n, key, ref)
		}
	}
	<-over
	d.comes()
	if err := d.ends(); err != nil {
		t.Fatal(err)
	}
}

// TestTailMemoryIsBounded: for frames of any size and a slow disk, the tails stay within their
// memory.
func TestTailMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine takes in 45,000 records: without -short")
	}
	w := newWorld(diced(1))
	const frames = 90
	for n := range frames {
		lsn := types.LSN(n + 1)
		body := record.Begin(nil, lsn, 1_000_000)
		for i := range 500 {
			seq := types.Seq(n*500 + i + 1)
			body, _ = record.Add(body, 0, &record.Record{Kind: record.Posted, Op: event.Transfer, Tenant: 1, Key: text("k"), From: text("from:" + itoa(int(seq))), To: text("to:" + itoa(int(seq))),
				Asset: text("EUR"), Amount: types.MinorUnits(1), Nonce: 1, Seq: seq, FromBalance: types.MinorUnits(1), ToBalance: types.MinorUnits(1)})
		}
		s := record.Sealed{Journal: 3, LSN: lsn, Body: body}
		if n > 0 {
			s.Prev = w.shelf.frames[n-1].Root
		}
		s.Root = types.Root{byte(n), 1}
		w.shelf.add(s)
	}
	w.shelf.upto.Store(frames)
	d := newDesk(t, w, vfs.NewMem(), index.Limits{Tail: 4 << 20}).open()
	d.start()
	d.comes()
	if taken, most := d.x.Taken(); taken > most || taken < 4<<20 {
		t.Errorf("the tails take %d bytes of %d", taken, most)
	}
	if s := d.x.Stats(); s.Ingested < 2 {
		t.Errorf("the tails were never full: %+v", s)
	}
	if most := index.Bytes(d.c.Limits); most < 100<<20 || most > 200<<20 {
		t.Errorf("the bound is %d bytes", most)
	}
	if err := d.ends(); err != nil {
		t.Fatal(err)
	}
}
