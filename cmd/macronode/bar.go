package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// A bar shows on a terminal how far a transfer is: bytes, rate and the time that is left.
type bar struct {
	c     *console
	what  string
	total int64 // 0: not known
	done  int64
	first int64 // done at the start: it does not count for the rate
	began time.Time
	said  time.Time
}

// bar begins a transfer. Nothing is shown where standard error is no terminal.
func (c *console) bar(what string, total int64) *bar {
	now := c.now()
	return &bar{c: c, what: what, total: total, began: now, said: now}
}

// reader counts what is read from r, writer what is written to w.
func (b *bar) reader(r io.Reader) io.Reader { return io.TeeReader(r, b) }
func (b *bar) writer(w io.Writer) io.Writer {
	b.first = b.done
	return io.MultiWriter(w, b)
}

// Write counts p.
func (b *bar) Write(p []byte) (int, error) {
	b.add(int64(len(p)))
	return len(p), nil
}

// add counts n bytes.
func (b *bar) add(n int64) {
	b.done += n
	if now := b.c.now(); b.c.watched && now.Sub(b.said) >= 200*time.Millisecond {
		b.said = now
		_, _ = fmt.Fprintf(b.c.err, "\r%s\x1b[K", b.text(now)) // it is only a sight
	}
}

// text is the line at a time.
func (b *bar) text(now time.Time) string {
	rate := float64(b.done-b.first) / max(now.Sub(b.began).Seconds(), 0.001)
	if b.total <= 0 {
		return fmt.Sprintf("%s %s, %s/s", b.what, megabytes(b.done), megabytes(int64(rate)))
	}
	full := int(min(barWidth, b.done*barWidth/b.total))
	left := time.Duration(float64(b.total-b.done) / max(rate, 1) * float64(time.Second)).Round(time.Second)
	return fmt.Sprintf("%s [%s%s] %s of %s, %s/s, %v left", b.what, strings.Repeat("=", full), strings.Repeat(" ", barWidth-full),
		megabytes(b.done), megabytes(b.total), megabytes(int64(rate)), left)
}

// end removes the line.
func (b *bar) end() {
	if b.c.watched {
		_, _ = fmt.Fprint(b.c.err, "\r\x1b[K") // the same
	}
}
