package sim

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"

	"macronode/adapters/objectstore"
	"macronode/chaos/world"
	"macronode/core/coding"
	"macronode/core/digest"
	"macronode/core/placement"
	"macronode/core/repair"
	"macronode/core/storage"
	"macronode/core/types"
	model "macronode/models/coding"
)

// In some runs with storage, objects have files: the store of the product, in providers on simulated disks. The first directory is on the
// disk of the journal, so that both have the same power, space and faults. The others are on disks of their own, which lose their power with
// it. Providers may also lie: see lie.
//
//	client ──► upload, step by step ──► durable copies ──► command ──► reply ──► Done, or Keep
//	reader ──► verified ranges           collector, probe, inventory, scrub, worker of repairs
//
// Every call of the store is a step of the run, and clients move within some of them: see interrupts. In some runs larger objects have
// shards, and providers are added: see files_shards.go.

// A fileMode says how many providers a run has, and how many copies or shards an object.
type fileMode struct {
	providers int
	most      int // after some were added
	copies    objectstore.Copies
}

// fileModes are the values of odds/files.
var fileModes = [...]fileMode{
	{}, // no files
	{1, 1, objectstore.Copies{Count: 1, Required: 1}},
	{2, 2, objectstore.Copies{Count: 2, Required: 1}},
	{3, 3, objectstore.Copies{Count: 2, Required: 2}},
}

// Limits of the store of a run.
const (
	fileUploads = 7 // one tenant can have four of them
	fileRepairs = 3 // objects that wait for a repair
	fileReaders = 2
	fileReserve = 4096
)

// fileSizes are the sizes of contents: mostly small ones, and those around one group.
var fileSizes = [...]int{0, 1, 3000, digest.Group, digest.Group + 1, 200 << 10}

// A fileContent is a content, and its file as the store writes it.
type fileContent struct {
	bytes, file []byte
	suffix      string        // of the name of the file
	coded       *model.Object // its shards; nil: it has copies
}

// fileContents are the contents of a run, by the texts of their addresses.
type fileContents struct {
	set contentSet
	of  map[string]fileContent
}

// plainFiles returns the contents of runs without shards.
var plainFiles = sync.OnceValue(func() fileContents { return newContents(fileSizes[:], coding.Scheme{}) })

// newContents returns contents of some sizes. The bytes depend on their place only.
func newContents(sizes []int, scheme coding.Scheme) (made fileContents) {
	made.of = map[string]fileContent{}
	dice := types.NewRand(7)
	for _, size := range sizes {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(dice.Uint64n(256))
		}
		a, c := writtenAlone(b)
		if scheme.Applies(uint64(size)) {
			c.coded = model.New(b, int(scheme.Data), int(scheme.Parity), digest.Sum)
		}
		made.set.add(a, uint64(size))
		made.of[a.String()] = c
	}
	return made
}

// writtenAlone stores a content on a disk without faults.
func writtenAlone(b []byte) (storage.Address, fileContent) {
	d := world.NewDisk()
	s := objectstore.New(d, objectstore.Limits{Uploads: 1, Object: 1 << 20})
	u, err := s.Begin(types.DefaultTenant)
	if err == nil {
		_, err = u.Write(b)
	}
	a, wrong := u.Sum()
	if err = errors.Join(err, wrong, u.Store(a)); err != nil {
		panic(err)
	}
	u.Done()
	name := d.Names()[0]
	file, _ := d.Durable(name)
	if !bytes.HasPrefix(file, b) {
		panic("sim: a file does not begin with its content")
	}
	return a, fileContent{bytes: b, file: file, suffix: fileSuffix(name)}
}

// fileWorld is the part of a run that concerns the files of objects.
type fileWorld struct {
	copies   objectstore.Copies
	most     int             // providers, after some were added
	ports    []*fileProvider // those of the configuration
	of       map[string]fileContent
	lies     int // odds
	faults   int
	store    *objectstore.Store // of this process; nil: it has not been opened
	machine  *repair.Machine
	probed   bool // since the store was opened
	readers  []*fileReader
	known    map[fileKey]fileParts // the good parts that were seen
	names    map[fileKey][]string  // of files: see namesOf
	moving   fileKey               // the object whose parts were moved since they were compared
	writing  map[storage.File]bool // uploads that have not ended
	inside   bool                  // a move was interrupted
	collects bool
	found    []storage.Stored // objects that lacked copies at the last inventory
	lacking  bool             // was reported to the node
	lost     *repair.Lost     // of this process
	hasLost  bool             // was reported to the node
}

