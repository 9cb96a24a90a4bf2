package main

import (
	"strings"

	"macronode/ci/bench/sheet"
)

// fixedSections are what the page says beyond a run: measurements of benchmarks and of earlier versions. They are changed by hand.
func fixedSections() []sheet.Section {
	all := []sheet.Section{
		{Title: "Where the time goes", Text: objectCosts, Head: []string{"changed", "before", "after"}, Rows: objectChanges},
		{Title: "Copies and shards", Text: redundancyText, Head: []string{"stored as", "bytes stored for each byte", "PUT", "GET", "GET without one, two, three disks"}, Rows: [][]string{
			{"one copy", "1.00", "242 MB/s", "3,784 MB/s", "–"},
			{"three copies", "3.00", "135 MB/s", "2,319 MB/s", "2,543, 2,585 MB/s"},
			{"shards, 6+3", "1.53", "215 MB/s", "3,136 MB/s", "1,000, 848, 906 MB/s"},
		}},
		{Title: "Reads during a repair", Text: repairText, Head: []string{"repair", "p50 µs", "p95 µs", "MB/s that the repair reads"}, Rows: [][]string{
			{"none", "22.0 (20.8–22.8)", "63.3 (57.1–1,172)", "0"},
			{"50 MiB/s, the default of `storage.repair.rate`", "22.0 (21.4–24.1)", "66.8 (58.7–2,032)", "21.6 (16.9–28.8)"},
			{"no limit", "22.6 (22.2–23.3)", "59.2 (58.2–604)", "23.1 (19.7–26.8)"},
		}},
	}
	for i := range all {
		all[i].Text = strings.ReplaceAll(all[i].Text, "¢", "`")
	}
	return all
}

const redundancyText = `The benchmarks ¢BenchmarkPutRedundant¢ and ¢BenchmarkGetRedundant¢ of ¢adapters/objectstore¢: one object of 8 MiB after the other, into and from nine directories of one disk, on two cores. With a disk for each directory, an upload is
faster. A read is from the page cache, so it shows what verification and the code cost.

* 6+3 is 1.5, and the nodes of the hash tree in each of nine shards are 0.9 %. The rest is the last stripe: its parity is as long as its longest group.
* Computing the parity of a stripe takes 6 µs, less than 1 % of an upload (¢BenchmarkEncode¢ of ¢adapters/erasure¢).
* A read that restores groups hashes each good group twice: as a source, and when it is sent.`

const repairText = `¢BenchmarkReadDuringRepair¢ of ¢adapters/objectstore¢, on two cores: four readers verify objects of 64 KiB in the page cache, while copies of objects of 1 MiB are written again, synced and verified. Both copies are on one disk.
Medians of five runs of 20,000 reads, with the least and the most in parentheses. Other programs took most of the machine: hence the slowest runs of each row, and a repair below its budget. The repair adds
nothing to p95 that is more than this noise. A repair reads each byte twice: from the source, and to verify. The time of the network is in no number.`
