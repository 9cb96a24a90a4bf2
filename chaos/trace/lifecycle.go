package trace

import (
	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/lifecycle/drain"
	"macronode/core/node"
	"macronode/core/types"
)

// The decisions of Drain.tla, under its names; the graph of the specification uses them too.
type rank uint8

const (
	none rank = iota
	lameDuck
	draining
	aborting
	stopped
)

func rankOf(p types.Phase) rank {
	if p < types.LameDuck {
		return none
	}
	return rank(p-types.LameDuck) + lameDuck
}

func (r rank) closed() bool { return r >= draining }
func (r rank) begun() bool  { return r != none }

// unwritable are the conditions under which writes are rejected.
const unwritable = types.Conditions(1)<<types.JournalStalled | 1<<types.JournalFailed | 1<<types.DiskFull

func outstanding(v *View) bool { return v.Durable < v.LSN && !v.DegradedBy.Has(types.JournalFailed) }

// listener is the state of the public listener.
type listener uint8

const (
	down listener = iota
	starting
	up
	resting // failed, and to be restarted
)

// life has the variables of Drain that no view shows.
type life struct {
	times     drain.Times
	window    int           // the most idempotency keys and refs in memory
	until     types.Instant // the deadline of the phase
	started   bool
	http      listener
	wanted    bool
	aboard    map[types.Ticket]types.LSN // waiting requests and their frames; 0: an unknown frame
	left      int                        // number of held replies without a caller
	reserve   uint64                     // bytes of the disk that writes leave free
	exhausted bool                       // less than an eighth of it is free
}

func newLife(c node.Config) life {
	return life{times: c.Drain, window: c.State.Idempotency.Keys, reserve: c.MinFreeBytes, aboard: map[types.Ticket]types.LSN{}}
}

// unwritable returns the conditions under which an event is not recorded. A revocation may use the reserve of the disk.
func (l *life) unwritable(in event.Event) types.Conditions {
	if _, revokes := in.(*event.RevokeKey); revokes && !l.exhausted {
		return unwritable.Without(types.DiskFull)
	}
	return unwritable
}

func (l *life) step(before, after *View, s *Step) error {
	if in, ok := s.In.(event.DiskFree); ok {
		l.exhausted = in.Bytes < l.reserve/8
	}
	if err := l.needs(before, after, s); err != nil {
		return err
	}
	if err := l.journal(before, after, s); err != nil {
		return err
	}
	if err := l.replies(before, after, s); err != nil {
		return err
	}
	if err := l.phases(before, after, s); err != nil {
		return err
	}
	return l.verdict(after)
}

// changes returns the conditions that an event may change, in addition to those that any step may
// change.
func changes(in event.Event) (met, ailing types.Conditions) {
	switch in := in.(type) { //nolint:gochecksumtype // the others change none
	case event.Recovered:
		return 1<<types.DependencyJournal | 1<<types.DependencyKey, 1<<types.JournalFailed | 1<<types.StartTimeout
	case event.Applied:
		return 1 << types.DependencyKey, 1 << types.StartTimeout
	case event.ServiceUp:
		if need, ok := in.Service.Dependency(); ok {
			return 1 << need, 1 << types.StartTimeout
		}
	case event.ServiceDown:
		if need, ok := in.Service.Dependency(); ok {
			return 1 << need, 0
		}
	case event.Durable:
		return 0, 1 << types.JournalStalled
	case event.FlushFailed:
		return 0, 1 << types.JournalFailed
	case event.DiskFree:
		return 0, 1 << types.DiskFull
	case event.SegmentsArchived:
		return 0, 1 << types.ArchiveFailed
	case event.ConfigReloaded:
		return 0, 1 << types.ConfigRejected
	case event.ObjectFiles:
		return 0, 1<<types.ObjectsUnavailable | 1<<types.UploadsRefused
	case event.FrameUnreadable:
		return 0, 1 << types.JournalDamaged
	case event.ProviderHealth:
		return 0, 1<<types.ProviderFailed | 1<<types.CopiesMissing | 1<<types.ObjectsLost
	case event.HealthChecked, *event.ApplyPolicy:
		return 0, 1 << types.NoEndpoint
	case event.Tick:
		return 0, 1<<types.JournalStalled | 1<<types.JournalFailed | 1<<types.StartTimeout
	}
	return 0, 0
}

