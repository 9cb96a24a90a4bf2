package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// A bar shows the progress of a transfer on a terminal: bytes, rate and remaining time.
type bar struct {
	c         *Console
	what      string
	total     int64 // 0: unknown
	done      int64
	first     int64 // done at the start; not part of the rate
	began     time.Time
	lastShown time.Time
}

// bar begins a transfer. Nothing is shown if standard error is not a terminal.
func (c *Console) bar(what string, total int64) *bar {
	now := c.now()
	return &bar{c: c, what: what, total: total, began: now, lastShown: now}
}

// reader counts what is read from r, writer what is written to w.
func (b *bar) reader(r io.Reader) io.Reader { return io.TeeReader(r, b) }
func (b *bar) writer(w io.Writer) io.Writer {
	b.first = b.done
	return io.MultiWriter(w, b)
}

// Write counts p.
func (b *bar) Write(p []byte) (int, error) {
	b.Add(int64(len(p)))
	return len(p), nil
}

// Begin restarts the transfer with a total number of bytes.
func (b *bar) Begin(total int64) { b.total, b.done, b.began = total, 0, b.c.now() }

// Add counts n bytes.
func (b *bar) Add(n int64) {
	b.done += n
	if now := b.c.now(); b.c.isErrTerminal && now.Sub(b.lastShown) >= 200*time.Millisecond {
		b.lastShown = now
		_, _ = fmt.Fprintf(b.c.err, "\r%s\x1b[K", b.text(now)) // progress is optional
	}
}

// text returns the line at a time.
func (b *bar) text(now time.Time) string {
	rate := float64(b.done-b.first) / max(now.Sub(b.began).Seconds(), 0.001)
	if b.total <= 0 {
		return fmt.Sprintf("%s %s, %s/s", b.what, megabytes(b.done), megabytes(int64(rate)))
	}
	full := int(min(barWidth, b.done*barWidth/b.total))
	text := fmt.Sprintf("%s [%s%s] %s of %s, %s/s", b.what, strings.Repeat("=", full), strings.Repeat(" ", barWidth-full),
		megabytes(b.done), megabytes(b.total), megabytes(int64(rate)))
	if rate == 0 {
		return text // the remaining time is not known
	}
	left := time.Duration(float64(b.total-b.done) / max(rate, 1) * float64(time.Second)).Round(time.Second)
	return fmt.Sprintf("%s, %v left", text, left)
}

// End removes the line.
func (b *bar) End() {
	if b.c.isErrTerminal {
		_, _ = fmt.Fprint(b.c.err, "\r\x1b[K") // progress is optional
	}
}
