package objectstore

import (
	"context"
	"errors"
	"slices"
	"sync"

	"macronode/adapters/fs"
	"macronode/core/digest"
	"macronode/core/placement"
	"macronode/core/storage"
)

// An Upload is the content of an object on its way to the disk. It is not safe for concurrent use. Every
// Upload is ended by Done or Keep.
type Upload struct {
	store *Store
	file  storage.File

	targets   []target
	one       [1]target // of a store with one provider
	written   int64     // of the content
	nodeBytes int64     // of the nodes in a file of their own
	separate  bool      // the nodes have a file of their own
	tree      digest.Tree
	group     *[digest.Group]byte // nil before the first byte, and after the end
	filled    int                 // bytes of group
	pending   []byte              // nodes that are not written
	err       error               // why the upload failed: fewer targets are left than are required, or the content is invalid
	checked   uint64              // bytes that may be written until the free space is asked for again
	address   storage.Address     // after Store
	stored    bool
	silent    bool // a lack of copies is not reported
	replaces  bool // a copy that is there
}

// A target is a copy on its way to a provider.
type target struct {
	*member
	data, nodes fs.File // nodes is nil unless the nodes have a file of their own
	err         error   // the first failure
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
	u := &Upload{store: s, file: s.next}
	u.choose()
	return u, nil
}

// choose chooses the providers of the copies. Failed ones are used if there are too few others.
func (u *Upload) choose() {
	s := u.store
	if len(s.providers) == 1 {
		u.one[0].member = s.providers[0]
		u.targets = u.one[:]
		if s.providers[0].absent.Load() {
			u.err = ErrAbsent
		}
		return
	}
	healthy, chosen := s.healthy(), placement.Set(0)
	u.targets = make([]target, 0, s.copies.Count)
	add := func(n int, usable placement.Set) {
		order := s.table.Choose(uint64(u.file), n-len(u.targets), usable, chosen)
		for i := range order.Len() {
			u.targets = append(u.targets, target{member: s.providers[order.At(i)]})
			chosen = chosen.With(order.At(i))
		}
	}
	add(s.copies.Count, healthy)
	add(s.copies.Required, s.table.All()&^healthy)
	if slices.ContainsFunc(u.targets, func(t target) bool { return t.absent.Load() }) {
		u.targets, u.err = nil, ErrAbsent
	}
}

// each carries out a step for each target that has not failed.
func (u *Upload) each(step func(*Upload, *target) error) {
	if u.err != nil {
		return
	}
	for i := range u.targets {
		if t := &u.targets[i]; t.err == nil {
			t.err = t.note(step(u, t))
		}
	}
	u.settle()
}

// settle makes the upload fail if fewer targets are left than are required.
func (u *Upload) settle() {
	good := 0
	var failed error
	for i := range u.targets {
		switch t := &u.targets[i]; {
		case t.err == nil:
			good++
		case failed == nil:
			failed = t.err
		default:
			failed = errors.Join(failed, t.err)
		}
	}
	if good < min(u.store.copies.Required, len(u.targets)) {
		u.err = failed
	}
}

// File returns the number of the upload.
func (u *Upload) File() storage.File { return u.file }

// Size returns how many bytes were written.
func (u *Upload) Size() uint64 { return uint64(u.written) + uint64(u.filled) }

// freeCheck is how many bytes are written before the free space of the disk is asked for again.
const freeCheck = 4 << 20

// groups are buffers of groups that are not in use.
var groups = sync.Pool{New: func() any { return new([digest.Group]byte) }}

// Room returns a buffer for the next bytes of the object. It has space for at least one byte, and is valid until the next call of
// a method.
func (u *Upload) Room() ([]byte, error) {
	if u.group == nil && u.err == nil {
		u.group = groups.Get().(*[digest.Group]byte)
	}
	if u.err == nil && u.filled == digest.Group { // it is written when more comes: the last one may be the root
		u.flush()
	}
	if u.err != nil {
		return nil, u.err
	}
	return u.group[u.filled:], nil
}

