package sim

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"macronode/adapters/fs"
	"macronode/adapters/provider"
	"macronode/chaos/world"
	"macronode/core/storage"
)

// A lie is a wrong answer of a provider.
type lie int

const (
	truth    lie = iota
	lieBytes     // the next file that is read has other bytes
	lieShort     // the next list lacks names
	lieThere     // the next list, size or new name is of a file that is not there
	lieSync      // the next sync has no effect
	lieLost      // a file is lost that was durable
	lieRot       // a bit of a file has changed
	lieWipe      // all files are lost: the disk was replaced
	allLies
)

// A fileProvider is a provider of objects on a simulated disk. It is used by one goroutine at a time.
type fileProvider struct {
	provider.Dir
	disk   *world.Disk
	number int
	lie    lie
	lost   []string        // names
	blamed map[string]bool // names of files that were lost or changed, or may be
	harms  int             // faults and lies so far
	cheats bool            // the sync of its identity had no effect
	wiped  bool            // its identity was lost
	saw    map[string]int
	asks   func() // before a list returns
}

func newProvider(w *World, f *fileWorld, number int, d *world.Disk) *fileProvider {
	d.Sector = 4096
	p := &fileProvider{Dir: provider.Dir{FS: d}, disk: d, number: number, blamed: map[string]bool{}, saw: map[string]int{}}
	d.Hurt = p.hurt
	p.asks = func() {
		if f.collects {
			f.interrupts(w)
		}
	}
	return p
}

// hurt notes a fault of the disk.
func (p *fileProvider) hurt(how, name string) {
	p.harms++
	p.saw["files: "+how]++
	switch how {
	case world.SyncLied, world.FileLost, world.BitRotten:
		if strings.HasPrefix(name, identityFile) {
			p.cheats = p.cheats || how == world.SyncLied
			p.wiped = p.wiped || how == world.FileLost
		}
		if _, ok := fileNumber(name); ok {
			p.blamed[name] = true
		}
		if how == world.FileLost {
			p.lost = append(p.lost, name)
		}
	}
}

// tells reports whether a lie is due, which is then told.
func (p *fileProvider) tells(l lie) bool {
	if p.lie != l {
		return false
	}
	p.lie = truth
	p.harms++
	p.saw["files: a lie: "+[allLies]string{"", "other bytes", "a list is short", "a file is there", "", "", "", ""}[l]]++
	return true
}

// Open opens a file. It may have other bytes.
func (p *fileProvider) Open(name string) (fs.File, error) {
	f, err := p.Dir.Open(name)
	if _, ok := fileNumber(name); err == nil && ok && p.tells(lieBytes) {
		return &twisted{File: f, by: p}, nil
	}
	return f, err
}

// List lists the files. Some may be missing, and some that are lost may be there.
func (p *fileProvider) List() ([]string, error) {
	names, err := p.Dir.List()
	p.asks()
	if err == nil && len(names) > 1 && p.tells(lieShort) {
		names = names[:len(names)/2]
	}
	if err == nil && len(p.lost) > 0 && p.tells(lieThere) {
		names = append(slices.Clone(names), p.lost...)
		slices.Sort(names)
		names = slices.Compact(names)
	}
	return names, err
}

// Create begins a file. What an earlier one of its name met does not matter any more.
func (p *fileProvider) Create(name string) (fs.File, error) {
	delete(p.blamed, name)
	return p.Dir.Create(name)
}

// Put makes a file of a draft, unless the provider says that it is there.
func (p *fileProvider) Put(draft, name string) error {
	if p.tells(lieThere) {
		return &os.PathError{Op: "put", Path: name, Err: os.ErrExist}
	}
	p.passesBlame(draft, name)
	return p.Dir.Put(draft, name)
}

// Replace makes a file of a draft.
func (p *fileProvider) Replace(draft, name string) error {
	p.passesBlame(draft, name)
	return p.Dir.Replace(draft, name)
}

// passesBlame blames the provider for a file as for the draft of which it is made.
func (p *fileProvider) passesBlame(draft, name string) {
	if p.blamed[draft] {
		delete(p.blamed, draft)
		p.blamed[name] = true
	}
}

// Stat returns the size of a file, which may be invented.
func (p *fileProvider) Stat(name string) (int64, error) {
	size, err := p.Dir.Stat(name)
	if err != nil && p.tells(lieThere) {
		return 7, nil
	}
	return size, err
}

// twisted is a file of which the first byte that is read is another one.
type twisted struct {
	fs.File
	by   *fileProvider
	done bool
}

func (t *twisted) ReadAt(b []byte, off int64) (int, error) {
	n, err := t.File.ReadAt(b, off)
	if n > 0 && !t.done {
		b[0] ^= 1
		t.done = true
		t.by.harms++
	}
	return n, err
}

// fileNumber returns the number in the name of a file of an object.
func fileNumber(name string) (storage.File, bool) {
	base, _, _ := strings.Cut(name, ".")
	base = base[strings.LastIndexByte(base, '-')+1:]
	n, err := strconv.ParseUint(base, 16, 64)
	return storage.File(n), err == nil && len(base) == 16
}

// fileSuffix returns the end of the name of a file, which says its layout.
func fileSuffix(name string) string {
	if at := strings.IndexByte(name, '.'); at >= 0 {
		return name[at:]
	}
	return ""
}

// trouble is a move that harms a provider.
func (f *fileWorld) trouble(w *World) {
	p := f.ports[w.c.Choose("files/provider", len(f.ports))]
	if w.odd("files/fault", 4, f.faults) {
		d := p.disk
		switch w.c.Choose("files/how", 7) {
		case 0:
			d.FailRead = true
		case 1:
			d.FailWrite = true
		case 2:
			d.FailSync = true
		case 3:
			d.FailDir = true
		case 4:
			if d.Full = !d.Full; !d.Full {
				d.Leave(plenty)
			}
		case 5:
			d.Leave(int64(w.c.Choose("files/left", 2)) * (fileReserve + 4<<20 + 100<<10))
		case 6:
			if w.odd("files/crash", 4, w.odds.crash) && d.Fuse < 0 {
				d.Fuse = w.c.Choose("files/fuse", 30)
			}
		}
		return
	}
	if w.odd("files/lie", 4, f.lies) {
		p.lies(w, 1+lie(w.c.Choose("files/which", int(allLies)-1)))
	}
}

// lies makes a provider lie, now or at its next answer.
func (p *fileProvider) lies(w *World, l lie) {
	names := slices.DeleteFunc(p.disk.Names(), func(n string) bool {
		_, ok := fileNumber(n)
		b, _ := p.disk.Durable(n)
		return !ok || len(b) == 0
	})
	switch {
	case l == lieSync:
		p.disk.LoseSync = true
	case l == lieWipe && len(w.storage.files.ports) > 1:
		p.disk.LoseAll()
		p.saw["files: a provider loses all"]++
	case l == lieLost && len(names) > 0:
		p.disk.Lose(names[w.c.Choose("files/name", len(names))])
	case l == lieRot && len(names) > 0:
		p.disk.RotFile(w.c, names[w.c.Choose("files/name", len(names))])
	case l < lieSync:
		p.lie = l
	}
}

// counts adds what the providers saw to the probes of the run.
func (f *fileWorld) counts(w *World) {
	for _, p := range f.ports {
		for _, what := range slices.Sorted(maps.Keys(p.saw)) {
			w.Saw[what] += p.saw[what]
		}
		clear(p.saw)
	}
}
