package server

import (
	"fmt"
	"slices"
	"time"
)

// follow notes which exporters must end before e begins.
func (e *exporter) follow(after []*exporter) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.after = after
}

// await waits until the exporters have ended that e follows, or until e is stopped: then it has delivered nothing, and need not wait.
func (e *exporter) await(after []*exporter) {
	for _, old := range after {
		select {
		case <-old.done:
		case <-e.stopping:
		}
	}
	e.follow(nil) // they are no longer needed
}

// An unended is an exporter that was stopped by a change, and has not ended: the operating system or the node has not returned from a call.
type unended struct {
	sink   string
	age    time.Duration // since the first attempt began that has not ended; there is none: since the exporter was stopped
	oldest time.Time     // when the oldest item was due that it delivers; zero: there is none
}

// unended returns the state of an exporter that was stopped.
func (e *exporter) unended(now time.Time) unended {
	e.mu.Lock()
	defer e.mu.Unlock()
	u, since := unended{sink: e.settings.Name}, e.left
	for _, at := range e.began { //nolint:maporder // the first counts
		since = earlier(since, at)
	}
	for _, at := range e.oldest { //nolint:maporder // the first counts
		u.oldest = earlier(u.oldest, at)
	}
	u.age = now.Sub(since)
	return u
}

// earlier returns the earlier of two times. Zero is no time.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// waitsFor returns what e waits for before it begins: that which is unended for the longest time. It returns false if e has begun.
func (e *exporter) waitsFor(now time.Time) (unended, bool) {
	e.mu.Lock()
	after := e.after
	e.mu.Unlock()
	return longestUnended(after, now)
}

// leavingOf returns what the earlier exporters of a sink have under way. It returns false if all have ended.
func (e *exports) leavingOf(sink string, now time.Time) (unended, bool) {
	e.mu.Lock()
	of := slices.DeleteFunc(slices.Clone(e.leaving), func(at *exporter) bool { return at.settings.Name != sink })
	e.mu.Unlock()
	return longestUnended(of, now)
}

func longestUnended(all []*exporter, now time.Time) (longest unended, any bool) {
	for _, at := range all {
		if at.hasEnded() {
			continue
		}
		u := at.unended(now)
		if !any || u.age > longest.age {
			longest.sink, longest.age = u.sink, u.age
		}
		if any = true; !u.oldest.IsZero() {
			longest.oldest = earlier(longest.oldest, u.oldest)
		}
	}
	return longest, any
}

// reason says for people what a sink waits for.
func (u *unended) reason(sink string) string {
	of := "the earlier delivery of this sink"
	if u.sink != sink {
		of = "the delivery of sink " + u.sink + ", which has the directory,"
	}
	return fmt.Sprintf("%s has not ended for %v", of, u.age.Round(time.Second))
}
