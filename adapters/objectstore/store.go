// Package objectstore keeps the bytes of objects in files of one directory. An object of the state is
// one file with its bytes, and one with the nodes of its hash tree if it has more than one group:
//
//	upload:  N.part, N.nodes.part ──► fsync ──► ADDRESS-N.nodes, ADDRESS-N ──► directory fsync ──► row ──► reply
//	read:    row ──► ADDRESS-N, each group verified against the address ──► client
//	collect: a file that no row names and no upload is writing ──► removed
//
// N is the number of the upload. It is never used again, so a collector never removes the file of an upload
// that stores the same content, and no upload waits for the collector.
package objectstore

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"macronode/adapters/fs"
	"macronode/core/digest"
	"macronode/core/storage"
)

// Errors of uploads and reads.
var (
	ErrBusy    = errors.New("objectstore: too many uploads")
	ErrNoSpace = errors.New("objectstore: the free space of the disk is reserved")
	ErrTooLong = errors.New("objectstore: longer than the largest object")
	ErrDamaged = errors.New("objectstore: the file does not contain the object")
	ErrGone    = errors.New("objectstore: the file is not there")
)

// Limits of a Store.
type Limits struct {
	Uploads int    // at once, including those with an unknown outcome
	Reserve uint64 // bytes of the disk that are kept free
	Object  uint64 // bytes of the largest object
}

// Store keeps the files of objects.
type Store struct {
	dir    fs.FS
	limits Limits

	mu      sync.Mutex
	next    storage.File
	uploads map[storage.File]bool // that have not ended
}

// New returns a store of the files in a directory. Recover must be called before its first upload.
func New(dir fs.FS, l Limits) *Store {
	return &Store{dir: dir, limits: l, uploads: map[storage.File]bool{}}
}

// Recover reads which numbers were used. It removes nothing.
func (s *Store) Recover() error {
	names, err := s.dir.List()
	if err != nil {
		return fmt.Errorf("list objects: %w", err)
	}
	for _, name := range names {
		if f, ok := parseName(name); ok {
			s.Reserve(f.file)
		}
	}
	return nil
}

// Reserve makes later uploads have greater numbers than file. It is called with the greatest number of
// the state, whose file may be lost.
func (s *Store) Reserve(file storage.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = max(s.next, file)
}

// Uploads returns how many uploads have not ended.
func (s *Store) Uploads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.uploads)
}

const (
	partSuffix  = ".part"
	nodesSuffix = ".nodes"
	numberLen   = 16 // hexadecimal digits
)

// fileName is what the name of a file says.
type fileName struct {
	file    storage.File
	address storage.Address
	part    bool // not complete: it has no address
}

func number(f storage.File) string { return fmt.Sprintf("%0*x", numberLen, uint64(f)) }

func name(a storage.Address, f storage.File) string {
	return hex.EncodeToString(a[:]) + "-" + number(f)
}

func parseName(s string) (f fileName, ok bool) {
	rest, part := strings.CutSuffix(s, partSuffix)
	rest, _ = strings.CutSuffix(rest, nodesSuffix)
	if !part {
		address, file, ok := strings.Cut(rest, "-")
		if n, err := hex.Decode(f.address[:], []byte(address[:min(len(address), 2*len(f.address))])); !ok || err != nil || n != len(f.address) || len(address) != 2*n {
			return f, false
		}
		rest = file
	}
	n, err := strconv.ParseUint(rest, 16, 64)
	f.file, f.part = storage.File(n), part
	return f, err == nil && len(rest) == numberLen
}

// An Upload is the content of an object on its way to the disk. It is not safe for concurrent use. Every
// Upload is ended by Done or Keep.
type Upload struct {
	store *Store
	file  storage.File

	data, nodes fs.File // nodes is nil until there is one
	written     int64   // of data
	nodeBytes   int64
	tree        digest.Tree
	group       []byte // that is not full yet
	err         error  // the first failure
	checked     uint64 // bytes that may be written until the free space is asked for again
	renamed     bool
}

// Begin begins an upload.
func (s *Store) Begin() (*Upload, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.uploads) >= s.limits.Uploads {
		return nil, ErrBusy
	}
	s.next++
	s.uploads[s.next] = true
	return &Upload{store: s, file: s.next}, nil
}

// File returns the number of the upload.
func (u *Upload) File() storage.File { return u.file }

