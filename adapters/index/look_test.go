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

// keyed is a frame that issues 1 to ann under a key, and perhaps a ref.
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

// keys is a world of such frames, so many ms apart.
func keys(count int, apart types.Time) *world {
	w := newWorld(diced(1))
	for n := range count {
		w.shelf.frames = append(w.shelf.frames, keyed(w.shelf.frames, 1_000_000+types.Time(n)*apart, "k"+itoa(n+1), "r"+itoa(n+1)))
	}
	w.shelf.upto.Store(uint64(count))
	return w
}

// TestStale is why the mark is read first: the index comes on between a look-up and the
// node, which forgets, and only what the index had before the look-up tells the
// node that the answer is too old.
func TestStale(t *testing.T) {
	w := keys(3, 1)
	d := newDesk(t, w, vfs.NewMem(), index.Limits{}).open()
	w.shelf.upto.Store(2)
	d.start()
	d.comes()
	in := event.Request{Header: command.Header{Tenant: 1}, Item: event.Item{Op: event.Issue}}
	in.Key.ID = digest.Name([]byte("k3"))
	if err := d.x.Look(&in); err != nil || in.IndexedTo != 2 || in.Prior != (command.PriorOutcome{}) {
		t.Fatalf("at 2 the index says %+v up to %v, %v", in.Prior, in.IndexedTo, err)
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
		t.Error("the node takes what the index said before it had frame 3")
	}
	late := in
	late.IndexedTo = d.x.Mark().LSN
	if _, found, _ := node.Resolve(key, types.RequestHash{1}, late.Prior, 1_000_003); !node.IndexReadIsFresh(late.IndexedTo, 1_000_003, false) || found {
		t.Error("with a mark that was read after the look-up the key would not be new once more: this test shows nothing")
	}
	if err := d.x.Look(&in); err != nil || in.IndexedTo != 3 || in.Prior.ID != third || !node.IndexReadIsFresh(in.IndexedTo, 1_000_003, false) {
		t.Fatalf("asked again the index says %+v up to %v, %v", in.Prior, in.IndexedTo, err)
	}
	if id, found, err := node.Resolve(key, types.RequestHash{1}, in.Prior, 1_000_003); !found || err != nil || id != third {
		t.Errorf("asked again the key is new: %x, %v", id, err)
	}
	if err := d.ends(); err != nil {
		t.Fatal(err)
	}
}

// TestLook: what is told of a request and of a question, from the tails and from the
// tables; and nothing, which claims nothing, where the node need not know.
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
			t.Fatalf("of key and ref %d it says %+v, %v", n, in, err)
		}
		in.Tenant = 2
		if err := d.x.Look(&in); err != nil || in.IndexedTo != 6 || in.Prior != (command.PriorOutcome{}) || in.Items[0].PriorRef != (types.TxID{}) {
			t.Fatalf("to another tenant it tells %+v, %v", in, err)
		}
		find := event.FindOutcome{Tenant: 1, Key: types.Name{ID: digest.Name([]byte("k" + itoa(int(n))))}}
		if err := d.x.Look(&find); err != nil || find.IndexedTo != 6 || find.Prior != want {
			t.Fatalf("who asks for key %d is told %+v, %v", n, find, err)
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
			t.Fatalf("a ref is asked for in any case: %+v, %v", in, err)
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

// TestExpired: keys whose time is over leave the tables, and nothing else does.
func TestExpired(t *testing.T) {
	w := keys(200, 250) // 50 s; a key lives for 4
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

// TestOffer: what there is no room for is not waited for, and is read from the journal.
func TestOffer(t *testing.T) {
	w := grown(5, 50, 50)
	d := newDesk(t, w, vfs.NewMem(), index.Limits{Ring: 4, Frames: 6, Page: 100}) // the gate is shut
	w.shelf.upto.Store(0)
	d.start()
	for n, s := range w.shelf.frames {
		w.shelf.upto.Store(uint64(n + 1))
		d.x.Offer([]record.Sealed{s}) // nobody takes them: it must not wait
	}
	if s := d.x.Stats(); s.Lag != 50 || s.Mark.LSN != 0 {
		t.Errorf("nothing is folded: %+v", s)
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

// TestAwait: who waits for a movement is woken when it is there; too many, or for an index
// that stops, do not wait.
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
		t.Fatal("what is there is waited for")
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
		t.Fatal("who gave up is told that it is there")
	}
	w.shelf.upto.Store(3)
	d.x.Offer(w.shelf.frames[2:])
	if !<-got {
		t.Fatal("who waited is not woken")
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

// TestRebuild: whoever asks for it gets an index that was made anew.
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

// TestLooksBeside: whoever asks while frames are folded, and tails become tables, is told
// of every key of the frames up to the mark that the answer claims.
func TestLooksBeside(t *testing.T) {
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

// TestBound: however large the frames and however slow the disk, the tails take no more
// memory than they were given.
func TestBound(t *testing.T) {
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
