package archive_test

import (
	"fmt"
	"testing"

	"macronode/adapters/archive"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// transfers makes the journal of a busy node: one segment and the beginning of another.
func transfers(b *testing.B, d fs.FS, frames int) {
	b.Helper()
	j, _, err := journalfile.Recover(d, 7, nil)
	must(b, err)
	dice := types.NewRand(1)
	for j.Durable() < types.LSN(frames) {
		var arena []byte
		var batch []event.Frame
		for lsn := j.Durable() + 1; len(batch) < 100; lsn++ {
			off, n := uint32(len(arena)), dice.Uint64n(1<<40)
			key := fmt.Appendf(nil, "%x", digest.Sum(fmt.Appendf(nil, "%d", lsn)))[:32]
			asked := digest.Sum(key)
			r := record.Record{Kind: record.Posted, Op: event.Transfer, Tenant: 1, Caller: 77, Key: types.Name{Text: key}, Hash: types.RequestHash(asked[:16]),
				From: types.Name{Text: fmt.Appendf(nil, "customer:%010d", dice.Uint64n(1000))}, To: types.Name{Text: fmt.Appendf(nil, "merchant:%010d", dice.Uint64n(1000))},
				Asset: types.Name{Text: []byte("EUR/2")}, Amount: types.MinorUnits(1 + dice.Uint64n(100_000)), FromBalance: types.MinorUnits(n), ToBalance: types.MinorUnits(n * 3),
				DebitedToday: types.MinorUnits(n / 7), Nonce: types.Nonce(lsn / 1000), Seq: types.Seq(lsn)}
			arena = record.Begin(arena, lsn, types.Time(1_700_000_000_000+lsn/10))
			arena, _ = record.Add(arena, off, &r)
			batch = append(batch, event.Frame{LSN: lsn, Off: off, Len: uint32(len(arena)) - off})
		}
		_, err := j.Write(arena, batch)
		must(b, err)
		_, err = j.Sync()
		must(b, err)
	}
	j.Roll = 1
	arena := record.Begin(nil, j.Durable()+1, 1_800_000_000_000)
	_, err = j.Write(arena, []event.Frame{{LSN: j.Durable() + 1, Len: uint32(len(arena))}})
	must(b, err)
	_, err = j.Sync()
	must(b, err)
	must(b, j.Close())
}

// BenchmarkMove moves a segment of transfers to the archive.
func BenchmarkMove(b *testing.B) {
	const frames = 100_000
	for b.Loop() {
		b.StopTimer()
		live, kept := fs.Dir(b.TempDir()), fs.Dir(b.TempDir())
		transfers(b, live, frames)
		a := over(b, live, kept)
		names, err := journalfile.Behind(live, frames)
		must(b, err)
		b.StartTimer()
		must(b, a.Move(names, nil, func(m archive.Moved) {
			b.SetBytes(m.Bytes)
			b.ReportMetric(float64(m.Bytes)/float64(m.Kept), "times-smaller")
			b.ReportMetric(float64(m.Kept)/frames, "B/frame")
		}))
	}
}

// BenchmarkRead reads a random frame of a moved segment.
func BenchmarkRead(b *testing.B) {
	const frames = 100_000
	live, kept := fs.Dir(b.TempDir()), fs.Dir(b.TempDir())
	transfers(b, live, frames)
	a := over(b, live, kept)
	names, err := journalfile.Behind(live, frames)
	must(b, err)
	must(b, a.Move(names, nil, quiet))
	last := journalfile.From{}
	_, err = journalfile.Reading{Each: func(all []record.Sealed) error {
		s := all[len(all)-1]
		last = journalfile.From{LSN: s.LSN, Root: s.Root, Journal: s.Journal}
		return nil
	}}.Scan(a)
	must(b, err)
	j, _, err := journalfile.Reading{From: last}.Recover(a, 7)
	must(b, err)
	defer j.Close()
	dice := types.NewRand(2)
	for b.Loop() {
		_, err := j.Read(types.LSN(1 + dice.Uint64n(frames)))
		must(b, err)
	}
}
