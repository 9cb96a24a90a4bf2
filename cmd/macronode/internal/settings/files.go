package settings

import (
	"fmt"

	"macronode/adapters/bucket"
	"macronode/adapters/config"
	"macronode/adapters/export"
	"macronode/adapters/index"
	"macronode/adapters/proxy"
	"macronode/core/openfiles"
)

// Files are the open files of a configuration, connections and directories included: those of the node itself, and those of uses that can do
// with fewer.
type Files struct {
	Own []FileTerm

	Public  FileUse // connections of the public listener, and of the S3 listener
	Admin   FileUse // connections of the admin listener, each with a file that its request reads
	Proxy   FileUse // connections to upstreams
	Buckets FileUse // requests to each bucket
	Index   FileUse // tables of the index
}

// A FileTerm is a count of items that have a number of files open.
type FileTerm struct {
	Of    string `json:"of"`
	Count int    `json:"count"`
	Each  int    `json:"each_files"`
}

// A FileUse is a use that can do with fewer files.
type FileUse struct {
	Of string
	openfiles.Use
}

// FileShares are what each use of files gets.
type FileShares struct {
	Public, Admin int // connections of each listener
	Proxy         int // connections to upstreams
	Buckets       int // requests to each bucket
	Index         int // tables of the index
}

// What each use cannot do without.
const (
	LeastConns       = 64 // connections of the public listener
	leastAdminConns  = 16
	leastProxyConns  = 32
	leastBucketCalls = 16
)

// Files of the node itself that do not depend on the configuration.
const (
	processFiles  = 48 // standard streams, the runtime, listeners, locks, files of keys and certificates that are read, connections that are being closed
	journalFiles  = 24 // the open segment and the next one, 8 that are read, the archive, the mark, directories
	snapshotFiles = 8  // one that is written, one that is read, their directories
	indexFiles    = 48 // beside the tables that are kept open: one that is written, those of a merge, those that a read still has
	auditFiles    = 4  // the log, one that is rotated, their directory
	providerFiles = 8  // its lock, its probe, a list, files that are removed
	copyFiles     = 3  // of a copy that is written: its content, its nodes, the directory or the request that gets it
	readFiles     = 2  // of a copy that is read: its content and its nodes
	callFiles     = 2  // of a request to a bucket: its connection, its credentials
	sinkFiles     = 8  // of a sink: its files, their directory, its secret
	kafkaFiles    = 64 // connections to the servers of a cluster
	sinksFiles    = 64 // of the sinks that a reload adds
)

// FilesOf returns the open files of a configuration.
func FilesOf(c *config.Config) Files {
	public := 1
	if c.Listen.S3 != "" {
		public++
	}
	conns, admin, buckets := c.Listen.MaxConns, adminConns(c), numBuckets(c)
	return Files{
		Own: append([]FileTerm{
			{"the process, its listeners and locks", 1, processFiles},
			{"the journal and its archive", 1, journalFiles},
			{"snapshots", 1, snapshotFiles},
			{"the index, beside its tables", 1, indexFiles},
			{"the audit log", 1, auditFiles},
			{"sinks (exports.sinks)", 1, max(sinksFiles, filesOfSinks(c))},
		}, objectTerms(c)...),
		Public: FileUse{"connections of the public listener and of the S3 listener (listen.max_conns)", openfiles.Use{Most: conns, Least: min(conns, LeastConns), Each: public}},
		Admin:  FileUse{"connections of the admin listener (listen.max_conns, at most 256)", openfiles.Use{Most: admin, Least: min(admin, leastAdminConns), Each: 2}},
		Proxy: FileUse{"connections to upstreams: at work (permits.proxy, permits.streams), and kept", openfiles.Use{
			Most: upstreamCalls(c) + 2*proxy.MaxIdleConns, Least: leastProxyConns, Each: 1}},
		Buckets: FileUse{"requests to each bucket (storage.providers)", openfiles.Use{Most: bucket.MaxRequests, Least: leastBucketCalls, Each: callFiles * buckets}},
		Index:   FileUse{"tables of the index", openfiles.Use{Most: index.MaxFiles, Least: index.MinFiles, Each: 1}},
	}
}

// objectTerms returns the files of uploads, downloads and repairs. An upload may read another object, which it copies.
func objectTerms(c *config.Config) []FileTerm {
	write, read := copyFiles*c.ObjectCopies(), readFiles
	if coding := c.ObjectCoding(); coding.IsSet() {
		write, read = max(write, copyFiles*coding.Shards()), readFiles*coding.Shards()
	}
	uploads := min(c.Storage.Uploads, c.Permits.Storage)
	return []FileTerm{
		{"uploads of objects (storage.uploads, storage.copies, storage.coding)", uploads, write + read},
		{"downloads of objects (permits.storage)", c.Permits.Storage - uploads, read},
		{"repairs (storage.repair.workers), and the scrub", c.Storage.Repair.Workers + 1, write + read},
		{"providers (storage.providers)", len(c.ObjectProviders()), providerFiles},
		{"connections that are kept to buckets", numBuckets(c), bucket.MaxIdleConns},
	}
}

func numBuckets(c *config.Config) (n int) {
	for _, p := range c.Storage.Providers {
		if p.Endpoint != "" {
			n++
		}
	}
	return n
}

// filesOfSinks returns the files and connections of the sinks. A connection that is being opened may have two.
func filesOfSinks(c *config.Config) (n int) {
	for i := range c.Exports.Sinks {
		s := &c.Exports.Sinks[i]
		n += sinkFiles + 2*s.Inflight
		if s.Kind == export.KindKafka {
			n += kafkaFiles
		}
	}
	return n
}

// OwnFiles returns how many files the node itself may have open.
func (f *Files) OwnFiles() (n int) {
	for _, t := range f.Own {
		n += t.Count * t.Each
	}
	return n
}

// Uses returns the uses that can do with fewer files.
func (f *Files) Uses() []FileUse { return []FileUse{f.Public, f.Admin, f.Proxy, f.Buckets, f.Index} }

func (f *Files) uses() (all []openfiles.Use) {
	for _, u := range f.Uses() {
		all = append(all, u.Use)
	}
	return all
}

// Needed returns the limit of open files at which every use has what is configured.
func (f *Files) Needed() uint64 { return openfiles.Needed(f.OwnFiles(), f.uses()...) }

// Required returns the lowest limit of open files with which a node starts.
func (f *Files) Required() uint64 { return openfiles.Required(f.OwnFiles(), f.uses()...) }

// Share shares a limit of open files. It fails if the limit is below Required.
func (f *Files) Share(limit uint64) (s FileShares, err error) {
	units, ok := openfiles.Share(limit, f.OwnFiles(), f.uses()...)
	if !ok {
		return s, fmt.Errorf("the limit of open files is %d, and this configuration needs %d, %d of them for the files of the node itself: raise LimitNOFILE (ulimit -n) to %d, or lower permits.storage and storage.uploads; see macronode explain files",
			limit, f.Required(), f.OwnFiles(), f.Needed())
	}
	return FileShares{Public: units[0], Admin: units[1], Proxy: units[2], Buckets: units[3], Index: units[4]}, nil
}

// LimitFiles lowers what opens files to its share.
func (s *Start) LimitFiles(to FileShares) {
	s.Listeners.Public.MaxConns, s.Listeners.Admin.MaxConns = to.Public, to.Admin
	s.Index.Limits.Files, s.Upstreams = to.Index, to.Proxy
	for i := range s.Providers {
		s.Providers[i].Bucket.Requests = to.Buckets
	}
}
