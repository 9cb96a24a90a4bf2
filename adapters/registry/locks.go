package registry

// Locks are all there are. Those without Inside are never taken while another is held.
var Locks = []Lock{
	{Name: "archive blocks", Where: "adapters/archive.Archive.mu", Guards: "the blocks that are kept decompressed"},
	{Name: "audit queue", Where: "adapters/audit.Log.mu", Guards: "queue, over, ended"},
	{Name: "child", Where: "adapters/children.child.mu", Guards: "the run at hand and its counts"},
	{Name: "follower", Where: "adapters/follower.Follower.mu", Guards: "the second fold, the recent frames, who waits",
		Blocks: "the fold of one frame: at most 1,024 records"},
	{Name: "guests", Where: "adapters/httpserver.guests.mu", Guards: "the requests that came before the end was asked for"},
	{Name: "connections", Where: "adapters/httpserver.listener.mu", Guards: "the open connections"},
	{Name: "index", Where: "adapters/indexer.Indexer.mu", Guards: "tails, mark, who waits",
		Blocks: "the making of a cursor over the tables"},
	{Name: "index life", Where: "adapters/indexer.store.life", Guards: "that the tables are open while they are read", Inside: []string{"index"},
		Blocks: "readers share it while they read tables, and take index again: who wants it alone has taken the tables from index before, so that no reader comes behind him"},
	{Name: "index ring", Where: "adapters/indexer.ring.mu", Guards: "the frames that were handed over"},
	{Name: "index cursors", Where: "adapters/indexer.store.mu", Guards: "cursors that nobody has", Inside: []string{"index", "index life"},
		Blocks: "the closing of idle cursors"},
	{Name: "segment", Where: "adapters/journalfile.slot.mu", Guards: "one segment that is open for reading, of 8",
		Blocks: "one read of the disk: two readers of one segment wait for each other, and nobody else"},
	{Name: "segments", Where: "adapters/journalfile.table.mu", Guards: "where frames lie"},
	{Name: "ticket", Where: "adapters/loop.slot.mu", Guards: "who waits under one ticket"},
	{Name: "samples", Where: "adapters/metrics.samples.mu", Guards: "who is asked at a scrape; not held while he is"},
	{Name: "board", Where: "cmd/macronode.board.mu", Guards: "the queues that are shown; not held while they are asked"},
	{Name: "ear", Where: "cmd/macronode.ear.mu", Guards: "the loop, and what was said before there was one"},
	{Name: "run.json", Where: "cmd/macronode.life.mu", Guards: "what others find of this run",
		Blocks: "the writing of run.json: at starts of listeners alone"},
}
