// Package faults is a disk for the real binary that fails on request.
//
//	node ─► its journal's directory ─► Disk: passed on · held · failed · halved ─► a directory
//	                                     ▲ Begin, End: the test
package faults

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// ErrNone means that no such disk can be mounted here, and has the reason.
var ErrNone = errors.New("faults: no disk that fails can be mounted")

// Op is an operation of a disk.
type Op uint8

const (
	Read Op = iota
	Write
	Sync // of a file
	SyncDir
	Free // how much room there is
)

// Call is a call of an operation.
type Call struct {
	Op   Op
	Name string // of the file as it is called now
	Data []byte // of a write
	Size int    // of a read: the bytes that it asks for
}

// Trouble is a fault that affects some calls until it ends.
type Trouble struct {
	On   []Op
	Of   func(Call) bool // of those the ones that it befalls; nil: all
	Hold bool            // they wait until it ends
	Err  syscall.Errno   // then they fail; 0: they do not
	Half bool            // a write takes half of what it is given
	Lose bool            // what was never synced is gone when the first one fails

	disk *Disk
	met  chan struct{} // closed by the first call that it befalls
	over chan struct{}
	seen bool
	done bool
}

// Disk is a file system over a directory. Calls reach the directory at once; there is no cache above it, in the
// kernel either.
//
// Invariants:
//
//	F1  every read, write and sync of the process that it is mounted for is a Call here
//	F2  Lose keeps what was synced, and nothing that was written after it
type Disk struct {
	dir   string // what is below
	at    string // where it is mounted
	serve *fuse.Server

	mu       sync.Mutex
	troubles []*Trouble
	room     *uint64 // bytes that it says are free; nil: as it is
	undone   []patch // in order of their writing
}

// A patch undoes a write: the bytes that it changed, and the length before it.
type patch struct {
	ino  uint64
	off  int64
	old  []byte
	size int64
}

// Mount mounts a disk over a directory at an existing directory.
func Mount(dir, at string) (*Disk, error) {
	fd, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: open /dev/fuse: %w", ErrNone, err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", fd, os.Geteuid(), os.Getegid())
	if err := syscall.Mount("faults", at, "fuse.faults", syscall.MS_NOSUID|syscall.MS_NODEV, options); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: mount: %w", ErrNone, err), syscall.Close(fd))
	}
	d := &Disk{dir: dir, at: at}
	below := &fs.LoopbackRoot{Path: dir}
	root := &node{LoopbackNode: &fs.LoopbackNode{RootData: below}, disk: d}
	below.RootNode = root
	d.serve, err = fuse.NewServer(fs.NewNodeFS(root, &fs.Options{}), fmt.Sprintf("/dev/fd/%d", fd),
		&fuse.MountOptions{Name: "faults", MaxWrite: 512 << 10, DisableReadDirPlus: true})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("faults: serve: %w", err), syscall.Unmount(at, syscall.MNT_DETACH))
	}
	var serves sync.WaitGroup
	serves.Go(d.serve.Serve)
	return d, d.serve.WaitMount()
}

// Heal ends all troubles.
func (d *Disk) Heal() {
	d.mu.Lock()
	all := slices.Clone(d.troubles)
	d.mu.Unlock()
	for _, t := range all {
		t.End()
	}
}

// Close heals the disk and unmounts it. No process may use it any more.
func (d *Disk) Close() error {
	d.Heal()
	if err := syscall.Unmount(d.at, 0); err != nil {
		return fmt.Errorf("faults: unmount: %w", errors.Join(err, syscall.Unmount(d.at, syscall.MNT_DETACH)))
	}
	d.serve.Wait()
	return nil
}

// Begin starts a trouble. If several affect a call, the first one applies.
func (d *Disk) Begin(t Trouble) *Trouble {
	t.disk, t.met, t.over = d, make(chan struct{}), make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.troubles = append(d.troubles, &t)
	return &t
}

// End ends the trouble: held calls continue.
func (t *Trouble) End() {
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	if t.done {
		return
	}
	t.done = true
	t.disk.troubles = slices.DeleteFunc(t.disk.troubles, func(o *Trouble) bool { return o == t })
	close(t.over)
}

// Met is closed when a call has been affected.
func (t *Trouble) Met() <-chan struct{} { return t.met }

// Leave makes the disk report a number of free bytes. Honest ends that.
func (d *Disk) Leave(bytes uint64) { d.say(&bytes) }
func (d *Disk) Honest()            { d.say(nil) }

func (d *Disk) say(room *uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = room
}

// Lose undoes all writes that were not synced, as a power failure does.
func (d *Disk) Lose() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lose()
}

func (d *Disk) lose() error {
	all, err := os.ReadDir(d.dir)
	if err != nil {
		return err
	}
	for _, p := range slices.Backward(d.undone) {
		for _, e := range all {
			at, err := e.Info()
			if err != nil {
				return err
			}
			if at.Sys().(*syscall.Stat_t).Ino == p.ino {
				err = p.undo(filepath.Join(d.dir, e.Name()))
			}
			if err != nil {
				return err
			}
		}
	}
	d.undone = nil
	return nil
}

func (p patch) undo(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(p.old, p.off)
	return errors.Join(err, f.Truncate(p.size), f.Close())
}

// meet applies the troubles to a call. It may have waited.
func (d *Disk) meet(c Call) (half bool, err syscall.Errno) {
	d.mu.Lock()
	at := slices.IndexFunc(d.troubles, func(t *Trouble) bool {
		return slices.Contains(t.On, c.Op) && (t.Of == nil || t.Of(c))
	})
	if at < 0 {
		d.mu.Unlock()
		return false, 0
	}
	t := d.troubles[at]
	if !t.seen {
		t.seen = true
		close(t.met)
	}
	d.mu.Unlock()
	if t.Hold {
		<-t.over
	}
	if t.Err != 0 && t.Lose {
		if err := d.Lose(); err != nil {
			panic(err) // the test's own directory
		}
	}
	return t.Half, t.Err
}

// written records what a write will change; synced drops these records.
func (d *Disk) written(f *os.File, off int64, n int) error {
	at, err := f.Stat()
	if err != nil {
		return err
	}
	p := patch{ino: at.Sys().(*syscall.Stat_t).Ino, off: off, size: at.Size()}
	p.old = make([]byte, max(0, min(int64(n), p.size-off)))
	if _, err := f.ReadAt(p.old, off); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.undone = append(d.undone, p)
	return nil
}

func (d *Disk) synced(ino uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.undone = slices.DeleteFunc(d.undone, func(p patch) bool { return p.ino == ino })
}
