package index

import "macronode/core/event"

// Stats is the state of the index.
type Stats struct {
	Mark     event.Watermark
	Kept     event.Watermark // of the tables
	Lag      uint64          // offered frames that are not folded
	Tail     int             // frames in no table yet
	Ingested uint64          // tails written since the start
	Rebuilt  uint64          // rebuilds since the start
	Tables   int64           // number of tables after the last ingest
	Disk     uint64          // bytes of these tables

	Abandoned int // engines that have stopped in this process, and whose memory is not released
}

// Stats returns the current state. If the index does not run, only the counters are set.
func (x *Indexer) Stats() Stats {
	s := Stats{Ingested: x.ingests.Load(), Rebuilt: x.rebuilds.Load(), Abandoned: int(x.deaths.Load())}
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
