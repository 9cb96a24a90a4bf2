package export

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if server.database != nil {
			server.stop()
		}
		os.Exit(code)
	}))
}

// A target is what a sink delivers to, with faults.
type target interface {
	sink() Sink // a new one, as after a restart of the node
	// arm makes the next attempt, which delivers the item at a position, meet a fault of faultTable.
	arm(fault string, seq uint64)
	seqs() []uint64 // of the items that it has, with repeated ones
}

// faultTable has the faults that each kind of sink bears, and the forms that they have there. A kind without a form has a reason.
var faultTable = []struct {
	name  string
	forms map[string][]string
	none  map[string]string
}{
	{"drop: the item does not reach the receiver", map[string][]string{
		KindFile: {"no write"}, KindHTTP: {"drop"}, KindWebhook: {"drop"}, KindCloudEvents: {"drop"}, KindPostgres: {"refuse", "drop"}, KindNATS: {"refuse", "drop"}, KindKafka: {"refuse", "drop"},
	}, nil},
	{"duplicate: the receiver has the item, and the sink is not told, so it is repeated", map[string][]string{
		KindFile: {"kept"}, KindHTTP: {"take and drop"}, KindWebhook: {"take and drop"}, KindCloudEvents: {"take and drop"}, KindPostgres: {"take and drop"},
		KindNATS: {"take and drop", "twice"}, KindKafka: {"take and drop"},
	}, nil},
	{"slow: the answer comes after the end of the attempt", map[string][]string{
		KindHTTP: {"slow", "take and be slow"}, KindWebhook: {"slow", "take and be slow"}, KindCloudEvents: {"slow", "take and be slow"},
		KindPostgres: {"locked", "silence"}, KindNATS: {"silence"}, KindKafka: {"silence"},
	}, map[string]string{KindFile: "a call of the operating system has no deadline: the attempt ends when the call returns, and its outcome is that of the call"}},
	{"error: the receiver rejects the item for now", map[string][]string{
		KindFile: {"torn write", "no sync", "no truncate"}, // ENOSPC, EIO
		KindHTTP: rejections, KindWebhook: rejections, KindCloudEvents: rejections,
		KindPostgres: {"terminate", "disk full"}, KindNATS: {"stream full"}, KindKafka: {"few replicas"},
	}, nil},
	{"wrong answer: what comes back is no answer, or that of another request", map[string][]string{
		KindHTTP: wrong, KindWebhook: wrong, KindCloudEvents: wrong,
		KindPostgres: {"garbage"}, KindNATS: {"another stream", "no sequence", "not JSON"}, KindKafka: {"garbage"},
	}, map[string]string{KindFile: "an operating system that reports a success that is none cannot be noticed"}},
	{"restart in the middle: of the receiver, before or after it has the item", map[string][]string{
		KindFile: {"stale"}, // the file system was mounted again: what was open is of no use
		KindHTTP: {"restart", "take and restart"}, KindWebhook: {"restart", "take and restart"}, KindCloudEvents: {"restart", "take and restart"},
		KindPostgres: {"restart", "take and restart"}, KindNATS: {"restart", "take and restart"}, KindKafka: {"restart", "take and restart"},
	}, nil},
}

var (
	rejections = []string{"500", "503", "429", "302", "401", "404"}
	wrong      = []string{"half a response", "torn header", "garbage", "switch"}
)

// kinds are all kinds of sinks.
var kinds = []string{KindFile, KindHTTP, KindWebhook, KindCloudEvents, KindPostgres, KindNATS, KindKafka}

// keepsOnce reports whether a receiver of a kind has no item twice. Others get an item again, and drop it by its ID.
func keepsOnce(kind string) bool {
	return slices.Contains([]string{KindFile, KindPostgres, KindNATS, KindKafka}, kind)
}

// item returns an item of the one lane of the tests.
func item(seq uint64) *Item {
	return &Item{Source: "/node/1", ID: fmt.Sprintf("usage_%d", seq), Stream: Usage, Tenant: "default", Dimension: "custom:a/b", Seq: seq, Time: time.Unix(1_700_000_000, 0),
		Body: fmt.Appendf(nil, `{"tenant":"default","dimension":"custom:a/b","seq":%d}`, seq)}
}

// eachTarget runs a check for each kind of sink.
func eachTarget(t *testing.T, check func(t *testing.T, kind string)) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) { check(t, kind) })
	}
}

func newTarget(t testing.TB, kind string) target {
	switch kind {
	case KindFile:
		return &fileTarget{t: t, dir: filepath.Join(t.TempDir(), "exports")}
	case KindPostgres:
		return newPostgresTarget(t)
	case KindNATS:
		return newNATSTarget(t)
	case KindKafka:
		return newKafkaTarget(t)
	}
	return newHTTPTarget(t, kind)
}

// deliver repeats an item as a lane does, with longer and longer pauses, until the receiver has it.
func deliver(t testing.TB, s Sink, i *Item) {
	var reasons []string
	for n := range 12 {
		if n > 1 {
			time.Sleep(time.Millisecond << n)
		}
		switch r := s.Deliver(t.Context(), i); r.Outcome {
		case OK, Duplicate:
			return
		case Retryable:
			if r.Reason == "" || len(r.Reason) > maxReason {
				t.Fatalf("the reason is %q", r.Reason)
			}
			reasons = append(reasons, r.Reason)
		default:
			t.Fatalf("seq %d: %+v", i.Seq, r)
		}
	}
	t.Fatalf("seq %d was not delivered: %q", i.Seq, reasons)
}

