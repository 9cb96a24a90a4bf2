package server

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"macronode/adapters/hostclock"
	"macronode/core/event"
	"macronode/core/types"
)

// sampler reads the disk and the clock at intervals, reports them to the core, and logs when the state of the node has changed.
type sampler struct {
	clock        *hostclock.Clock
	store        *journalStore
	inbox        *eventInbox
	applied      *currentConfig
	certificates *certificates
	announced    *atomic.Bool // the log says that the node is ready
	minFreeBytes uint64       // for the log
	log          *slog.Logger

	writesStopped bool
	lastStatus    event.Status             // that was logged
	openCircuits  [event.NumCallers]uint64 // that were logged; bit n is upstream n
}

// run samples four times a second. While the disk does not answer, it still passes the time to the core.
func (m *sampler) run(ctx context.Context, up func()) error {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	var free uint64
	for asked := m.sampleDisk(); ; {
		m.clock.CheckSync()
		select {
		case d := <-asked:
			if d.lost != nil {
				m.stopWriting(ctx, d.lost)
			}
			if d.err != nil {
				return d.err
			}
			asked, free = nil, d.free
			m.inbox.send(ctx, event.DiskFree{Bytes: free})
			up()
		case <-tick.C:
			if asked == nil {
				asked = m.sampleDisk()
				continue
			}
			m.inbox.send(ctx, event.Tick{})
		case <-ctx.Done():
			return nil
		}
		if m.store.unreadable.Swap(false) {
			m.inbox.send(ctx, event.FrameUnreadable{})
		}
		m.logState(free)
		m.certificates.logExpiry(time.Now())
	}
}

// A diskSample is the state of the disk of the journal.
type diskSample struct {
	free uint64 // bytes
	err  error
	lost error // the data directory is not the locked one any more, or the open segment is gone
}

// sampleDisk returns a channel that gets the state of the disk once the disk has answered.
func (m *sampler) sampleDisk() <-chan diskSample {
	answer := make(chan diskSample, 1)
	go func() { answer <- m.store.sample() }()
	return answer
}

// stopWriting makes the core stop writes: another node may use the directory, or the next start would lose what is written.
func (m *sampler) stopWriting(ctx context.Context, why error) {
	if m.writesStopped {
		return
	}
	m.writesStopped = true
	m.log.Error("data directory or journal segment removed, replaced or cut: writes stopped, restart the node", "directory", string(m.store.dir), "err", why)
	m.inbox.send(ctx, event.FlushFailed{Fault: event.FilesLost})
}

// logState logs the state of the node if it has changed.
func (m *sampler) logState(free uint64) {
	s := m.inbox.status()
	m.logCircuits(s.OpenCircuits)
	m.logClock(&s)
	if s.Phase == m.lastStatus.Phase && s.DegradedBy == m.lastStatus.DegradedBy && s.WaitingFor == m.lastStatus.WaitingFor {
		return
	}
	before := m.lastStatus.Phase
	m.lastStatus = s
	if loggedByAnnounce(before, s.Phase, m.announced.Load()) {
		return
	}
	level := slog.LevelInfo
	if s.Phase == types.Degraded {
		level = slog.LevelWarn
	}
	m.log.Log(context.Background(), level, "node state changed", "state", s.Phase, "waiting_for", joinConditions(s.WaitingFor), "degraded_by", joinConditions(s.DegradedBy), "reads", s.Reads, "writes", s.Writes,
		"fault", s.Fault.String(), "disk_free", free, "disk_reserve", m.minFreeBytes)
}

// logClock logs by how much the machine's clock is ahead when it is not trusted any more, and by how much it is behind.
func (m *sampler) logClock(s *event.Status) {
	if s.DegradedBy.Minus(m.lastStatus.DegradedBy).Has(types.ClockAhead) {
		m.log.Warn("node's time is ahead of the machine's clock: it runs 5 % slower until both agree, and never goes back", "offset", s.Offset.Round(time.Second))
	}
	if s.DegradedBy.Minus(m.lastStatus.DegradedBy).Has(types.ClockUntrusted) {
		m.log.Warn("machine's clock not trusted: the node keeps its own time until the clock is synchronised, or accepted with POST /clock/accept", "offset", s.Offset.Round(time.Second))
	}
}

// logCircuits logs each circuit breaker that has opened or closed for a group of callers; bit n is
// upstream n.
func (m *sampler) logCircuits(open [event.NumCallers]uint64) {
	if open == m.openCircuits {
		return
	}
	for n, name := range m.applied.Load().Numbers.Upstreams.Names {
		for by, now := range open {
			switch bit := uint64(1) << n; {
			case (now^m.openCircuits[by])&bit == 0 || name == "":
			case now&bit != 0:
				m.log.Warn("circuit breaker opened: only trial requests are sent to the upstream", "upstream", name, "callers", event.Callers(by))
			default:
				m.log.Info("circuit breaker closed", "upstream", name, "callers", event.Callers(by))
			}
		}
	}
	m.openCircuits = open
}

// loggedByAnnounce reports whether a change gets no line of its own, because announce logs that the node is ready: before or after the
// sampler sees it.
func loggedByAnnounce(before, now types.Phase, announced bool) bool {
	return now == types.Ready && (before == types.Starting || !announced)
}

// joinConditions returns the names of conditions, separated by commas.
func joinConditions(set types.Conditions) string { return strings.Join(conditionNames(set), ",") }

func conditionNames(set types.Conditions) (names []string) {
	for c := range set.Each {
		names = append(names, c.String())
	}
	return names
}
