package index

import (
	"context"
	"testing"
	"time"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// TestLookupSeesRowsThatMovedToTables: between the look-ups of one request, the rows of a tail
// may move to a table, or several tails may. Each look-up still finds them; otherwise a ref could
// be used twice.
func TestLookupSeesRowsThatMovedToTables(t *testing.T) {
	for last := types.LSN(2); last <= 8; last += 2 {
		looksBeside(t, last)
	}
}

// looksBeside looks up twice, with new tables of two frames each in between, up to last.
func looksBeside(t *testing.T, last types.LSN) {
	t.Helper()
	tables := make(chan types.LSN, 4)
	x := New(Config{Dir: t.TempDir(), TTL: time.Hour, Limits: Limits{Frames: 2, Interval: time.Hour}, Journal: blank{},
		Indexed: func(upto types.LSN) { tables <- upto }})
	done := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { done <- x.Run(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	if upto := <-tables; upto > 0 {
		t.Fatalf("a new index has %v in its tables", upto)
	}
	x.Offer([]record.Sealed{issued(1, "inv-1")})
	if !x.AwaitFrame(ctx, 1) {
		t.Fatal("the first frame is not folded")
	}
	var upto types.LSN
	var used types.TxID
	if err := x.asked(func(v *view) {
		v.key(1, digest.Name([]byte("k9")))
		for lsn := types.LSN(2); lsn <= last; lsn++ {
			x.Offer([]record.Sealed{issued(lsn, "inv-"+lsn.String())})
			if lsn%2 == 0 {
				upto = <-tables // the tail was full
			}
		}
		used = v.ref(1, digest.Name([]byte("inv-1"))).ID
	}); err != nil {
		t.Fatal(err)
	}
	if upto != last || used.Position().LSN != 1 {
		t.Errorf("the tables have come to %v, the ref is used by %v", upto, used.Position())
	}
}

// issued returns a frame with one issue that has a ref.
func issued(lsn types.LSN, ref string) record.Sealed {
	body := record.Begin(nil, lsn, 1000)
	r := record.Record{Kind: record.Posted, Op: event.Issue, Tenant: 1, Caller: 1, Key: types.Name{Text: []byte("k")}, To: types.Name{Text: []byte("ann")},
		Asset: types.Name{Text: []byte("EUR")}, Amount: types.MinorUnits(1), Seq: types.Seq(lsn), FromBalance: types.MinorUnits(1), ToBalance: types.MinorUnits(1), DebitedToday: types.MinorUnits(1),
		Ref: types.Name{Text: []byte(ref)}}
	body, _ = record.Add(body, 0, &r)
	return record.Sealed{Journal: 7, LSN: lsn, Body: body}
}

// blank is a journal without frames.
type blank struct{}

func (blank) Chain(types.LSN) (types.JournalID, types.Root, bool, error) {
	return 0, types.Root{}, false, nil
}
func (blank) Range(types.LSN, func(record.Sealed) error) error { return nil }
