package journalfile_test

import (
	"fmt"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// transfers returns a batch as a busy node writes it.
func transfers(lsn types.LSN, n int) (arena []byte, batch []event.Frame) {
	r := record.Record{Kind: record.Posted, Op: event.Transfer, Tenant: 1, Caller: 77,
		Key:  types.Name{Text: []byte("payment-2024-000000000001")},
		From: types.Name{Text: []byte("customer:0000000001")}, To: types.Name{Text: []byte("merchant:0000000002")},
		Asset: types.Name{Text: []byte("EUR/2")}, Amount: types.MinorUnits(1250), FromBalance: types.MinorUnits(1 << 40),
		ToBalance: types.MinorUnits(1 << 41), DebitedToday: types.MinorUnits(1 << 20)}
	for range n {
		off := uint32(len(arena))
		r.Nonce, r.Seq = types.Nonce(lsn), types.Seq(lsn)
		r.Key.Text = fmt.Appendf(nil, "payment-2024-%012d", lsn)
		arena = record.Begin(arena, lsn, types.Time(lsn))
		arena, _ = record.Add(arena, off, &r)
		batch = append(batch, event.Frame{LSN: lsn, Off: off, Len: uint32(len(arena)) - off})
		lsn++
	}
	return arena, batch
}

// BenchmarkRecover reads a journal of transfers, on one core, without the fold.
func BenchmarkRecover(b *testing.B) {
	const all = 200_000
	dir := fs.Dir(b.TempDir())
	j, _, err := journalfile.Recover(dir, ours, nil)
	must(b, err)
	for j.Durable() < all {
		arena, batch := transfers(j.Durable()+1, 1000)
		_, err := j.Write(arena, batch)
		must(b, err)
		_, err = j.Sync()
		must(b, err)
	}
	must(b, j.Close())
	var found journalfile.Found
	b.ReportAllocs()
	for b.Loop() {
		found, err = journalfile.Scan(dir, func([]record.Sealed) error { return nil }, nil)
		must(b, err)
	}
	b.ReportMetric(float64(b.N)*all/b.Elapsed().Seconds(), "frames/s")
	b.ReportMetric(float64(found.Bytes)/all, "B/frame")
}

// BenchmarkWriteSync chains, writes and syncs a batch.
func BenchmarkWriteSync(b *testing.B) {
	for _, c := range []struct {
		name   string
		frames int
	}{{"1", 1}, {"64", 64}, {"1000", 1000}} {
		b.Run(c.name, func(b *testing.B) {
			dir := fs.Dir(b.TempDir())
			j, _, err := journalfile.Recover(dir, ours, nil)
			must(b, err)
			defer j.Close()
			arena, batch := transfers(1, c.frames)
			b.ReportAllocs()
			for b.Loop() {
				_, err := j.Write(arena, batch)
				must(b, err)
				_, err = j.Sync()
				must(b, err)
				for i := range batch { // renumber the batch; the bodies are not read here
					batch[i].LSN += types.LSN(c.frames)
				}
			}
			b.ReportMetric(float64(b.N)*float64(c.frames)/b.Elapsed().Seconds(), "frames/s")
		})
	}
}

// BenchmarkRead reads an old frame from its segment.
func BenchmarkRead(b *testing.B) {
	dir := fs.Dir(b.TempDir())
	j, _, err := journalfile.Recover(dir, ours, nil)
	must(b, err)
	defer j.Close()
	for j.Durable() < 10_000 {
		arena, batch := transfers(j.Durable()+1, 1000)
		_, err := j.Write(arena, batch)
		must(b, err)
		_, err = j.Sync()
		must(b, err)
	}
	dice := types.NewRand(1)
	b.ReportAllocs()
	for b.Loop() {
		_, err := j.Read(types.LSN(1 + dice.Uint64n(10_000)))
		must(b, err)
	}
}

// BenchmarkOwn looks at the starts of 1,000 segments.
func BenchmarkOwn(b *testing.B) {
	const all = 1000
	dir := fs.Dir(b.TempDir())
	for range all {
		j, _, err := journalfile.Recover(dir, ours, nil)
		must(b, err)
		must(b, j.Close())
	}
	for b.Loop() {
		_, others, err := journalfile.Own(dir, []types.Epoch{1})
		must(b, err)
		if len(others) != all-1 {
			b.Fatal(len(others))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/all, "µs/segment")
}