// Size returns how many bytes were written.
func (u *Upload) Size() uint64 { return uint64(u.written) + uint64(len(u.group)) }

// freeCheck is how many bytes are written before the free space of the disk is asked for again.
const freeCheck = 4 << 20

// Write adds p to the object.
func (u *Upload) Write(p []byte) (n int, err error) {
	for u.err == nil && n < len(p) {
		if u.group == nil {
			u.group = make([]byte, 0, digest.Group)
		}
		if len(u.group) == cap(u.group) { // it is written when more comes: the last one may be the root
			u.flush()
			continue
		}
		part := p[n:min(len(p), n+cap(u.group)-len(u.group))]
		if u.Size()+uint64(len(part)) > u.store.limits.Object {
			u.err = ErrTooLong
			break
		}
		u.group = append(u.group, part...)
		n += len(part)
	}
	return n, u.err
}

// flush writes the group.
func (u *Upload) flush() {
	if u.data == nil {
		u.data, u.err = u.store.dir.Create(number(u.file) + partSuffix)
	}
	if u.err == nil {
		u.checkSpace(uint64(len(u.group)))
	}
	if u.err != nil {
		return
	}
	u.tree.Add(u.group, u.addNode)
	if u.err == nil && len(u.group) > 0 {
		_, u.err = u.data.WriteAt(u.group, u.written)
	}
	u.written += int64(len(u.group))
	u.group = u.group[:0]
}

// checkSpace keeps the reserve of the disk free.
func (u *Upload) checkSpace(more uint64) {
	if u.checked >= more {
		u.checked -= more
		return
	}
	free, err := u.store.dir.Free()
	switch {
	case err != nil:
		u.err = err
	case free < u.store.limits.Reserve+freeCheck:
		u.err = ErrNoSpace
	default:
		u.checked = freeCheck - more
	}
}

func (u *Upload) addNode(n [digest.NodeLen]byte) {
	if u.nodes == nil && u.err == nil {
		u.nodes, u.err = u.store.dir.Create(number(u.file) + nodesSuffix + partSuffix)
	}
	if u.err == nil {
		_, u.err = u.nodes.WriteAt(n[:], u.nodeBytes)
		u.nodeBytes += digest.NodeLen
	}
}

// Sum ends the content and returns its address. Nothing is durable yet.
func (u *Upload) Sum() (storage.Address, error) {
	if u.err == nil {
		u.flush()
	}
	if u.err != nil {
		return storage.Address{}, u.err
	}
	a := storage.Address(u.tree.Sum(u.addNode))
	return a, u.err
}

// Store makes the content durable under its address. Afterwards a row may name the file.
func (u *Upload) Store(a storage.Address) error {
	if u.finish(a) == nil {
		u.err = u.store.dir.SyncDir()
	}
	return u.err
}

// finish makes the content durable and gives it its name, which is durable after SyncDir.
func (u *Upload) finish(a storage.Address) error {
	for _, f := range [...]fs.File{u.nodes, u.data} {
		if f != nil && u.err == nil {
			u.err = f.Sync()
		}
	}
	if u.nodes != nil && u.err == nil {
		u.err = u.store.dir.Rename(number(u.file)+nodesSuffix+partSuffix, name(a, u.file)+nodesSuffix)
	}
	if u.err == nil {
		u.err = u.store.dir.Rename(number(u.file)+partSuffix, name(a, u.file))
	}
	u.renamed = u.err == nil
	return u.err
}

// Done ends the upload after its outcome is known. A file that no row names is removed by the collector;
// one without an address at once.
func (u *Upload) Done() {
	u.close()
	if !u.renamed {
		if u.data != nil {
			_ = u.store.dir.Remove(number(u.file) + partSuffix) // else the collector removes it
		}
		if u.nodes != nil {
			_ = u.store.dir.Remove(number(u.file) + nodesSuffix + partSuffix)
		}
	}
	u.store.mu.Lock()
	defer u.store.mu.Unlock()
	delete(u.store.uploads, u.file)
}

// Keep ends the upload whose outcome is unknown: a row may name its file later. The file is not collected
// before the next start, and the upload counts against the limit until then.
func (u *Upload) Keep() { u.close() }

func (u *Upload) close() {
	for _, f := range [...]fs.File{u.data, u.nodes} {
		if f != nil {
			_ = f.Close() // what must be durable was synced before
		}
	}
}

// Collected is what a collection removed.
type Collected struct {
	Files int
	Bytes uint64
}