// beginFiles gives the storage of a run its files, if it has any.
func (w *World) beginFiles() {
	mode := fileModes[w.c.Choose("odds/files", len(fileModes))]
	if mode.providers == 0 {
		return
	}
	made := plainFiles
	if shards := w.c.Choose("odds/shards", len(shardModes)+1); shards > 0 {
		mode, made = shardModes[shards-1], shardFiles[shards-1]
	}
	s, contents := w.storage, made()
	w.odds.restore = 0 // a backup of this world has no files
	s.contents = &contents.set
	s.limits.TenantQuota.Bytes, s.limits.BucketQuota.Bytes = 500<<10, 300<<10
	f := &fileWorld{known: map[fileKey]fileParts{}, names: map[fileKey][]string{}, copies: mode.copies, most: mode.most, of: contents.of, lies: w.c.Choose("files/lies", 3), faults: w.c.Choose("files/faults", 3)}
	f.ports = append(f.ports, newProvider(w, f, 0, w.disk.Beside()))
	for len(f.ports) < mode.providers {
		f.add(w)
	}
	s.files = f
}

// add adds a provider with a disk of its own.
func (f *fileWorld) add(w *World) {
	f.ports = append(f.ports, newProvider(w, f, len(f.ports), world.NewDisk()))
}

// newStore returns the store of another process.
func (f *fileWorld) newStore(w *World) *objectstore.Store {
	var list []objectstore.Provider
	for i, p := range f.ports {
		name := fmt.Sprint("p", i)
		list = append(list, objectstore.Provider{Provider: placement.Provider{Name: name, Domain: name, Weight: 1}, Port: p})
	}
	s := objectstore.NewCopies(list, f.copies, objectstore.Limits{Uploads: fileUploads, Reserve: fileReserve, Object: 1 << 20})
	f.machine = repair.New(w.now.Mono, repair.Limits{Queue: fileRepairs, Workers: 1, Rate: 1 << 20, Burst: 2 * repair.Chunk})
	f.writing, f.readers, f.probed, f.lacking = map[storage.File]bool{}, nil, false, false
	f.lost, f.hasLost = repair.NewLost(repair.MaxLost), false
	s.OnDefect(func(o storage.Stored) { f.plan(o, s.Margin(o) <= 1 && !f.lost.Has(uint64(o.File)), true) })
	return s
}

// opens opens the store as a start of the node does: it claims the directories and reads which numbers were used.
func (f *fileWorld) opens(w *World) {
	f.grows(w)
	s := f.newStore(w)
	err := s.Claim(objectstore.Owner{Journal: w.jour.ID(), Rows: w.fol})
	absent := errors.Is(err, objectstore.ErrAbsent) || errors.Is(err, objectstore.ErrNoProvider)
	if err == nil {
		err = s.Recover()
	}
	for _, row := range f.rows(w) {
		s.Reserve(row.File)
	}
	w.note(absent, "files: no provider can be used at a start")
	if err != nil && !absent {
		w.Saw["files: a start fails"]++ // the next one tries again
		return
	}
	f.store = s
}

// rows returns the objects of the read model.
func (f *fileWorld) rows(w *World) []storage.Stored {
	list, _, _ := w.fol.Objects(0, 1000)
	return list
}

// crashed forgets the process. Without power, its disks lose what was not synced.
func (f *fileWorld) crashed() { f.store, f.inside, f.collects = nil, false, false }

// loses cuts the power of all disks but that of the journal.
func (f *fileWorld) loses(c world.Chooser) {
	for _, p := range f.ports[1:] {
		p.disk.Crash(c)
	}
}

// dead reports whether a disk has no power: the machine has none.
func (f *fileWorld) dead() bool {
	return slices.ContainsFunc(f.ports, func(p *fileProvider) bool { return p.disk.Dead() })
}

// dead reports whether the power is off.
func (w *World) dead() bool {
	return w.disk.Dead() || w.storage != nil && w.storage.files != nil && w.storage.files.dead()
}

// heals ends all faults and lies of the providers.
func (f *fileWorld) heals() {
	f.lies, f.faults = 0, 0
	for _, p := range f.ports {
		p.lie = 0
		d := p.disk
		d.Fuse, d.FailRead, d.FailWrite, d.FailSync, d.FailDir, d.LoseSync = -1, false, false, false, false, false
		d.Leave(plenty)
	}
}

// harms counts what the providers did wrong.
func (f *fileWorld) harms() (n int) {
	for _, p := range f.ports {
		n += p.harms
	}
	return n
}

// filesOdds returns the mode of the files of a seed: one of sixteen has files, and a quarter of them shards. Such a seed has storage, and no other
// plane.
func filesOdds(hash uint64) (mode, shards, storage int) {
	if hash%workloadSeeds != workloadSeeds-2 {
		return 0, 0, 0
	}
	hash /= workloadSeeds
	if hash/6%4 == 1 {
		shards = 1 + int(hash/24%uint64(len(shardModes)))
	}
	return 1 + int(hash%3), shards, storageFree + int(hash/3%2)
}
