package loop_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"macronode/adapters/loop"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

var errDied = errors.New("the follower has died")

// A randomDisk takes a random time for every sync, and may fail at one of them and from there on. It checks that
// delivered frames are in order.
type randomDisk struct {
	recorder
	t           *testing.T
	dice        *rand.Rand
	syncFailsAt int       // fails at this sync; 0: never
	foldFailsAt types.LSN // the follower fails at this frame; 0: never
	syncs       int
	synced      types.LSN
	folded      types.LSN
	replied     int
}

func (m *randomDisk) Sync() (types.LSN, error) {
	m.mu.Lock()
	m.syncs++
	slow, wrong := time.Duration(m.dice.IntN(40))*time.Millisecond, m.syncFailsAt > 0 && m.syncs >= m.syncFailsAt
	m.mu.Unlock()
	time.Sleep(slow)
	m.mu.Lock()
	defer m.mu.Unlock()
	if wrong {
		return 0, errors.New("the disk is gone")
	}
	m.synced = m.wrote
	return m.wrote, nil
}

func (m *randomDisk) fold(s []record.Sealed) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range s {
		if f.LSN == m.foldFailsAt {
			return errDied
		}
		if m.folded++; f.LSN != m.folded || f.LSN > m.synced {
			m.t.Errorf("frame %v is folded behind %v, synced up to %v", f.LSN, m.folded-1, m.synced)
		}
	}
	return nil
}

// reply checks a reply.
func (m *randomDisk) reply(to types.Ticket, r event.Reply, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.replied++; !ok || r.Ticket != to || r.Problem == event.None && r.After > m.folded || r.Problem != event.None && r.Problem != event.OutcomeUnknown {
		m.t.Errorf("%x got %+v, accepted %v, folded up to %v", to, r, ok, m.folded)
	}
}

// TestRandomDelaysAndFailures: for any sync times, failures and cancellations, frames are folded
// in order and after their sync, no reply precedes its fold, and every request gets a reply. If
// the follower fails, the loop returns its error.
func TestRandomDelaysAndFailures(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			m := &randomDisk{t: t, dice: rand.New(rand.NewPCG(seed, 1))}
			switch seed % 4 {
			case 0:
				m.syncFailsAt = 1 + m.dice.IntN(20)
			case 1:
				m.foldFailsAt = types.LSN(1 + m.dice.IntN(20))
			}
			k := loop.NewDispatcher(loop.ClassLimits{2, 16, 2}, loop.ClassLimits{}, 1)
			l := loop.New(m, m, m, k, loop.Ports{Fold: m.fold, ServiceCommand: func(event.ServiceCommand) {},
				ClassifyFault: func(error) event.Fault { return event.SyncFailed }, Flush: func(int, int, time.Duration) {}}, 64)
			done := make(chan error, 1)
			go func() { done <- l.Run(t.Context(), event.Recovered{}) }()
			const clients, asks = 8, 12
			plan := rand.New(rand.NewPCG(seed, 2))
			var all sync.WaitGroup
			for range clients {
				pauses := make([]time.Duration, 2*asks)
				for i := range pauses {
					pauses[i] = time.Duration(plan.IntN(60)) * time.Millisecond
				}
				all.Go(func() {
					for i := range asks {
						time.Sleep(pauses[2*i])
						ctx, leave := context.WithTimeout(t.Context(), 5*time.Millisecond+2*pauses[2*i+1])
						in := new(event.Request)
						r, ok := k.Submit(ctx, types.ClassAuthed, in)
						m.reply(in.Ticket, r, ok)
						leave()
					}
				})
			}
			all.Wait()
			l.Send(t.Context(), event.Signal{Kind: event.Drain})
			if err := <-done; errors.Is(err, errDied) != (m.foldFailsAt > 0) || err != nil && m.foldFailsAt == 0 || m.replied != clients*asks || m.syncFailsAt+int(m.foldFailsAt) == 0 && m.folded == 0 || k.InFlight(types.ClassAuthed) > 0 {
				t.Errorf("%v; %d replies, %v is folded, %d requests left", err, m.replied, m.folded, k.InFlight(types.ClassAuthed))
			}
		})
	}
}
