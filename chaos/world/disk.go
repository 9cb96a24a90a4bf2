package world

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"macronode/adapters/fs"
)

// The errors of a failing disk, with the errno of the kernel if there is one.
var (
	ErrDead  = fmt.Errorf("world: the power is gone: %w", os.ErrClosed)
	ErrRead  = fmt.Errorf("world: read failed: %w", syscall.EIO)
	ErrWrite = fmt.Errorf("world: write failed: %w", syscall.EIO)
	ErrSync  = fmt.Errorf("world: sync failed: %w", syscall.EIO)
	ErrFull  = fmt.Errorf("world: the disk is full: %w", syscall.ENOSPC)
)

// Disk is one directory of a simulated disk, which may have others.
//
//	WriteAt ──► pages (visible to all readers) ──Sync──────► disk
//	names   ──► pages                            ──SyncDir──► disk
//	                     Crash: any part of what was not synced, names in order
//
// Invariants:
//
//	D1  a crash takes nothing that a successful Sync has covered
//	D2  a name that SyncDir has covered stays until a later change of it
//	D3  names are lost from the last change on: never one before its predecessor
//	D4  after a failed Sync its pages can be read and are not on the disk
//	D5  a file that was cut and not synced can have its old end after a crash
type Disk struct {
	*Medium

	// The next Sync of a file succeeds without effect, which a correct disk never does.
	LoseSync bool
	// The next write goes to an offset moved by this many bytes, which a correct disk never does.
	Astray int
	// Sector is the unit of an atomic write in bytes.
	Sector int

	// OnOperation, if not nil, is called before every operation; Hurt, for every fault: one of the names
	// below.
	OnOperation func(op, name string)
	Hurt        func(how, name string)

	live, durable names
	moves         []names // after each change that is not synced
	life          int     // crashes so far: a handle from before one is dead
	open          int
}

// Medium is what all directories of a simulated disk share: its power, its space and its faults.
type Medium struct {
	Fuse int   // operations until the power fails; negative: never
	Ops  int   // operations so far
	Size int64 // capacity in bytes
	Full bool  // no file can grow, whatever Size is

	// The next operation of its kind fails, once.
	FailRead, FailWrite, FailSync, FailDir bool

	dirs []*Disk
}

type names map[string]*inode

// An inode has the bytes of a file: as they are read, as they are on disk, and the writes that
// were not synced.
type inode struct {
	live, durable []byte
	pending       []write
}

// A write is of data at an offset, or cuts the file there.
type write struct {
	off  int
	data []byte
	cut  bool
}

// A handle is an open file.
type handle struct {
	d      *Disk
	i      *inode
	name   string
	life   int
	writes bool
	closed bool
}

// NewDisk returns an empty disk of one terabyte that does not fail.
func NewDisk() *Disk { return (&Medium{Fuse: -1, Size: 1 << 40}).dir() }

// Beside returns another directory of the same disk, which is empty.
func (d *Disk) Beside() *Disk { return d.Medium.dir() }

func (m *Medium) dir() *Disk {
	d := &Disk{Medium: m, Sector: sector, live: names{}, durable: names{}}
	m.dirs = append(m.dirs, d)
	return d
}

// Dead reports whether the power is off; Crash restores it.
func (m *Medium) Dead() bool { return m.Fuse == 0 }

// Handles returns the number of open files.
func (d *Disk) Handles() int { return d.open }

// burn counts one operation.
func (d *Disk) burn(op, name string) error {
	if d.Dead() {
		return ErrDead
	}
	if d.OnOperation != nil {
		d.OnOperation(op, name)
	}
	if d.Fuse > 0 {
		d.Fuse--
	}
	d.Ops++
	return nil
}

// lacks returns the error for a missing name.
func lacks(op, name string) error { return &os.PathError{Op: op, Path: name, Err: os.ErrNotExist} }

// rename changes the names. Every change is kept until SyncDir, so that a crash may fall between
// any two.
func (d *Disk) rename(change func(names)) {
	next := make(names, len(d.live)+1)
	for n, i := range d.live {
		next[n] = i
	}
	change(next)
	d.live = next
	d.moves = append(d.moves, next)
}

