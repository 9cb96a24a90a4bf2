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

// A moody disk takes another time for every sync, and may fail at one of them, and from
// there on. It sees that what was handed on keeps its order.
type moody struct {
	diary
	t      *testing.T
	dice   *rand.Rand
	fails  int       // at this sync; 0: never
	dies   types.LSN // the follower, at this frame; 0: never
	syncs  int
	synced types.LSN
	folded types.LSN
	told   int
}

func (m *moody) Sync() (types.LSN, error) {
	m.mu.Lock()
	m.syncs++
	slow, wrong := time.Duration(m.dice.IntN(40))*time.Millisecond, m.fails > 0 && m.syncs >= m.fails
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

func (m *moody) fold(s []record.Sealed) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range s {
		if f.LSN == m.dies {
			return errDied
		}
		if m.folded++; f.LSN != m.folded || f.LSN > m.synced {
			m.t.Errorf("frame %v is folded behind %v, synced up to %v", f.LSN, m.folded-1, m.synced)
		}
	}
	return nil
}

// reply is heard by who asked.
func (m *moody) reply(to types.Ticket, r event.Reply, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.told++; !ok || r.Ticket != to || r.Problem == event.None && r.After > m.folded || r.Problem != event.None && r.Problem != event.OutcomeUnknown {
		m.t.Errorf("%x is told %+v, let in %v, folded up to %v", to, r, ok, m.folded)
	}
}

// TestAnyOrder: however long each sync takes, whether one fails or the follower dies, and
// whoever leaves, frames are folded in order and not before their sync, nobody is told of
// one that is not folded, and everybody is told something; and a loop whose follower died
// says so.
func TestAnyOrder(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			m := &moody{t: t, dice: rand.New(rand.NewPCG(seed, 1))}
			switch seed % 4 {
			case 0:
				m.fails = 1 + m.dice.IntN(20)
			case 1:
				m.dies = types.LSN(1 + m.dice.IntN(20))
			}
			k := loop.NewDesk(loop.Door{2, 16, 2}, loop.Door{}, 1)
			l := loop.New(m, m, m, k, loop.Ports{Fold: m.fold, Child: func(event.ServiceCommand) {},
				Fault: func(error) event.Fault { return event.SyncFailed }, Flush: func(int, int, time.Duration) {}}, 64)
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
			l.Say(t.Context(), event.Signal{Kind: event.Drain})
			if err := <-done; errors.Is(err, errDied) != (m.dies > 0) || err != nil && m.dies == 0 || m.told != clients*asks || m.fails+int(m.dies) == 0 && m.folded == 0 || k.In(types.ClassAuthed) > 0 {
				t.Errorf("%v; %d are told, %v is folded, %d are still in", err, m.told, m.folded, k.In(types.ClassAuthed))
			}
		})
	}
}
