package main

import (
	"strconv"

	"macronode/ci/bench/sample"
	"macronode/ci/bench/sheet"
)

// report writes the page of objects.
func (o *objects) report() {
	o.page.Head = objectsHead
	for _, w := range objectWorks {
		rows := [][]string{}
		for _, name := range o.names {
			s, nginx, versitygw := o.series(w, name), o.series(w, nginxFiles), o.series(w, versity)
			rows = append(rows, []string{name, cell(s, sample.Rate), cell(s, sample.P50), cell(s, sample.P99), cell(s, sample.CPU),
				times(s.Ratio(versitygw, sample.Rate)), times(s.Ratio(versitygw, sample.CPU)), times(s.Ratio(nginx, sample.Rate)), times(s.Ratio(nginx, sample.CPU)), percent(s)})
		}
		o.page.Sections = append(o.page.Sections, sheet.Section{Title: w.name, Text: w.text(), Head: []string{"server", "requests/s", "p50 µs", "p99 µs", "CPU µs per request",
			"rate ÷ versitygw", "CPU ÷ versitygw", "rate ÷ nginx", "CPU ÷ nginx", "other load"}, Rows: rows})
	}
	o.reportMemory()
	o.reportSigning()
	o.goals()
	o.page.Sections = append(o.page.Sections, fixedSections()...)
}

// objectChanges are CPU µs per request of two versions that were measured by turns.
var objectChanges = [][]string{{"range of 1 MiB", "143", "100"}, {"GET 64 KiB", "129", "105"}, {"GET 1 MiB", "997", "1,007"}, {"PUT 1 MiB", "3,621", "1,643"}}

func (w objectWork) text() string {
	switch {
	case w.put:
		return "Each request stores new content under a new name, in a server that is started for the turn. Only macronode syncs: the times of the others do not contain the writing to the disk."
	case w.size == rangeHuge.size:
		return "Each request reads 4 KiB at a random place of one object of 1 GiB."
	case w.part > 0:
		return "Each request reads 4 KiB at a random place of one of " + strconv.Itoa(w.objects) + " objects of 1 MiB. macronode verifies the 64 KiB around them."
	}
	return "Each request reads one of " + strconv.Itoa(w.objects) + " objects. They are in the page cache. macronode verifies each byte; the peers verify none."
}

func (o *objects) reportMemory() {
	rows := [][]string{}
	for _, m := range o.memory {
		rows = append(rows, []string{m.server, sheet.Number(m.get), sheet.Number(m.put)})
		if m.server == nativeObjects || m.server == s3Objects {
			o.page.Goals = append(o.page.Goals,
				sheet.Goal{What: "memory of a download, " + m.server, Want: sheet.Most(256), Got: m.get, Unit: " KiB"},
				sheet.Goal{What: "memory of an upload, " + m.server, Want: sheet.Most(256), Got: m.put, Unit: " KiB"})
		}
	}
	o.page.Sections = append(o.page.Sections, sheet.Section{Title: "Memory of a stream",
		Text: "Growth of the resident memory with " + strconv.Itoa(standing) + " downloads, or uploads, that stand still halfway, for each of them. It contains connection and goroutines. Measured once.",
		Head: []string{"server", "KiB per download", "KiB per upload"}, Rows: rows})
}

func (o *objects) reportSigning() {
	var all []float64
	for _, turns := range o.turns {
		for _, t := range turns[s3Objects] {
			all = append(all, float64(t.Signing.Microseconds())/float64(max(1, t.All)))
		}
	}
	o.page.Facts = append(o.page.Facts, sheet.Fact{What: "signatures", Is: "the load generator takes " + spread1(sample.Of(all), " µs") + " for each; this is not in the CPU of the servers"})
}

func (o *objects) goals() {
	for _, ours := range [...]string{nativeObjects, s3Objects} {
		o.goal(putSmall, ours, versity, 1.5)
		o.goal(getSmall, ours, nginxFiles, 0.8)
		o.goal(getLarge, ours, nginxFiles, 0.7)
		for _, g := range minioGoals {
			o.goalOfMinIO(g, ours)
		}
		if large, huge := o.series(rangeLarge, ours), o.series(rangeHuge, ours); len(huge) > 0 {
			o.page.Goals = append(o.page.Goals, sheet.Goal{What: "CPU of a range of 1 GiB against one of 1 MiB, " + ours, Want: sheet.Most(1.2),
				Got: huge.Ratio(large, sample.CPU).Median, Unit: "×"})
		}
	}
}

// A minioGoal is at least some times the requests per second of MinIO. MinIO is not in the run: versitygw stands for it.
type minioGoal struct {
	work  objectWork
	least float64
	peer  float64 // the rate of versitygw divided by that of MinIO, in an earlier run of both
}

var minioGoals = [...]minioGoal{{putSmall, 4, 2.4}, {putLarge, 4, 1.2}, {getSmall, 3, 1.1}, {getLarge, 2.2, 2.3}, {rangeLarge, 7, 0.8}}

