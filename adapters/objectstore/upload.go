package objectstore

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"macronode/adapters/fs"
	"macronode/adapters/provider"
	"macronode/core/coding"
	"macronode/core/digest"
	"macronode/core/placement"
	"macronode/core/share"
	"macronode/core/storage"
	"macronode/core/types"
)

// An Upload is the content of an object on its way to the disk. It is not safe for concurrent use. Every
// Upload is ended by Done or Keep.
type Upload struct {
	store  *Store
	file   storage.File
	tenant types.Tenant

	targets   []target      // nil before the first bytes are written
	one       [1]target     // of a store with one provider
	scheme    coding.Scheme // of the targets, which are shards; zero: they are copies
	expected  uint64        // bytes of the content; 0: unknown
	written   int64         // of the content
	nodeBytes int64         // of the nodes in a file of their own
	separate  bool          // the nodes have a file of their own
	tree      digest.Tree
	stripe    *stripe             // whose next group is filled: the object may be coded, or is; nil before the first byte, and if it never is
	group     []byte              // nil before the first byte, and after the end
	filled    int                 // bytes of group
	pending   []byte              // nodes that are not written
	nodes     *[digest.Group]byte // the buffer of pending; nil while few are enough
	err       error               // why the upload failed: fewer targets are left than are required, or the content is invalid
	checked   uint64              // bytes that may be written until the free space is asked for again
	address   storage.Address     // after Store
	stored    bool
	isSmall   bool // after Sum: the content is one group, and Store writes it
	silent    bool // a lack of copies is not reported
	replaces  bool // a copy that is there
	repairs   bool // the targets are those that an object lacks
}

// A target is a copy, or a shard, on its way to a provider.
type target struct {
	*member
	shard       int
	data, nodes fs.File // nodes is nil unless the nodes have a file of their own
	written     int64   // of data
	err         error   // the first failure
	isNamed     bool    // data has no draft: it was made under its name
	isComplete  bool    // all files have their names and their content
}

// Begin begins an upload of a tenant. ErrBusy reports that the tenant must leave room for others: see share.Left.
func (s *Store) Begin(t types.Tenant) (*Upload, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if share.Left(0, s.tenants[t], s.limits.Uploads-len(s.uploads)) == 0 {
		return nil, ErrBusy
	}
	s.tenants[t]++
	s.next++
	s.first = cmp.Or(s.first, s.next)
	s.uploads[s.next] = true
	u := &Upload{store: s, file: s.next, tenant: t}
	u.chooseOnly()
	return u, nil
}

// chooseOnly makes the only provider the target, if there is one.
func (u *Upload) chooseOnly() {
	only := u.store.providers[0]
	if len(u.store.providers) > 1 {
		return
	}
	u.one[0].member = only
	u.targets = u.one[:]
	if only.absent.Load() {
		u.err = ErrAbsent
	}
}

// chooseCopies chooses the providers of the copies when the first bytes are written, if it has not done so. Full and failed ones are used if
// there are too few others.
func (u *Upload) chooseCopies() {
	if u.targets != nil || u.err != nil {
		return
	}
	s, bytes := u.store, u.partBytes()
	var order placement.Order
	s.choose(bytes, func(state *placement.State) (chosen placement.Set) {
		order = s.table.Writers(uint64(u.file), s.copies.Count, s.copies.Required, bytes, state)
		for i := range order.Len() {
			chosen = chosen.With(order.At(i))
		}
		u.noteRoom(chosen, state.Room(bytes))
		return chosen
	})
	u.targets = make([]target, 0, order.Len())
	for i := range order.Len() {
		u.targets = append(u.targets, target{member: s.providers[order.At(i)]})
	}
	u.refuseAbsent()
}

// refuseAbsent makes the upload fail if a target must not be written.
func (u *Upload) refuseAbsent() {
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
	if good < u.required() {
		u.err = failed
	}
}

// required returns how many targets must be durable.
func (u *Upload) required() int {
	switch {
	case u.repairs:
		return 1
	case u.scheme.IsSet():
		return u.store.copies.requiredShards()
	}
	return min(u.store.copies.Required, len(u.targets))
}

// File returns the number of the upload.
func (u *Upload) File() storage.File { return u.file }

// Size returns how many bytes were written.
func (u *Upload) Size() uint64 {
	size := uint64(u.written) + uint64(u.filled)
	if u.stripe != nil {
		size += uint64(u.stripe.full) * digest.Group
	}
	return size
}

// freeCheck is how many bytes are written before the free space of the disk is asked for again.
const freeCheck = 4 << 20

// groups are buffers of groups that are not in use.
var groups = sync.Pool{New: func() any { return new([digest.Group]byte) }}

