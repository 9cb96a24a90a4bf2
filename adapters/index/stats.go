package index

import "macronode/core/event"

// Stats are how the index is doing.
type Stats struct {
	Mark     event.Watermark
	Kept     event.Watermark // of the tables
	Lag      uint64          // frames that were handed over and not folded
	Tail     int             // frames that no table has yet
	Ingested uint64          // tails that became tables, since the start
	Rebuilt  uint64          // times that it was made anew, since the start
	Tables   int64           // that there were when a tail became some
	Disk     uint64          // bytes that they took then
}

// Stats are those of now. Before and after a run there are only its counts.
func (x *Indexer) Stats() Stats {
	s := Stats{Ingested: x.ingests.Load(), Rebuilt: x.rebuilds.Load()}
	seen := x.ring.last()
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.store == nil {
		return s
	}
	s.Tables, s.Disk = x.store.count.Load(), x.store.onDisk.Load()
	s.Mark = event.Watermark{LSN: x.tail.last.lsn, At: x.tail.last.at}
	s.Kept = event.Watermark{LSN: x.kept.lsn, At: x.kept.at}
	if seen > s.Mark.LSN {
		s.Lag = uint64(seen - s.Mark.LSN)
	}
	if s.Tail = x.tail.frames; x.frozen != nil {
		s.Tail += x.frozen.frames
	}
	return s
}
