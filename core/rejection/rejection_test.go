package rejection_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/rejection"
	"macronode/core/types"
)

// peerModel is the credit of one peer, in nanoseconds of its refill. It is never forgotten.
type peerModel struct {
	credit int64
	at     types.Instant
	starts []types.Instant
}

const (
	refill = int64(time.Second) / rejection.PerSecond
	whole  = rejection.Burst * refill
)

func (m *peerModel) advance(now types.Instant) {
	m.credit = min(whole, m.credit+int64(now-m.at))
	m.at = now
}

func (m *peerModel) reject(now types.Instant) bool {
	m.advance(now)
	if m.credit < refill {
		return false
	}
	m.credit -= refill
	return true
}

// TestMatchesModel compares the credit of some peers with a model that forgets none. It also checks
// that delayed connections start apart, that none waits for longer than MaxDelay, and that a peer
// with half of its credit does not wait.
func TestMatchesModel(t *testing.T) {
	saw := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		peers, now := rejection.New[int](), types.Instant(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "now"))
		models := make([]peerModel, 3)
		for i := range models {
			models[i] = peerModel{credit: whole, at: now}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, 3*refill), rapid.Int64Range(1, 2*whole)).Draw(t, "later")))
			of := rapid.IntRange(0, len(models)-1).Draw(t, "peer")
			m := &models[of]
			for range rapid.SampledFrom([]int{0, 1, 3, 240, 260, 490, 600}).Draw(t, "rejected") {
				want := m.reject(now)
				if got := peers.Reject(now, of); got != want {
					t.Fatalf("within %v, want %v: credit %d", got, want, m.credit)
				}
				if !want {
					saw["above"]++
				}
			}
			for range rapid.SampledFrom([]int{0, 1, 3, 400}).Draw(t, "connections") {
				m.advance(now)
				checkDelay(t, m, now, peers.Delay(now, of), saw)
			}
			if peers.Len() > 2*len(models) {
				t.Fatalf("%d are remembered", peers.Len())
			}
		}
	})
	for _, what := range []string{"above", "at once", "delayed", "spread"} {
		if saw[what] == 0 {
			t.Errorf("never saw %q", what)
		}
	}
}

func checkDelay(t *rapid.T, m *peerModel, now types.Instant, delay time.Duration, saw map[string]int) {
	const apart = time.Second / rejection.StartsPerSecond
	last := types.Instant(0)
	if len(m.starts) > 0 {
		last = m.starts[len(m.starts)-1]
	}
	want := max(last, now).Add(apart)
	switch {
	case m.credit >= whole/2:
		if delay != 0 {
			t.Fatalf("waits %v with a credit of %d", delay, m.credit)
		}
		saw["at once"]++
		return
	case want <= now.Add(rejection.MaxDelay):
		saw["delayed"]++
	default:
		want = now.Add(rejection.MaxDelay/2 + apart)
		saw["spread"]++
	}
	if got := now.Add(delay); got != want {
		t.Fatalf("starts at %d, want %d", got, want)
	}
	m.starts = append(m.starts, want)
}

// TestShareOfPeer: in each second, a peer that is rejected at any rate has at most its share within
// the limit, and a peer that is rejected at no higher rate than that is never above it.
func TestShareOfPeer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		peers, now, began := rejection.New[string](), types.Instant(0), types.Instant(0)
		within := 0
		for range rapid.IntRange(1, 2000).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.Int64Range(0, refill).Draw(t, "later")))
			if peers.Reject(now, "many") {
				within++
			}
			if most := rejection.Burst + int(int64(now-began)/refill); within > most {
				t.Fatalf("%d within the limit, at most %d", within, most)
			}
			if now%types.Instant(refill) == 0 && !peers.Reject(now, "few") && now > 0 {
				t.Fatal("a peer with its share is above it")
			}
		}
	})
}

// TestManyPeersAreForgotten: the memory is bounded, and a peer that was rejected just before is
// remembered although many others were.
func TestManyPeersAreForgotten(t *testing.T) {
	peers := rejection.New[int]()
	for range rejection.Burst {
		peers.Reject(1, -1)
	}
	for i := range rejection.MaxPeers - 1 {
		peers.Reject(1, i)
	}
	if peers.Reject(1, -1) {
		t.Error("a peer without credit is forgotten for MaxPeers")
	}
	for i := range 5 * rejection.MaxPeers {
		if peers.Reject(1, i); peers.Len() > 2*rejection.MaxPeers {
			t.Fatalf("%d peers are remembered", peers.Len())
		}
	}
	if !peers.Reject(1, -1) {
		t.Error("a peer is remembered although many others were rejected since")
	}
	if peers.Reject(types.Instant(time.Hour), 0); peers.Len() > rejection.MaxPeers+1 {
		t.Errorf("%d peers are remembered after an hour", peers.Len())
	}
}