// Room returns a buffer for the next bytes of the object. It has space for at least one byte, and is valid until the next call of
// a method.
func (u *Upload) Room() ([]byte, error) {
	if u.group == nil && u.err == nil {
		u.getGroup()
	}
	if u.err == nil && u.filled == digest.Group { // it is written when more comes: the last one may be the root
		u.nextGroup()
	}
	if u.err != nil {
		return nil, u.err
	}
	return u.group[u.filled:], nil
}

// getGroup gets the buffer of the first group.
func (u *Upload) getGroup() {
	scheme := u.store.copies.Coding
	if u.repairs {
		scheme = u.scheme
	}
	if scheme.IsSet() {
		u.stripe = newStripe(scheme)
		u.group = u.stripe.group(0)
		return
	}
	u.group = groups.Get().(*[digest.Group]byte)[:]
}

// nextGroup begins another group.
func (u *Upload) nextGroup() {
	switch {
	case u.stripe == nil:
		u.flush(u.content())
		u.filled = 0
	case u.stripe.full+1 < int(u.stripe.scheme.Data):
		u.stripe.full++
		u.group, u.filled = u.stripe.group(u.stripe.full), 0
	default: // the object is larger than a stripe
		u.beginShards()
		u.flushStripe()
	}
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

// flush writes a group of an object that has copies.
func (u *Upload) flush(group []byte) {
	if !u.beginWrite(len(group), len(group)) {
		return
	}
	u.tree.Add(group, u.addNode)
	u.writeGroup(group)
}

// writeGroup writes a group into all targets.
func (u *Upload) writeGroup(group []byte) {
	if len(group) > 0 {
		u.each(func(_ *Upload, t *target) error { return t.write(group) })
	}
	u.written += int64(len(group))
}

// beginWrite makes the files of the targets, and checks their space from time to time. each is how many of the bytes a target gets.
func (u *Upload) beginWrite(bytes, each int) bool {
	u.chooseCopies()
	u.each((*Upload).beginFile)
	if u.err == nil && u.checked < uint64(bytes) {
		u.each((*Upload).checkSpace)
		u.checked = freeCheck
	}
	if u.err != nil {
		return false
	}
	u.checked -= min(u.checked, uint64(bytes))
	u.store.written.Add(uint64(each))
	return true
}

// beginFile makes the file of the content.
func (u *Upload) beginFile(t *target) (err error) {
	if t.data != nil {
		return nil
	}
	if to, ok := t.Port.(provider.Direct); ok && u.isSmall {
		if err := u.store.checkPlace(t.member); err != nil {
			return err
		}
		t.isNamed = true
		t.data, err = to.CreateFile(u.contentName(t))
		return err
	}
	t.data, err = t.Port.Create(number(u.file) + partSuffix)
	return err
}

// write appends to the content.
func (t *target) write(p []byte) error {
	n, err := t.data.WriteAt(p, t.written)
	t.written += int64(n)
	return err
}

// content returns the bytes of the group.
func (u *Upload) content() []byte {
	if u.group == nil { // an empty object
		return nil
	}
	return u.group[:u.filled]
}

// addNode adds a node of the tree.
func (u *Upload) addNode(n [digest.NodeLen]byte) {
	if len(u.pending) == u.store.appended*digest.NodeLen {
		u.flushNodes()
	}
	if len(u.pending) == cap(u.pending) {
		u.growPending()
	}
	u.pending = append(u.pending, n[:]...)
}

// fewNodes is how many nodes an upload has room for at first: those of 1 MiB and a bit more.
const fewNodes = 20

// growPending makes room for nodes: for few at first, then for all that an upload keeps, in a buffer of the pool.
func (u *Upload) growPending() {
	if u.pending == nil {
		u.pending = make([]byte, 0, fewNodes*digest.NodeLen)
		return
	}
	u.nodes = groups.Get().(*[digest.Group]byte)
	u.pending = append(u.nodes[:0], u.pending...)
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
	if u.err == nil && u.fitsGroup() {
		return u.sumSmall(), nil
	}
	if u.err == nil && (u.filled > 0 || u.written == 0) { // Room may have written the last group
		u.flushLast()
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

func (u *Upload) appendNodes(t *target) error { return t.write(u.pending) }

// flushLast writes what is left in the buffers.
func (u *Upload) flushLast() {
	switch {
	case u.stripe == nil:
		u.flush(u.content())
	case u.scheme.IsSet():
		u.flushStripe()
	default: // it fits into a stripe, and has copies
		for i := range u.stripe.full {
			u.flush(u.stripe.group(i))
		}
		u.stripe.full = 0
		u.flush(u.content())
	}
	u.filled = 0
}