// Create creates an empty file.
func (d *Disk) Create(name string) (fs.File, error) {
	if err := d.burn("create", name); err != nil {
		return nil, err
	}
	if d.live[name] != nil {
		return nil, &os.PathError{Op: "create", Path: name, Err: os.ErrExist}
	}
	i := &inode{}
	d.rename(func(m names) { m[name] = i })
	return d.handle(name, i, true), nil
}

// Open opens a file for reading.
func (d *Disk) Open(name string) (fs.File, error) {
	if err := d.burn("open", name); err != nil {
		return nil, err
	}
	i := d.live[name]
	if i == nil {
		return nil, lacks("open", name)
	}
	return d.handle(name, i, false), nil
}

// A Changeable is a file that can be written to in place and cut, which the port does not offer.
type Changeable interface {
	fs.File
	Truncate(size int64) error
}

// Change opens a file for reading and writing.
func (d *Disk) Change(name string) (Changeable, error) {
	if err := d.burn("open", name); err != nil {
		return nil, err
	}
	i := d.live[name]
	if i == nil {
		return nil, lacks("open", name)
	}
	return d.handle(name, i, true), nil
}

func (d *Disk) handle(name string, i *inode, writes bool) *handle {
	d.open++
	return &handle{d: d, i: i, name: name, life: d.life, writes: writes}
}

// Rename renames a file.
func (d *Disk) Rename(from, to string) error {
	if err := d.burn("rename", to); err != nil {
		return err
	}
	i := d.live[from]
	if i == nil {
		return lacks("rename", from)
	}
	if from != to {
		d.rename(func(m names) { delete(m, from); m[to] = i })
	}
	return nil
}

// Remove removes a name.
func (d *Disk) Remove(name string) error {
	if err := d.burn("remove", name); err != nil {
		return err
	}
	if d.live[name] == nil {
		return lacks("remove", name)
	}
	d.rename(func(m names) { delete(m, name) })
	return nil
}

// SyncDir makes the names durable.
func (d *Disk) SyncDir() error {
	if err := d.burn("sync-dir", ""); err != nil {
		return err
	}
	if d.spend(&d.FailDir, DirFailed, "") {
		return ErrSync
	}
	d.durable, d.moves = d.live, nil
	return nil
}

// List returns the names, sorted.
func (d *Disk) List() ([]string, error) { return d.live.sorted(), d.burn("list", "") }