// Add adds the first n bytes of the buffer that Room returned.
func (u *Upload) Add(n int) error {
	if u.err == nil && u.Size()+uint64(n) > u.store.limits.Object {
		u.err = ErrTooLong
	}
	if u.err == nil {
		u.filled += n
	}
	return u.err
}

// Write adds p to the object.
func (u *Upload) Write(p []byte) (n int, err error) {
	for n < len(p) {
		room, err := u.Room()
		if err != nil {
			return n, err
		}
		part := copy(room, p[n:])
		if err := u.Add(part); err != nil {
			return n, err
		}
		n += part
	}
	return n, u.err
}

// flush writes the group.
func (u *Upload) flush() {
	u.each((*Upload).beginFile)
	if u.err == nil && u.checked < uint64(u.filled) {
		u.each((*Upload).checkSpace)
		u.checked = freeCheck
	}
	if u.err != nil {
		return
	}
	u.checked -= min(u.checked, uint64(u.filled))
	u.store.written.Add(uint64(u.filled))
	group := u.content()
	u.tree.Add(group, u.addNode)
	if len(group) > 0 {
		u.each((*Upload).writeGroup)
	}
	u.written += int64(len(group))
	u.filled = 0
}

// beginFile makes the file of the content.
func (u *Upload) beginFile(t *target) (err error) {
	if t.data == nil {
		t.data, err = t.Port.Create(number(u.file) + partSuffix)
	}
	return err
}

func (u *Upload) writeGroup(t *target) error {
	_, err := t.data.WriteAt(u.content(), u.written)
	return err
}

// content returns the bytes of the group.
func (u *Upload) content() []byte {
	if u.group == nil { // an empty object
		return nil
	}
	return u.group[:u.filled]
}

// checkSpace keeps the reserve of the disk free.
func (u *Upload) checkSpace(t *target) error { return u.store.checkSpace(t.member) }

// checkSpace returns ErrNoSpace if a provider has no space for uploads.
func (s *Store) checkSpace(p *member) error {
	spare, err := s.spare(p)
	if err != nil {
		return err
	}
	s.wantCollection(spare)
	if spare == 0 {
		return ErrNoSpace
	}
	return nil
}

// spare returns how many bytes uploads may use of a provider.
func (s *Store) spare(p *member) (uint64, error) {
	free, err := p.Port.Free()
	return free - min(free, s.limits.Reserve+freeCheck), err
}

// addNode adds a node of the tree.
func (u *Upload) addNode(n [digest.NodeLen]byte) {
	if len(u.pending) == u.store.appended*digest.NodeLen {
		u.flushNodes()
	}
	u.pending = append(u.pending, n[:]...)
}

// flushNodes writes nodes into a file of their own: there are too many to append them to the content.
func (u *Upload) flushNodes() {
	u.separate = true
	u.each((*Upload).writeNodes)
	u.nodeBytes += int64(len(u.pending))
	u.pending = u.pending[:0]
}

func (u *Upload) writeNodes(t *target) (err error) {
	if t.nodes == nil {
		t.nodes, err = t.Port.Create(number(u.file) + nodesSuffix + partSuffix)
	}
	if err == nil {
		_, err = t.nodes.WriteAt(u.pending, u.nodeBytes)
	}
	return err
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
	switch {
	case u.separate:
		u.flushNodes()
	case len(u.pending) > 0:
		u.each((*Upload).appendNodes)
	}
	return a, u.err
}

func (u *Upload) appendNodes(t *target) error {
	_, err := t.data.WriteAt(u.pending, u.written)
	return err
}

// Store makes the content durable under its address. Afterwards a row may name the file.
func (u *Upload) Store(a storage.Address) error { return u.commit(a, true) }

