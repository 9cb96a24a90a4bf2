package objectstore

import (
	"errors"
	"io"
	"os"

	"macronode/adapters/fs"
	"macronode/adapters/provider"
	"macronode/core/digest"
	"macronode/core/placement"
	"macronode/core/storage"
)

// An Object is an open object. Its file stays readable when it is collected. It is not safe for concurrent use.
type Object struct {
	*content // of the copy that is read

	store *Store
	away  error                          // of a copy that cannot be reached now; nil: there was none
	order placement.Order                // in which copies are tried
	at    int                            // the place of the copy that is read
	stuck [placement.MaxProviders]uint64 // 1 + the offset at which each place failed; 0: it has not failed
}

// Get opens an object. ErrGone reports that its file is not there: the object was deleted meanwhile, or the
// file is lost in all providers. ErrAbsent reports that the only directory is not there.
func (s *Store) Get(a storage.Address, o storage.Object) (*Object, error) {
	x := &Object{store: s, order: s.order(o.File)}
	if err := x.open(storage.Stored{Address: a, Object: o}); err != nil {
		return nil, err
	}
	return x, nil
}

// open opens the first copy that can be opened. If there is none, it returns the error of a copy that is there, else ErrGone.
func (o *Object) open(row storage.Stored) error {
	failed, defect := ErrGone, false
	for ; o.at < o.order.Len(); o.at++ {
		c, err := o.store.providers[o.order.At(o.at)].open(row)
		if err == nil {
			if o.content = c; defect || o.lacksCopy() {
				o.store.defect(row)
			}
			return nil
		}
		if !errors.Is(err, ErrGone) {
			failed, defect = err, true
		}
		o.stuck[o.at] = 1
		o.noteAway(err)
	}
	return o.failure(failed)
}

// noteAway keeps the error of a copy that cannot be reached now.
func (o *Object) noteAway(err error) {
	if errors.Is(err, ErrUnavailable) {
		o.away = err
	}
}

// failure returns why no copy can be read: that one cannot be reached now is more than that another one is bad.
func (o *Object) failure(err error) error {
	if o.away != nil && !errors.Is(err, ErrUnavailable) {
		return errors.Join(o.away, err)
	}
	return err
}

// lacksCopy reports whether copies are missing in the providers that were tried in vain. A copy may be elsewhere if there are more
// providers than copies. The first providers are those that Choose prefers only if none is far.
func (o *Object) lacksCopy() bool {
	count := o.store.copies.Count
	return o.at > max(0, o.order.Len()-count) || o.store.far == 0 && o.at >= count
}

// Close closes the files of o.
func (o *Object) Close() { o.content.close() }

// WriteRange passes length bytes from off to send, in parts of at most one group, each of which was verified. Both lie
// within the object. send must not keep its argument. A part that cannot be read from one copy is read from another. WriteRange
// returns the error of send, ErrDamaged, ErrUnavailable, or that of a read.
func (o *Object) WriteRange(off, length uint64, send func([]byte) error) error {
	var stopped error
	forward := func(part []byte) error {
		if stopped = send(part); stopped == nil {
			off, length = off+uint64(len(part)), length-uint64(len(part))
		}
		return stopped
	}
	for {
		err := o.content.writeRange(off, length, forward)
		if err == nil || stopped != nil || o.paced != nil {
			return err
		}
		if !o.next(off, err) {
			return o.failure(err)
		}
	}
}

// next goes on with another copy after the one that is read failed at off. It is false if all have failed there.
func (o *Object) next(off uint64, err error) bool {
	row := storage.Stored{Address: o.address, Object: o.row}
	_ = o.store.providers[o.order.At(o.at)].note(err)
	o.noteAway(err)
	o.store.defect(row)
	o.stuck[o.at] = off + 1
	for n := 1; n < o.order.Len(); n++ {
		at := (o.at + n) % o.order.Len()
		if o.stuck[at] == off+1 {
			continue
		}
		c, err := o.store.providers[o.order.At(at)].open(row)
		if err != nil {
			o.noteAway(err)
			o.stuck[at] = off + 1
			continue
		}
		o.content.close()
		c.pace = o.content.pace
		o.content, o.at = c, at
		return true
	}
	return false
}