func (m names) sorted() []string {
	all := make([]string, 0, len(m))
	for n := range m {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}

// Free returns the free bytes.
func (d *Disk) Free() (uint64, error) { return uint64(d.room()), d.burn("free", "") }

// Leave sets the capacity to the used bytes plus a number of free ones.
func (d *Disk) Leave(bytes int64) {
	d.Size, d.Full = 1<<40, false
	d.Size = d.Size - d.room() + bytes
}

// Room returns the free bytes. It is no operation: the disk does not notice it.
func (d *Disk) Room() int64 { return d.room() }

func (d *Disk) room() int64 {
	left := d.Size
	for _, dir := range d.dirs {
		for _, i := range dir.live {
			left -= int64(len(i.live))
		}
	}
	if d.Full {
		return 0
	}
	return max(0, left)
}

// usable counts an operation on h, and returns an error if it is not possible.
func (h *handle) usable(op string, off int64) error {
	switch {
	case h.life != h.d.life:
		return ErrDead
	case h.closed:
		return &os.PathError{Op: "use", Path: h.name, Err: os.ErrClosed}
	case off < 0:
		return &os.PathError{Op: "use", Path: h.name, Err: os.ErrInvalid}
	}
	return h.d.burn(op, h.name)
}

func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	if err := h.usable("read", off); err != nil {
		return 0, err
	}
	if h.d.spend(&h.d.FailRead, ReadFailed, h.name) {
		return 0, ErrRead
	}
	n := copy(p, h.i.live[min(int(off), len(h.i.live)):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt writes as much as fits.
func (h *handle) WriteAt(p []byte, off int64) (int, error) {
	if err := h.usable("write", off); err != nil {
		return 0, err
	}
	if !h.writes {
		return 0, &os.PathError{Op: "write", Path: h.name, Err: os.ErrPermission}
	}
	fits, err := p, error(nil)
	if h.d.spend(&h.d.FailWrite, WriteFailed, h.name) {
		fits, err = p[:len(p)/2], ErrWrite
	}
	if most := max(0, int64(len(h.i.live))+h.d.room()-off); int64(len(fits)) > most {
		fits, err = fits[:most], ErrFull
		if most > 0 {
			h.d.hurt(CutShort, h.name)
		} else {
			h.d.hurt(WasFull, h.name)
		}
	}
	if len(fits) == 0 {
		return 0, err
	}
	w := write{off: int(off), data: slices.Clone(fits)}
	if away := h.d.Astray; away != 0 {
		h.d.Astray, w.off = 0, max(0, w.off+away)
		h.d.hurt(WentAstray, h.name)
	}
	h.i.live = w.onto(h.i.live, 0, len(w.data))
	h.i.pending = append(h.i.pending, w)
	return len(fits), err
}

// Truncate cuts a file. It does not make it longer.
func (h *handle) Truncate(size int64) error {
	if err := h.usable("truncate", size); err != nil {
		return err
	}
	if !h.writes {
		return &os.PathError{Op: "truncate", Path: h.name, Err: os.ErrPermission}
	}
	if size >= int64(len(h.i.live)) {
		return nil
	}
	w := write{off: int(size), cut: true}
	h.i.live = w.onto(h.i.live, 0, 0)
	h.i.pending = append(h.i.pending, w)
	return nil
}

func (h *handle) Sync() error {
	if err := h.usable("sync", 0); err != nil {
		return err
	}
	if h.d.spend(&h.d.FailSync, SyncFailed, h.name) { // the kernel marks the pages clean
		h.i.pending = nil
		return ErrSync
	}
	if h.d.spend(&h.d.LoseSync, SyncLied, h.name) {
		h.i.pending = nil
		return nil
	}
	h.i.durable = slices.Grow(h.i.durable, max(0, len(h.i.live)-len(h.i.durable)))
	for _, w := range h.i.pending {
		h.i.durable = w.onto(h.i.durable, 0, len(w.data))
	}
	h.i.pending = nil
	return nil
}

// Size of a file that was opened for writing is no operation of the disk: the kernel has it in memory.
func (h *handle) Size() (int64, error) {
	if h.writes && h.life == h.d.life && !h.closed && !h.d.Dead() {
		return int64(len(h.i.live)), nil
	}
	if err := h.usable("size", 0); err != nil {
		return 0, err
	}
	return int64(len(h.i.live)), nil
}

// Close is not an operation of the disk: it works when the power is off.
func (h *handle) Close() error {
	if h.closed {
		return &os.PathError{Op: "close", Path: h.name, Err: os.ErrClosed}
	}
	if h.closed = true; h.life == h.d.life {
		h.d.open--
	}
	return nil
}

// onto writes w.data[from:to] at its offset, after zeros in a gap, or cuts the file.
func (w write) onto(file []byte, from, to int) []byte {
	if w.cut {
		return file[:min(w.off, len(file)):min(w.off, len(file))]
	}
	if need := w.off + to; len(file) < need {
		if file == nil { // more will follow
			file = make([]byte, 0, need+min(need, 4096))
		}
		file = append(file, make([]byte, need-len(file))...)
	}
	copy(file[w.off+from:], w.data[from:to])
	return file
}

func (d *Disk) String() string {
	var b strings.Builder
	for _, n := range d.live.sorted() {
		i := d.live[n]
		fmt.Fprintf(&b, "%s: %d bytes, %d on disk, %d writes not synced\n", n, len(i.live), len(i.durable), len(i.pending))
	}
	return b.String()
}

// Names returns the names that can be read, sorted. It is no operation of the disk.
func (d *Disk) Names() []string { return d.live.sorted() }
