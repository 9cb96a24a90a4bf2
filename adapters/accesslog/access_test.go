package accesslog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"macronode/adapters/accesslog"
)

// A paper is the output of a log. If held is set, writes block until it is closed.
type paper struct {
	held chan struct{}
	bytes.Buffer
}

func (p *paper) Write(b []byte) (int, error) {
	if p.held != nil {
		<-p.held
	}
	return p.Buffer.Write(b)
}

// lines returns the attribute n of each written line, and the total number of missing lines.
func (p *paper) lines(t *testing.T) (ns []int, missing uint64) {
	t.Helper()
	for d := json.NewDecoder(&p.Buffer); d.More(); {
		var one struct {
			N    int    `json:"n"`
			Left uint64 `json:"left_out"`
		}
		if err := d.Decode(&one); err != nil {
			t.Fatal(err)
		}
		ns, missing = append(ns, one.N), missing+one.Left
	}
	return ns, missing
}

func intField(n int) func() []slog.Attr {
	return func() []slog.Attr { return []slog.Attr{slog.Int("n", n)} }
}

// open starts a log that is on. Its handler has a level that suppresses other lines. The returned
// function ends it.
func open(p *paper) (l *accesslog.Log, end func()) {
	l = accesslog.New(slog.NewJSONHandler(p, &slog.HandlerOptions{Level: slog.LevelError}))
	l.Turn(true)
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { _ = l.Run(ctx) })
	return l, func() { stop(); all.Wait() }
}

// TestEachIsWritten checks that each request gets one line, in order, and none while the log is off.
func TestEachIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(paper)
		l, end := open(p)
		for n := range 100 {
			l.Turn(n != 50)
			l.Note(n%7 == 0, intField(n))
		}
		end()
		ns, missing := p.lines(t)
		if len(ns) != 99 || ns[0] != 0 || ns[50] != 51 || missing != 0 || l.Counts() != (accesslog.Counts{Written: 99}) {
			t.Errorf("%v, %d missing, %+v", ns, missing, l.Counts())
		}
	})
}

// TestFloodIsSampled checks that a flood is sampled over the whole second, that failed requests are
// sampled independently of successful ones, and that all lines left out are counted.
func TestFloodIsSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(paper)
		l, end := open(p)
		const most = 50_000
		for n := range most {
			l.Note(false, intField(n))
			if n%100 == 0 {
				l.Note(true, intField(-n))
			}
			synctest.Wait()
		}
		time.Sleep(time.Second) // synctest time: the next second begins
		l.Note(false, intField(most))
		end()
		ns, missing := p.lines(t)
		failed, late := 0, 0
		for _, n := range ns {
			if n < 0 {
				failed++
			}
			if n > most/2 {
				late++
			}
		}
		c := l.Counts()
		if len(ns) > 10*accesslog.Each || failed != most/100-1 || late < 100 || c.Lost != 0 || c.Written != uint64(len(ns)) || c.LeftOut != missing || c.Written+missing != most+most/100+1 {
			t.Errorf("%d lines, %d of failures, %d late, %d missing, %+v", len(ns), failed, late, missing, c)
		}
	})
}

// TestNoteNeverBlocks checks that requests continue while the output blocks, and that lines lost because
// the queue is full are counted and reported by the next line.
func TestNoteNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paper{held: make(chan struct{})}
		l, end := open(p)
		came := 0
		for range 5 { // seconds
			for range accesslog.Each {
				l.Note(false, intField(came))
				came++
			}
			time.Sleep(time.Second)
		}
		if depth, limit := l.Waiting(); depth != limit || l.Counts().Lost == 0 {
			t.Errorf("%d of %d wait, %+v", depth, limit, l.Counts())
		}
		close(p.held)
		synctest.Wait()
		l.Note(false, intField(came))
		end()
		ns, missing := p.lines(t)
		if c := l.Counts(); c.Lost != missing || c.LeftOut != 0 || len(ns)+int(missing) != came+1 || ns[len(ns)-1] != came {
			t.Errorf("%d came: %d lines, %d missing, %+v", came, len(ns), missing, c)
		}
	})
}