const anyStep = types.Conditions(1)<<types.ClockUntrusted | 1<<types.ClockAhead | 1<<types.IndexBehind | 1<<types.CrashLoop | 1<<types.CircuitOpen

// needs is Meet, Up, Die, Ended, Late, and the effect of any step on conditions.
func (l *life) needs(before, after *View, s *Step) error {
	met, ailing := changes(s.In)
	if wrong := (before.WaitingFor ^ after.WaitingFor) &^ met; wrong != 0 {
		return broken("Need", "%T changes dependencies: %b", s.In, wrong)
	}
	if wrong := (before.DegradedBy ^ after.DegradedBy) &^ (ailing | anyStep); wrong != 0 {
		return broken("Need", "%T changes reasons to be degraded: %b", s.In, wrong)
	}
	up, isUp := s.In.(event.ServiceUp)
	if need, ok := up.Service.Dependency(); isUp && ok && after.WaitingFor.Has(need) {
		return broken("Need", "%v is up and not met", up.Service)
	}
	down, isDown := s.In.(event.ServiceDown)
	if need, ok := down.Service.Dependency(); isDown && ok && !after.WaitingFor.Has(need) {
		return broken("Need", "%v is down and met", down.Service)
	}
	if isDown && down.Service == types.ServiceIndex && !after.DegradedBy.Has(types.IndexBehind) {
		return broken("Need", "the index is down, and the node does not report it")
	}
	if before.DegradedBy.Has(types.JournalFailed) && !after.DegradedBy.Has(types.JournalFailed) {
		return broken("Fail", "a journal that failed is well again")
	}
	if _, ok := s.In.(event.Durable); ok && after.DegradedBy.Has(types.JournalStalled) {
		return broken("Sync", "stalled, after a flush ended")
	}
	l.started = l.started || after.WaitingFor == 0
	return nil
}

// journal is Enter's frame, Sync and Fold.
func (l *life) journal(before, after *View, s *Step) error {
	durable, folded := before.Durable, before.Applied
	switch in := s.In.(type) { //nolint:gochecksumtype // the others leave them as they are
	case event.Durable:
		durable = max(durable, in.Upto)
	case event.Applied:
		folded = max(folded, in.Upto)
	}
	if after.Durable != durable || after.Applied != folded {
		return broken("Sync", "%T: durable %v, folded %v, want %v and %v", s.In, after.Durable, after.Applied, durable, folded)
	}
	if after.Applied > after.Durable || after.Durable > after.LSN {
		return broken("Ordered", "folded %v, durable %v, last %v", after.Applied, after.Durable, after.LSN)
	}
	if after.LSN == before.LSN {
		return nil
	}
	if after.LSN != before.LSN+1 || len(s.Frame) == 0 {
		return broken("Emit", "from %v to %v", before.LSN, after.LSN)
	}
	closed := takesNothing(before, s)
	switch s.In.(type) { //nolint:gochecksumtype // the others emit nothing, as is said below
	case event.Recovered:
		return nil
	case event.Tick: // a heartbeat: also during a drain
	case *event.Request, *event.Execute:
		if !l.started || closed {
			return broken("NothingNew", "a request is recorded while %v", before.Phase)
		}
	case *event.CreateKey, *event.RevokeKey: // also before the node is ready: it needs a key
		if closed {
			return broken("NothingNew", "a key is recorded while %v", before.Phase)
		}
	default:
		return broken("Emit", "a frame of %T", s.In)
	}
	if wrong := (before.DegradedBy | after.DegradedBy) & l.unwritable(s.In); wrong != 0 {
		return broken("WritesNeedJournal", "a frame of %T while degraded by %b", s.In, wrong)
	}
	return nil
}

