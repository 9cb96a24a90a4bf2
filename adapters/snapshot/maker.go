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

// ErrApart is what Source.Read says when the journal does not go on from a head.
var ErrApart = errors.New("snapshot: the journal does not go on from it")

// A Source is the journal that is summed up.
type Source struct {
	Durable func() types.LSN // what is durable; frames beyond are not read
	Grown   func() int64     // bytes written since some time; and before, those that a start had to read
	// Read hands on the frames behind a head, to the last one wanted, in order.
	Read func(after Head, upto types.LSN, each func([]record.Sealed) error) error
}

// Config is when and how snapshots are made.
type Config struct {
	Every  int64 // bytes of journal after which there is another; or as many as the last one had, if that is more
	Limits state.Limits
	Seed   types.Hash64
	Tick   time.Duration // how often it is looked whether there is
	Made   func(Made)    // is told of each
	Doubt  func(error)   // is told of each that was not to be believed
	// Rest lets the others have the machine for so long, or until ctx ends: as long as
	// was worked just before. Nil: with a timer.
	Rest func(ctx context.Context, worked time.Duration) error
}

// Made is a snapshot that was made.
type Made struct {
	Head
	Frames uint64 // that were folded for it
	Bytes  int64  // of the file
	Took   time.Duration
}

// Maker makes snapshots beside a running node, each from the one before and the frames
// behind that, in a state of its own: it takes no lock that an answer waits for. While it
// works it has as much memory as the node's state, and gives it back.
type Maker struct {
	Config
	dir   fs.FS
	from  Source
	grown int64 // when the last one was made
	size  int64 // of the last one
	since time.Time
}

// New makes none yet. It keeps two in dir.
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

// Run makes them as they are due, until ctx ends or one cannot be made.
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

// Due reports that the journal has grown enough.
func (m *Maker) Due() bool { return m.from.Grown()-m.grown >= max(m.Every, m.size) }

// Make makes one as of the last durable frame, if there is none yet, and forgets all but
// that and the one before it.
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

// after makes one of the frame upto, from the one of base, or from nothing.
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
	if err := st.Check(); err != nil { // here no start waits for it
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