// checkDelivered checks that the receiver has all items up to one, in order. If it can have an item twice, the second is not counted.
func checkDelivered(t interface{ Fatalf(string, ...any) }, kind string, to target, last uint64) {
	var want []uint64
	for seq := uint64(1); seq <= last; seq++ {
		want = append(want, seq)
	}
	got := to.seqs()
	if !keepsOnce(kind) {
		got = slices.Compact(got)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the receiver has %v, not %v", got, want)
	}
}

// TestSinksDeliverInOrderUnderFaults repeats items under faults, and restarts the node. A server of PostgreSQL that is restarted takes
// too long to do it often: only TestFaultsAreRetryable restarts it.
func TestSinksDeliverInOrderUnderFaults(t *testing.T) {
	eachTarget(t, func(t *testing.T, kind string) {
		faults := []string{"none", "none", "the node"}
		for _, f := range faultTable {
			for _, form := range f.forms[kind] {
				if kind != KindPostgres || !strings.HasSuffix(form, "restart") {
					faults = append(faults, form)
				}
			}
		}
		rapid.Check(t, func(r *rapid.T) {
			to := newTarget(t, kind)
			sink := to.sink()
			items := uint64(rapid.IntRange(1, 8).Draw(r, "items"))
			for seq := uint64(1); seq <= items; seq++ {
				for range rapid.IntRange(0, 2).Draw(r, "faults") {
					switch fault := rapid.SampledFrom(faults).Draw(r, "fault"); fault {
					case "the node":
						_ = sink.Close()
						sink = to.sink()
					case "none":
					default:
						to.arm(fault, seq)
						if got := sink.Deliver(t.Context(), item(seq)); got.Outcome == Permanent || got.Outcome == Stopped {
							r.Fatalf("%s: %+v", fault, got)
						}
					}
				}
				deliver(t, sink, item(seq))
			}
			if err := sink.Close(); err != nil {
				r.Fatal(err)
			}
			checkDelivered(r, kind, to, items)
		})
	})
}

// TestFaultsAreRetryable checks for each form of each fault that it is met, that the attempt is not acknowledged, and that the receiver
// has each item in order when it has ended, also if the node restarts meanwhile.
func TestFaultsAreRetryable(t *testing.T) {
	eachTarget(t, func(t *testing.T, kind string) {
		for _, f := range faultTable {
			if (len(f.forms[kind]) == 0) != (f.none[kind] != "") {
				t.Errorf("%s: %d forms, and the reason %q", f.name, len(f.forms[kind]), f.none[kind])
			}
			for _, form := range f.forms[kind] {
				for _, restarts := range []bool{false, true} {
					to := newTarget(t, kind)
					sink := to.sink()
					deliver(t, sink, item(1))
					to.arm(form, 2)
					if got := sink.Deliver(t.Context(), item(2)); got.Outcome != Retryable {
						t.Errorf("%s: %+v, want retryable", form, got)
					}
					if restarts {
						_ = sink.Close()
						sink = to.sink()
					}
					deliver(t, sink, item(2))
					deliver(t, sink, item(3))
					if err := sink.Close(); err != nil {
						t.Error(err)
					}
					checkDelivered(t, kind, to, 3)
				}
			}
		}
	})
}

// faulty is a receiver with a fault that it meets once. It also guards what else the receiver has.
type faulty struct {
	mu    sync.Mutex
	fault string
	end   context.CancelFunc // of the attempt that is made
}

// attempts is a sink whose attempt ends when its target meets a fault that makes it wait. No clock is waited for.
type attempts struct {
	Sink
	of    *faulty
	after func() // removes the fault; nil: nothing is to be done
}

func (a attempts) Deliver(ctx context.Context, item *Item) Result {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.of.mu.Lock()
	a.of.end = cancel
	a.of.mu.Unlock()
	if a.after != nil {
		defer a.after()
	}
	return a.Sink.Deliver(ctx, item)
}

// endAttempt cancels the attempt that is made.
func (f *faulty) endAttempt() { f.mu.Lock(); defer f.mu.Unlock(); f.end() }

// set arms a fault.
func (f *faulty) set(fault string) { f.mu.Lock(); defer f.mu.Unlock(); f.fault = fault }

// met takes the fault, if it is one of these.
func (f *faulty) met(faults ...string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(faults, f.fault) {
		return ""
	}
	fault := f.fault
	f.fault = ""
	return fault
}

// TestAttemptEndsWithItsContext cancels an attempt while the receiver has it.
func TestAttemptEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-done
	}))
	defer server.Close()
	defer close(done)
	sink, err := New(Config{Kind: KindHTTP, URL: server.URL, Inflight: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	if got := sink.Deliver(ctx, item(1)); got.Outcome != Retryable || got.Reason != "cancelled" {
		t.Fatalf("%+v", got)
	}
}
