package state_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/types"
)

func dumped(s *state.State) (rows [][]byte) {
	s.Dump(func(b []byte) { rows = append(rows, bytes.Clone(b)) })
	return rows
}

func loaded(rows [][]byte, l state.Limits, seed types.Hash64) (s state.State, err error) {
	s = state.New(l, seed)
	for _, b := range rows {
		if err := s.Load(b); err != nil {
			return s, err
		}
	}
	return s, s.Check()
}

// reloads runs random frames. At some frames it dumps and loads the state; the loaded state is
// equal, dumps the same rows, and behaves like the original.
func reloads(t tb, pick func(n int) int, steps int) {
	l := &run{machine: newMachine(t), pick: pick, asked: map[string]*event.Request{}}
	other := state.New(limits(), types.Hash64(pick(1<<30)))
	for range steps {
		body := l.step()
		if body == nil {
			continue
		}
		if err := other.Fold(body, nil); err != nil {
			t.Fatalf("%v", err)
		}
		if pick(5) > 0 {
			continue
		}
		rows := dumped(&other)
		back, err := loaded(rows, limits(), types.Hash64(pick(1<<30)))
		if err != nil {
			t.Fatalf("frame %v: %v", other.LSN, err)
		}
		if again := dumped(&back); !equal(rows, again) || back.Hash() != l.state.Hash() {
			t.Fatalf("frame %v: %d rows, loaded %d; the hash is %x, was %x", other.LSN, len(rows), len(again), back.Hash(), l.state.Hash())
		}
		if whole := dumped(&l.state); !equal(rows, whole) {
			t.Fatalf("frame %v: the loaded and the original state dump different rows", other.LSN)
		}
		other = back
	}
	if other.Hash() != l.state.Hash() {
		t.Fatalf("folded on to %x, not %x", other.Hash(), l.state.Hash())
	}
}

func equal(a, b [][]byte) bool {
	same := len(a) == len(b)
	for i := 0; same && i < len(a); i++ {
		same = bytes.Equal(a[i], b[i])
	}
	return same
}

func TestLoadRestoresDump(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reloads(t, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }, 40)
	})
}

// TestLoadRestoresDumpLong uses longer runs.
func TestLoadRestoresDumpLong(t *testing.T) {
	for seed := range uint64(20) {
		dice := types.NewRand(seed)
		reloads(t, func(n int) int { return int(dice.Uint64n(uint64(n))) }, 300)
	}
}

// runRows returns the rows of a run, with some of every part.
func runRows(t *testing.T) (rows [][]byte, s *state.State) {
	t.Helper()
	dice := types.NewRand(3)
	l := walk(t, func(n int) int { return int(dice.Uint64n(uint64(n))) }, 300)
	rows = dumped(&l.state)
	parts := map[byte]int{}
	for _, b := range rows {
		parts[b[0]]++
	}
	if parts[1] != 1 || parts[2] < 10 || parts[3] < 5 || parts[4] < 2 {
		t.Fatalf("%v", parts)
	}
	return rows, &l.state
}

// TestLoadNeedsRoom: for each limit, the exact number of rows is enough, and one less returns
// ErrRoom.
func TestLoadNeedsRoom(t *testing.T) {
	rows, s := runRows(t)
	for what, limit := range map[string]func(*state.Limits) *int{
		"accounts": func(l *state.Limits) *int { return &l.Ledger.Accounts },
		"holdings": func(l *state.Limits) *int { return &l.Ledger.Holdings },
		"assets":   func(l *state.Limits) *int { return &l.Ledger.Assets },
		"tenants":  func(l *state.Limits) *int { return &l.Ledger.Tenants },
		"seen":     func(l *state.Limits) *int { return &l.Idempotency.Keys },
		"askers":   func(l *state.Limits) *int { return &l.Idempotency.Tenants },
		"API keys": func(l *state.Limits) *int { return &l.Keys },
	} {
		enough := -1
		for room := range *limit(new(limits())) + 1 {
			within := limits()
			*limit(&within) = room
			back, err := loaded(rows, within, 9)
			switch {
			case err != nil && !errors.Is(err, state.ErrRoom):
				t.Errorf("%d %s: %v", room, what, err)
			case err == nil && back.Hash() != s.Hash():
				t.Errorf("%d %s: another state", room, what)
			case err == nil && enough < 0:
				enough = room
			case err != nil && enough >= 0:
				t.Errorf("%d %s are enough, %d are not", enough, what, room)
			}
		}
		if enough <= 0 {
			t.Errorf("%d %s are enough", enough, what)
		}
	}
}

// TestLoadSurvivesDamage: with changed, repeated, reordered or missing rows, loading returns an
// error or a valid state. It never panics.
func TestLoadSurvivesDamage(t *testing.T) {
	rows, _ := runRows(t)
	refused := 0
	try := func(rows [][]byte) {
		if back, err := loaded(rows, limits(), 9); err != nil {
			refused++
		} else if err := back.Check(); err != nil {
			t.Fatal(err)
		}
	}
	edited := func(n int, b ...[]byte) [][]byte {
		return append(append(append([][]byte{}, rows[:n]...), b...), rows[n+1:]...)
	}
	for n, row := range rows {
		for at := range row {
			for _, to := range []byte{0, 0xff, row[at] ^ 1} {
				b := bytes.Clone(row)
				b[at] = to
				try(edited(n, b))
			}
			try(edited(n, row[:at]))
		}
		try(edited(n))
		try(edited(n, row, row))
		try(edited(n, append(bytes.Clone(row), 0)))
		for m := range n {
			swapped := edited(n, rows[m])
			swapped[m] = row
			try(swapped)
		}
	}
	if refused < 5*len(rows) {
		t.Errorf("%d refused", refused)
	}
}

// TestOwnRowIsFrozen: later versions read the snapshots of this version.
func TestOwnRowIsFrozen(t *testing.T) {
	d := newMachine(t)
	d.frame(0x0102, record.Record{Kind: record.Started, Journal: 0x1112131415161718})
	rows := dumped(&d.state)
	want := "0100" + "0100000000000000" + "0201000000000000" + "1817161514131211" + "0100000000000000"
	if got := hex.EncodeToString(rows[0]); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if len(rows) != 2 || rows[1][0] != 3 {
		t.Errorf("%x", rows)
	}
	for what, edit := range map[string]func([]byte){
		"no frame":       func(b []byte) { clear(b[2:10]) },
		"far too large":  func(b []byte) { b[9] = 1 },
		"one too large":  func(b []byte) { binary.LittleEndian.PutUint64(b[2:], types.MaxLSN+1) },
		"before time":    func(b []byte) { b[17] = 0x80 },
		"another kind":   func(b []byte) { b[1] = 1 },
		"another part":   func(b []byte) { b[0] = 9 },
		"a part at once": func(b []byte) { b[0] = 2 },
	} {
		b := bytes.Clone(rows[0])
		edit(b)
		s := state.New(limits(), 1)
		if err := s.Load(b); !errors.Is(err, state.ErrRow) || s.LSN != 0 {
			t.Errorf("%s: %v", what, err)
		}
	}
	last, s := bytes.Clone(rows[0]), state.New(limits(), 1)
	binary.LittleEndian.PutUint64(last[2:], types.MaxLSN)
	if err := s.Load(last); err != nil || s.LSN != types.MaxLSN {
		t.Errorf("the last frame that can be: %v", err)
	}
}
