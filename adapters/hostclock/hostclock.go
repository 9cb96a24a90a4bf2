// Package hostclock reads the machine's clocks.
package hostclock

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"macronode/core/types"
)

// Clock reads CLOCK_BOOTTIME, which counts the time a machine sleeps, and the wall
// clock, with what CheckSync last heard of the kernel's trust in it.
type Clock struct {
	Trusted bool // it counts as synchronised, whatever the kernel says

	synced atomic.Bool
}

// Now is what the machine claims. It costs two system calls, so it is read once a
// turn.
func (c *Clock) Now() types.Now {
	return types.Now{Mono: Mono(), Wall: types.Time(time.Now().UnixMilli()), Synced: c.synced.Load()}
}

// Mono is the monotonic clock alone.
func Mono() types.Instant {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // always there
	}
	return types.Instant(t.Nano())
}

// Awake returns the time for which the machine has been awake since it started, as its service
// manager counts time.
func Awake() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // always there
	return time.Duration(t.Nano())
}

// CheckSync asks the kernel whether its clock is synchronised. The sampler calls it a few times
// a second.
func (c *Clock) CheckSync() {
	var t unix.Timex
	c.note(unix.Adjtimex(&t))
}

// note stores an answer of the kernel. A clock is synchronised only if the kernel says so, or the
// operator.
func (c *Clock) note(state int, err error) {
	c.synced.Store(c.Trusted || err == nil && state != unix.TIME_ERROR)
}