// content is an open copy of an object.
type content struct {
	address     storage.Address
	row         storage.Object
	data, nodes fs.File               // the same file if the nodes are appended to the content
	nodesAt     uint64                // where they begin
	cached      []byte                // some nodes
	cachedAt    uint64                // the place of the first
	lastNode    uint64                // the place of the node that was read last
	pace        func(bytes int) error // is called before each read; nil: no limit
	paced       error                 // of pace: it ended the read
}

// open opens a copy.
func (p *member) open(o storage.Stored) (c *content, err error) {
	if p.absent.Load() {
		return nil, ErrAbsent
	}
	for _, l := range layouts(o.Size) {
		if c, err = p.openAs(l, o.Address, o.Object); !errors.Is(err, ErrGone) {
			return c, p.note(err)
		}
	}
	return nil, err
}

// openAs opens the files of an object that have a layout.
func (p *member) openAs(l layout, a storage.Address, o storage.Object) (*content, error) {
	data, err := p.Port.Open(name(a, o.File) + l.suffix())
	if err != nil {
		return nil, gone(err)
	}
	x, want := &content{address: a, row: o, data: data}, o.Size
	switch l {
	case appendedNodes:
		x.nodes, x.nodesAt = data, o.Size
		want += digest.NodeLen * (digest.Groups(o.Size) - 1)
	case separateNodes:
		if x.nodes, err = p.Port.Open(name(a, o.File) + nodesSuffix); err != nil {
			x.close()
			return nil, gone(err)
		}
	case noNodes:
	}
	if size, err := data.Size(); err != nil || uint64(size) != want {
		x.close()
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

func (o *content) close() {
	_ = o.data.Close() // they were only read
	if o.nodes != nil && o.nodes != o.data {
		_ = o.nodes.Close()
	}
}

// writeRange is WriteRange of one copy.
func (o *content) writeRange(off, length uint64, send func([]byte) error) error {
	end := off + length
	if length == 0 && o.row.Size > 0 {
		return nil
	}
	r := digest.Range{Digest: digest.Value(o.address), Size: o.row.Size, First: off / digest.Group, Last: (max(end, 1) - 1) / digest.Group}
	if s, ok := o.data.(provider.Sequential); ok {
		s.Expect(r.First*digest.Group, min((r.Last+1)*digest.Group, o.row.Size))
	}
	buf := groups.Get().(*[digest.Group]byte)
	defer groups.Put(buf)
	ok, err := r.Verify(o.readNode, func(i uint64, valid func([]byte) bool) error {
		from, to := i*digest.Group, min((i+1)*digest.Group, o.row.Size)
		part := buf[:to-from]
		if err := o.wait(len(part)); err != nil {
			return err
		}
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

// cachedNodes is how many nodes are read at once: those above as many groups lie side by side.
const cachedNodes = 64

// readNode reads a node. If it is near the one before, it also reads those before it, which are needed next.
func (o *content) readNode(place uint64, n *[digest.NodeLen]byte) error {
	if place < o.cachedAt || place >= o.cachedAt+uint64(len(o.cached))/digest.NodeLen {
		first := place
		if max(place, o.lastNode)-min(place, o.lastNode) < cachedNodes { // else it is high in the tree, and nothing is needed beside it
			first -= min(place, cachedNodes-1)
		}
		length := int(place+1-first) * digest.NodeLen
		if cap(o.cached) < length {
			o.cached = make([]byte, length)
		}
		o.cached, o.cachedAt = o.cached[:length], first
		if err := o.wait(length); err != nil {
			o.cached = o.cached[:0]
			return err
		}
		if err := readFull(o.nodes, o.cached, o.nodesAt+first*digest.NodeLen); err != nil {
			o.cached = o.cached[:0]
			return err
		}
	}
	o.lastNode = place
	copy(n[:], o.cached[(place-o.cachedAt)*digest.NodeLen:])
	return nil
}

// wait waits until some bytes may be read.
func (o *content) wait(bytes int) error {
	if o.pace != nil {
		o.paced = o.pace(bytes)
	}
	return o.paced
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