// commit makes the content durable and gives it its name, which is durable after the directory is synced as well.
func (u *Upload) commit(a storage.Address, syncDir bool) error {
	u.address = a
	if len(u.targets) == 1 {
		u.each(func(u *Upload, t *target) error { return u.finish(t, syncDir) })
	} else if u.err == nil {
		_ = finishing{u, syncDir}.Run(context.Background()) // the errors are those of the targets
		u.settle()
	}
	u.stored = u.err == nil
	return u.err
}

// finishing makes the copies of an upload durable, all at once.
type finishing struct {
	*Upload
	syncDir bool
}

// Run returns when each copy is durable or has failed.
func (f finishing) Run(context.Context) error {
	var all sync.WaitGroup
	for i := range f.targets {
		if t := &f.targets[i]; t.err == nil {
			all.Go(func() { t.err = t.note(f.finish(t, f.syncDir)) })
		}
	}
	all.Wait()
	return nil
}

// layout returns the layout of the files.
func (u *Upload) layout() layout {
	switch {
	case u.separate:
		return separateNodes
	case len(u.pending) > 0:
		return appendedNodes
	}
	return noNodes
}

// finish makes one copy durable and gives it its name.
func (u *Upload) finish(t *target, syncDir bool) error {
	for _, f := range [...]fs.File{t.nodes, t.data} {
		if f != nil {
			if err := f.Sync(); err != nil {
				return err
			}
		}
	}
	if t.nodes != nil {
		if err := u.publish(t, number(u.file)+nodesSuffix+partSuffix, name(u.address, u.file)+nodesSuffix); err != nil {
			return err
		}
	}
	if err := u.publish(t, number(u.file)+partSuffix, name(u.address, u.file)+u.layout().suffix()); err != nil {
		return err
	}
	t.renamed = true
	if !syncDir {
		return nil
	}
	return t.Port.Flush()
}

// publish gives a file its name.
func (u *Upload) publish(t *target, draft, name string) error {
	if u.replaces {
		return t.Port.Replace(draft, name)
	}
	return t.Port.Put(draft, name)
}

// Done ends the upload after its outcome is known. A file that no row names is removed by the collector;
// one without an address at once. An object that lacks copies is reported.
func (u *Upload) Done() {
	u.close()
	good := 0
	for i := range u.targets {
		t := &u.targets[i]
		u.removeFailed(t)
		if t.err == nil {
			good++
		}
	}
	s := u.store
	s.mu.Lock()
	delete(s.uploads, u.file)
	s.mu.Unlock()
	if u.stored && !u.silent && good < s.copies.Count {
		s.defect(storage.Stored{Address: u.address, Object: storage.Object{Size: u.Size(), File: u.file}})
	}
}

// removeFailed removes the files of a copy that has no address, or is not durable while another one is.
func (u *Upload) removeFailed(t *target) {
	if t.renamed && (t.err == nil || u.err != nil) {
		return
	}
	// What cannot be removed is left to the collector.
	if t.renamed {
		_ = t.Port.Remove(name(u.address, u.file) + u.layout().suffix())
		if t.nodes != nil {
			_ = t.Port.Remove(name(u.address, u.file) + nodesSuffix)
		}
		return
	}
	if t.data != nil {
		_ = t.Port.Remove(number(u.file) + partSuffix)
	}
	if t.nodes != nil {
		_ = t.Port.Remove(number(u.file) + nodesSuffix + partSuffix)
	}
}

// Keep ends the upload whose outcome is unknown: a row may name its file later. The file is not collected
// before the next start, and the upload counts against the limit until then.
func (u *Upload) Keep() { u.close() }

func (u *Upload) close() {
	if u.group != nil {
		groups.Put(u.group)
		u.group = nil
	}
	for i := range u.targets {
		for _, f := range [...]fs.File{u.targets[i].data, u.targets[i].nodes} {
			if f != nil {
				_ = f.Close() // what must be durable was synced before
			}
		}
	}
}