// Collect removes the files that no row names and no upload is writing. live reports whether a row names
// a file; it must know every row whose upload was ended by Done. Collect never blocks an upload.
func (s *Store) Collect(live func(storage.Address, storage.File) bool) (c Collected, err error) {
	s.mu.Lock()
	newest := s.next
	s.mu.Unlock()
	names, err := s.dir.List()
	if err != nil {
		return c, fmt.Errorf("list objects: %w", err)
	}
	for _, n := range names {
		f, ok := parseName(n)
		// The order matters: an upload that ended before the first question has its row.
		if !ok || f.file > newest || s.writes(f.file) || !f.part && live(f.address, f.file) {
			continue
		}
		size := s.size(n)
		if err := s.dir.Remove(n); err != nil && !errors.Is(err, os.ErrNotExist) {
			return c, fmt.Errorf("remove a file without an object: %w", err)
		}
		c.Files++
		c.Bytes += size
	}
	return c, nil
}

func (s *Store) writes(f storage.File) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uploads[f]
}

// size returns the size of a file, or 0.
func (s *Store) size(name string) uint64 {
	f, err := s.dir.Open(name)
	if err != nil {
		return 0
	}
	defer f.Close() //nolint:errcheck // it was only read
	n, _ := f.Size()
	return uint64(max(n, 0))
}

// Files are the names of all files at a time, sorted.
type Files []string

// Files lists the files. It does not read them.
func (s *Store) Files() (Files, error) {
	names, err := s.dir.List()
	if err != nil {
		return nil, fmt.Errorf("list objects: %w", err)
	}
	return names, nil
}

// Has reports whether an object has its file.
func (f Files) Has(o storage.Stored) bool {
	_, ok := slices.BinarySearch(f, name(o.Address, o.File))
	return ok
}

// An Object is an open object. Its file stays readable when it is collected.
type Object struct {
	address     storage.Address
	size        uint64
	data, nodes fs.File
}

// Get opens an object. ErrGone reports that its file is not there: the object was deleted meanwhile, or the
// file is lost.
func (s *Store) Get(a storage.Address, o storage.Object) (*Object, error) {
	data, err := s.dir.Open(name(a, o.File))
	if err != nil {
		return nil, gone(err)
	}
	x := &Object{address: a, size: o.Size, data: data}
	if digest.Groups(o.Size) > 1 {
		if x.nodes, err = s.dir.Open(name(a, o.File) + nodesSuffix); err != nil {
			x.Close()
			return nil, gone(err)
		}
	}
	if size, err := data.Size(); err != nil || uint64(size) != o.Size {
		x.Close()
		return nil, errors.Join(ErrDamaged, err)
	}
	return x, nil
}

func gone(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return ErrGone
	}
	return err
}

// Close closes the files of o.
func (o *Object) Close() {
	_ = o.data.Close() // they were only read
	if o.nodes != nil {
		_ = o.nodes.Close()
	}
}

// WriteRange passes length bytes from off to send, in parts of at most one group, each of which was verified. Both lie
// within the object. It returns the error of send, ErrDamaged, or that of a read.
func (o *Object) WriteRange(off, length uint64, send func([]byte) error) error {
	end := off + length
	if length == 0 && o.size > 0 {
		return nil
	}
	r := digest.Range{Digest: digest.Value(o.address), Size: o.size, First: off / digest.Group, Last: (max(end, 1) - 1) / digest.Group}
	buf := make([]byte, min(digest.Group, o.size))
	ok, err := r.Verify(o.readNode, func(i uint64, valid func([]byte) bool) error {
		from, to := i*digest.Group, min((i+1)*digest.Group, o.size)
		part := buf[:to-from]
		if err := readFull(o.data, part, from); err != nil {
			return err
		}
		if !valid(part) {
			return ErrDamaged
		}
		return send(part[max(off, from)-from : min(end, to)-from])
	})
	if err == nil && !ok {
		err = ErrDamaged
	}
	return err
}

func (o *Object) readNode(place uint64, n *[digest.NodeLen]byte) error {
	return readFull(o.nodes, n[:], place*digest.NodeLen)
}

// readFull fills p. A file that is too short is damaged.
func readFull(f fs.File, p []byte, off uint64) error {
	n, err := f.ReadAt(p, int64(off))
	if n == len(p) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return ErrDamaged
	}
	return err
}