// goalOfMinIO is a goal against MinIO, converted into one against versitygw.
func (o *objects) goalOfMinIO(g minioGoal, ours string) {
	o.goal(g.work, ours, versity, g.least/g.peer)
	if n := len(o.page.Goals); o.has(versity) {
		o.page.Goals[n-1].What += ", for " + strconv.FormatFloat(g.least, 'g', -1, 64) + " × MinIO"
	}
}

// goal is at least so many requests per second against a peer.
func (o *objects) goal(w objectWork, ours, peer string, least float64) {
	if !o.has(peer) {
		return
	}
	a, b := o.series(w, ours), o.series(w, peer)
	o.page.Goals = append(o.page.Goals, sheet.Goal{What: w.name + ", requests per second: " + ours + " against " + peer, Want: sheet.Least(least),
		Got: a.Ratio(b, sample.Rate).Median, Unit: "×", CPU: b.Ratio(a, sample.CPU).Median})
}

const objectsHead = `# Performance of objects

` + "`ci/bench/run -only objects`" + ` writes this page. It measures macronode and its peers in one run on one machine, by turns: A B C, A B C, …
A number is the median of the rounds, with the least and the most in parentheses. A ratio is taken within each round first.

Load generator and server share the machine. Requests per second therefore depend on both, and on other programs of the machine: judge by the ratios
and by CPU per request. That is user and system time of the processes of the server, divided by all responses. Work of the kernel in its own threads, such as writing dirty pages, is in
no number.

There are 16 connections. Each sends its next request when the last one is answered. HTTP/1.1 on loopback, without TLS, without access logs.

| server | interface | before a PUT is answered | a GET verifies |
|---|---|---|---|
| macronode | native API, API key | file, directory and journal are synced; BLAKE3 | each byte against the address |
| macronode S3 | S3, Signature Version 4 | the same, and MD5 | each byte against the address |
| versitygw, posix backend, ` + "`--keep-alive --quiet`" + ` | S3, Signature Version 4 | nothing is synced; MD5 | nothing |
| rclone, ` + "`serve s3`" + ` on a local directory | S3, Signature Version 4 | nothing is synced; MD5 | nothing |
| nginx, ` + "`sendfile`" + ` and WebDAV PUT | none | nothing is synced | nothing |

macronode also checks quotas and permits of every request, and writes a record of each object. Signed requests have an unsigned payload. nginx is the ceiling: it does none of this.
The configurations are in ` + "`ci/bench/conf`" + `.

`

const objectCosts = `Shares of the CPU time of the node, from profiles of the native API while other programs ran:

| request | share |
|---|---|
| PUT 64 KiB | creating the file 67 %, hashing 5 %, sync of the file 4 %, sync of the directory 4 %, journal 3 % |
| PUT 1 MiB | creating the file 32 %, hashing 18 %, writing the file 16 %, sync of the file 9 %, reading the body 8 % |
| GET 64 KiB | writing the response 22 %, hashing 14 %, opening the file 9 %, reading it 9 %, admission and state machine 7 % |
| GET 1 MiB | hashing 37 %, writing the response 35 %, reading the file 13 % |

* Creating a file is expensive on this file system, because ext4 searches past the inodes of files that were removed in the last minutes. The other programs of the machine remove many. All servers create a file per
  upload, so all are slower by this.
* A PUT waits for three syncs, one after the other: of the file, of the directory and of the journal. The peers wait for none. So PUT of 64 KiB has half of the requests per second of versitygw at about
  the same CPU time.
* Since the run of this page, a file of one group (64 KiB) is created under its name, without a draft and a rename (¢specs/decisions/0058-create-small-objects-under-their-names.md¢). In several later runs of POST by turns it
  took 0.91–0.97 of the CPU per request at 64 KiB, and 0.64–0.87 at 1 KiB.
* Since the run of this page, the stack of a connection that hashes is 32 KiB instead of 64 KiB, and the nodes of an upload do not grow by doubling. Measured alone, an upload took 316–321 KiB before and 247–248 KiB after while no
  collection ran, and 195–214 KiB and 168 KiB after one. Of these, 64 KiB are the group, up to 64 KiB the nodes, 8 KiB the buffers of the connection, and 16–32 KiB the stack. The rest is garbage.
* Through S3, MD5 takes about 1.5 ms of CPU time per MiB, on one core at a time. versitygw and rclone compute it too.
* nginx sends files with ¢sendfile¢: its process never touches the bytes. A server that verifies them must read and hash them.
* Goals "for … × MinIO" are converted into goals against versitygw. In an earlier run of both, versitygw had these multiples of the requests per second of MinIO. PUT: 2.4 at 64 KiB, 1.2 at 1 MiB. GET: 1.1 at
  64 KiB, 2.3 at 1 MiB, 0.8 for ranges. MinIO is not in this run.

The hash tree of an object is now appended to its content (¢specs/decisions/0031-append-hash-trees-to-objects.md¢), and buffers come from a pool. CPU µs per request, median of 3 turns each:`