// takesNothing reports whether the node takes no such input any more: while draining, that of requests that were not admitted before;
// from aborting on, any.
func takesNothing(before *View, s *Step) bool {
	if s.admitted && before.Phase == types.Draining {
		return false
	}
	if in, ok := s.In.(*event.Execute); ok && before.Phase == types.Draining {
		if own, ok := in.Command.(command.ByNode); ok && own.ByNode() {
			return false
		}
	}
	return rankOf(before.Phase).closed()
}

// finishes reports whether an input has to be decided, because its request was admitted, the node can write and the window has room.
func (l *life) finishes(before *View, s *Step) bool {
	return s.admitted && before.Phase == types.Draining && before.AdmittedWrites && !before.DegradedBy.Has(types.IndexBehind) &&
		int(before.Keys)+mostRows(s.In) <= l.window
}

// mostRows returns a number of rows of the window that an input does not exceed.
func mostRows(in event.Event) int {
	const single = 4         // two keys and two refs: an object and its payment
	switch in := in.(type) { //nolint:gochecksumtype // the others need no more
	case *event.Request:
		return max(single, 1+2*len(in.Items))
	case *event.Execute:
		if events, ok := in.Command.(*accounting.RecordEvents); ok {
			return 1 + len(events.Events)
		}
	}
	return single
}

// replies is Enter, Fold, Fail, LosePatience, and the replies that an abort gives up.
func (l *life) replies(before, after *View, s *Step) error {
	enters := ticket(s.In)
	for _, r := range s.Replies {
		_, held := l.aboard[r.Ticket]
		switch {
		case r.Ticket == enters && !held:
			if enters = 0; r.Problem == event.Unavailable && l.finishes(before, s) {
				return broken("AdmittedFinish", "%T of an admitted request is rejected while %v", s.In, before.Phase)
			}
		case held:
			delete(l.aboard, r.Ticket)
		default:
			return broken("Tell", "a reply without a waiting request: %+v", r)
		}
		if r.After > after.Applied {
			return broken("TellsFolded", "%+v, folded %v", r, after.Applied)
		}
	}
	if enters != 0 {
		if takesNothing(before, s) {
			return broken("NothingNew", "%T is held while %v", s.In, before.Phase)
		}
		l.aboard[enters] = 0
		if after.LSN > before.LSN {
			l.aboard[enters] = after.LSN
		}
	}
	if in, ok := s.In.(event.Cancel); ok {
		if _, held := l.aboard[in.Ticket]; held {
			delete(l.aboard, in.Ticket)
			l.left++
		}
	}
	left := int(after.HeldReplies) - len(l.aboard)
	if left < 0 || left > l.left {
		return broken("AllHear", "%d are held, %d wait, and %d have left", after.HeldReplies, len(l.aboard), l.left)
	}
	l.left = left
	return l.waits(before, after)
}

// waits checks that no request waits for a folded frame, or for one that may be lost.
func (l *life) waits(before, after *View) error {
	failed := after.DegradedBy.Has(types.JournalFailed)
	if !failed && before.Applied == after.Applied {
		return nil
	}
	for t, lsn := range l.aboard {
		switch {
		case lsn == 0:
		case lsn <= after.Applied:
			return broken("Fold", "%v still waits for %v, folded %v", t, lsn, after.Applied)
		case failed && lsn > after.Durable:
			return broken("NobodyWaitsForLost", "%v waits for %v, durable %v", t, lsn, after.Durable)
		}
	}
	return nil
}

