package snapshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"macronode/adapters/fs"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

// ErrApart is returned by Source.Read if the journal does not continue from a head.
var ErrApart = errors.New("snapshot: the journal does not continue from it")

// A Source is the journal to make snapshots of.
type Source struct {
	Durable func() types.LSN // the last durable frame; later ones are not read
	Grown   func() int64     // bytes written since a fixed time, and those that a start had to read before
	// Read delivers the frames after a head, up to a given one, in order.
	Read func(after Head, upto types.LSN, each func([]record.Sealed) error) error
}

// Config is when and how snapshots are made.
type Config struct {
	Every  int64 // bytes of journal between snapshots, at least the size of the last snapshot
	Limits state.Limits
	Seed   types.Hash64
	Tick   time.Duration // interval of the check whether a snapshot is due
	Made   func(Made)    // called for each snapshot
	Doubt  func(error)   // called for each invalid snapshot
	// Rest pauses for as long as the last slice of work, or until ctx ends, so that others get
	// the CPU. Nil: with a timer.
	Rest func(ctx context.Context, worked time.Duration) error
}

// Made is the result of making a snapshot.
type Made struct {
	Head
	Frames uint64 // number of frames folded
	Bytes  int64  // of the file
	Took   time.Duration
}

// Maker makes snapshots beside a running node: each from the previous one and the frames after
// it, in its own state, without a lock that a request needs. While it works, it takes as much
// memory as the state of the node.
type Maker struct {
	Config
	dir   fs.FS
	from  Source
	grown int64 // at the time of the last one
	size  int64 // of the last one
	since time.Time
}

// New returns a Maker that keeps two snapshots in dir.
func New(c Config, dir fs.FS, from Source) *Maker {
	if c.Rest == nil {
		c.Rest = rest
	}
	return &Maker{Config: c, dir: dir, from: from}
}

func rest(ctx context.Context, worked time.Duration) error {
	t := time.NewTimer(worked)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Run makes snapshots when they are due, until ctx ends or one fails.
func (m *Maker) Run(ctx context.Context) error {
	tick := time.NewTicker(m.Tick)
	defer tick.Stop()
	if all, err := List(m.dir); err == nil && len(all) > 0 {
		if r, err := open(m.dir, all[0]); err == nil {
			m.size = r.size
			r.file.Close() //nolint:errcheck // it was only read
		}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if !m.Due() {
			continue
		}
		if err := m.Make(ctx); ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// Due reports whether the journal has grown enough.
func (m *Maker) Due() bool { return m.from.Grown()-m.grown >= max(m.Every, m.size) }

// Make makes a snapshot as of the last durable frame, unless it exists, and removes all but that
// and the previous one.
func (m *Maker) Make(ctx context.Context) error {
	grown, upto := m.from.Grown(), m.from.Durable()
	began := time.Now()
	m.since = began
	step := func() error { return m.step(ctx) }
	if upto == 0 {
		return nil
	}
	if err := Sweep(m.dir, func(types.LSN) bool { return true }); err != nil {
		return err
	}
	all, err := List(m.dir)
	if err != nil {
		return err
	}
	for n := 0; n <= len(all); n++ {
		base := types.LSN(0)
		if n < len(all) {
			base = all[n]
		}
		if base > upto {
			m.doubt(fmt.Errorf("%w: %s: the journal ends before it", ErrDoubt, Name(base)))
			continue
		}
		made, err := m.after(base, upto, step)
		if errors.Is(err, ErrDoubt) || errors.Is(err, ErrApart) {
			m.doubt(err)
			continue
		}
		if err != nil {
			return err
		}
		if m.grown, made.Took = grown, time.Since(began); made.Frames == 0 {
			return nil
		}
		if err := Sweep(m.dir, func(lsn types.LSN) bool { return lsn >= made.LSN || lsn == base }); err != nil {
			return err
		}
		if m.size = made.Bytes; m.Made != nil {
			m.Made(made)
		}
		return nil
	}
	return fmt.Errorf("%w: and none from the beginning", ErrApart)
}

func (m *Maker) doubt(err error) {
	if m.Doubt != nil {
		m.Doubt(err)
	}
}

// step is called after each slice of work.
func (m *Maker) step(ctx context.Context) error {
	worked := time.Since(m.since)
	if err := m.Rest(ctx, worked); err != nil {
		return err
	}
	m.since = time.Now()
	return context.Cause(ctx)
}

// after makes the snapshot of frame upto from that of base; base 0 means from the first frame.
func (m *Maker) after(base, upto types.LSN, step func() error) (made Made, err error) {
	st := state.New(m.Limits, m.Seed)
	if base > 0 {
		if made.Head, err = Load(m.dir, base, &st, step); err != nil {
			return made, err
		}
	}
	if upto == base {
		return made, nil
	}
	err = m.from.Read(made.Head, upto, func(all []record.Sealed) error {
		for i := range all {
			if err := st.Fold(all[i].Body, nil); err != nil {
				return fmt.Errorf("snapshot: fold %v: %w", all[i].LSN, err)
			}
			made.Journal, made.Root = all[i].Journal, all[i].Root
		}
		made.Frames += uint64(len(all))
		return step()
	})
	if err != nil {
		return made, err
	}
	if made.LSN, made.At = st.LSN, st.At; st.LSN != upto {
		return made, fmt.Errorf("snapshot: the journal gave %v of %v", st.LSN, upto)
	}
	if err := st.Check(); err != nil { // no start waits for it here
		return made, fmt.Errorf("snapshot: %v: %w", upto, err)
	}
	if made.Bytes, err = Write(m.dir, made.Head, &st, step); err != nil {
		return made, err
	}
	h, err := Check(m.dir, upto, step)
	if err == nil && h != made.Head {
		err = doubt(upto, "it is read back as another")
	}
	return made, err
}
