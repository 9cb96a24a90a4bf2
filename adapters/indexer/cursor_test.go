package indexer

import (
	"context"
	"testing"
	"time"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/words"
)

// TestACursorIsNoOlderThanTheTails: between the look-ups of one request a table may come,
// and with it what the tails had leaves them. Each look-up finds it all the same, or a
// ref would be used twice.
func TestACursorIsNoOlderThanTheTails(t *testing.T) {
	body := record.Begin(nil, 1, 1000)
	r := record.Record{Kind: record.Moved, Op: event.Issue, Tenant: 1, Caller: 1, Key: words.Name{Text: []byte("k1")}, To: words.Name{Text: []byte("ann")},
		Asset: words.Name{Text: []byte("EUR")}, Amount: words.Units(1), Seq: 1, FromNow: words.Units(1), ToNow: words.Units(1), Spent: words.Units(1),
		Ref: words.Name{Text: []byte("inv-1")}}
	body, _ = record.Add(body, 0, &r)
	x := New(Config{Dir: t.TempDir(), TTL: time.Hour, Limits: Limits{Interval: 50 * time.Millisecond, Few: 1}, Journal: blank{}})
	done := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { done <- x.Run(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	for x.Mark().LSN == 0 {
		x.Offer([]record.Sealed{{Journal: 7, LSN: 1, Body: body}})
		time.Sleep(time.Millisecond)
	}
	var used words.TxID
	if err := x.asked(func(v *view) {
		before := x.ingests.Load()
		if before > 0 {
			t.Skip("the table came before the first look: nothing is shown by this run")
		}
		v.key(1, digest.Name([]byte("k2")))
		for x.ingests.Load() == before || x.frozenNow() {
			time.Sleep(time.Millisecond)
		}
		used = v.ref(1, digest.Name([]byte("inv-1")))
	}); err != nil {
		t.Fatal(err)
	}
	if used.Place().LSN != 1 {
		t.Errorf("the ref is used by %v", used.Place())
	}
}

func (x *Indexer) frozenNow() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.frozen != nil
}

// blank is a journal without frames.
type blank struct{}

func (blank) Chain(words.LSN) (words.JournalID, words.Root, bool, error) {
	return 0, words.Root{}, false, nil
}
func (blank) Range(words.LSN, func(record.Sealed) error) error { return nil }