// phases is Drain, Abort, and then Close, GiveUp and Stop as far as they happen at this moment.
func (l *life) phases(before, after *View, s *Step) error {
	was := rankOf(before.Phase)
	p, now := was, s.Now.Mono
	enter := func(next rank, until types.Instant) { p, l.until = next, until }
	l.child(s.In)
	if in, ok := s.In.(event.Signal); ok && (in.Kind == event.Drain || in.Kind == event.Abort) {
		if p == none {
			enter(lameDuck, now.Add(l.times.LameDuck))
			if l.times.LameDuck == 0 {
				enter(draining, now.Add(l.times.Drain))
			}
		}
		if in.Kind == event.Abort && p < aborting {
			enter(aborting, now.Add(l.times.Abort))
		}
	}
	got := rankOf(after.Phase)
	in := uint64(after.HeldReplies) + after.AbortedReplies - before.AbortedReplies // aborted replies were held until then
	quiet := l.http == down && in == 0 && !outstanding(after)
	for moved := p.begun() && !after.WaitingFor.Has(types.DependencyJournal); moved; {
		switch {
		case p == lameDuck && l.until <= now:
			enter(draining, now.Add(l.times.Drain))
		case p == draining && quiet:
			enter(stopped, 0)
		case p == draining && l.until <= now:
			enter(aborting, now.Add(l.times.Abort))
		case p == aborting && (quiet || l.until <= now):
			enter(stopped, 0)
		default:
			moved = false
		}
	}
	switch {
	case got < was:
		return broken("PhasesAdvance", "from %v to %v", before.Phase, after.Phase)
	case got != p:
		return broken("InTime", "%v after %v at %d, quiet %v, until %d", after.Phase, before.Phase, now, quiet, l.until)
	case got >= aborting && after.HeldReplies > 0:
		return broken("AbortIsNow", "%d are held while %v", after.HeldReplies, after.Phase)
	}
	return l.children(was, got, s.Childs)
}

func (l *life) child(in event.Event) {
	switch in := in.(type) { //nolint:gochecksumtype // the others are not of services
	case event.ServiceUp:
		if in.Service == types.ServiceHTTP && l.http == starting {
			l.http = up
		}
	case event.ServiceDown:
		if in.Service == types.ServiceHTTP {
			if l.http = down; l.wanted {
				l.http = resting
			}
		}
	}
}

// children is Restart, and that the listener is stopped when draining begins.
func (l *life) children(was, got rank, ops []event.ServiceCommand) error {
	asked := false
	for _, op := range ops {
		if op.Verb == event.StartService && got.begun() {
			return broken("NoRestart", "%v is started while the node ends", op.Service)
		}
		if op.Service != types.ServiceHTTP {
			continue
		}
		switch op.Verb {
		case event.StartService:
			l.http, l.wanted = starting, true
		case event.StopService, event.KillService:
			asked = true
		}
	}
	if !was.closed() && got.closed() {
		if l.wanted = false; l.http == resting {
			l.http = down
		}
		if asked != (l.http != down) {
			return broken("Close", "the listener was stopped: %v", asked)
		}
	}
	return nil
}

// verdict checks the node's status: Readyz, Reads and Takes.
func (l *life) verdict(v *View) error {
	p := rankOf(v.Phase)
	writes := v.DegradedBy&unwritable == 0
	listens := !v.WaitingFor.Has(types.DependencyHTTP)
	want := event.Status{Phase: v.Phase, ForRead: l.started && !p.begun() && listens, Reads: l.started && !p.closed()}
	want.Ready, want.Writes, want.AdmittedWrites = want.ForRead && writes, want.Reads && writes, l.started && p < aborting && writes
	if !p.begun() {
		switch want.Phase = types.Ready; {
		case !l.started && !v.DegradedBy.Has(types.StartTimeout):
			want.Phase = types.Starting
		case !l.started || v.WaitingFor != 0 || v.DegradedBy != 0:
			want.Phase = types.Degraded
		}
	}
	switch {
	case v.Ready && !l.started || v.Reads && !l.started:
		return broken("ReadyOnce", "served before every need was met: %b", v.WaitingFor)
	case v.Ready != want.Ready || v.ForRead != want.ForRead:
		return broken("ReadyHonest", "%v: ready %v, for read %v", v.Phase, v.Ready, v.ForRead)
	case v.Reads != want.Reads || v.Writes != want.Writes:
		return broken("ReadsGoOn", "%v: reads %v, writes %v", v.Phase, v.Reads, v.Writes)
	case v.AdmittedWrites != want.AdmittedWrites:
		return broken("AdmittedFinish", "%v: writes of admitted requests %v", v.Phase, v.AdmittedWrites)
	case v.Phase != want.Phase:
		return broken("Need", "%v, want %v", v.Phase, want.Phase)
	}
	return nil
}
