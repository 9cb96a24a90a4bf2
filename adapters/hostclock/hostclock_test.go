package hostclock

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestUnsynchronizedClockIsNotTrusted: only a kernel that says that its clock is
// synchronised makes the clock trusted, and each answer replaces the one before.
func TestUnsynchronizedClockIsNotTrusted(t *testing.T) {
	var c Clock
	if c.Now().Synced {
		t.Error("the clock is trusted before the kernel was asked")
	}
	for _, is := range []struct {
		state int
		err   error
		want  bool
	}{{unix.TIME_OK, nil, true}, {unix.TIME_ERROR, nil, false}, {unix.TIME_INS, nil, true}, {unix.TIME_OK, unix.EPERM, false},
		{unix.TIME_WAIT, nil, true}, {unix.TIME_ERROR, unix.EPERM, false}} {
		c.note(is.state, is.err)
		if got := c.Now().Synced; got != is.want {
			t.Errorf("state %d, error %v: trusted %t, want %t", is.state, is.err, got, is.want)
		}
	}
	c.Trusted = true
	if c.note(unix.TIME_ERROR, unix.EPERM); !c.Now().Synced {
		t.Error("the clock is not trusted, although its operator does")
	}
}

// TestLookAsksTheKernel: Look stores what the kernel of this machine answers.
func TestLookAsksTheKernel(t *testing.T) {
	var answer unix.Timex
	state, err := unix.Adjtimex(&answer)
	want := err == nil && state != unix.TIME_ERROR
	var c Clock
	c.synced.Store(!want)
	c.CheckSync()
	if c.Now().Synced != want {
		t.Errorf("trusted %t, and the kernel says %d, %v", !want, state, err)
	}
}

// TestClocksRead: the wall clock is the machine's, the monotonic clock does not go back.
func TestClocksRead(t *testing.T) {
	var c Clock
	first, before := c.Now(), time.Now()
	second := c.Now()
	if second.Mono < first.Mono {
		t.Errorf("the monotonic clock goes back from %d to %d", first.Mono, second.Mono)
	}
	if after := time.Now(); int64(second.Wall) < before.UnixMilli() || int64(second.Wall) > after.UnixMilli() {
		t.Errorf("the wall clock is %d, not from %d to %d", second.Wall, before.UnixMilli(), after.UnixMilli())
	}
}
