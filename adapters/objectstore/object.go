package objectstore

import (
	"errors"
	"os"

	"macronode/adapters/fs"
	"macronode/adapters/provider"
	"macronode/core/coding"
	"macronode/core/digest"
	"macronode/core/placement"
	"macronode/core/storage"
)

// An Object is an open object. Its file stays readable when it is collected. It is not safe for concurrent use.
type Object struct {
	*content        // of the copy that is read; nil: the object has shards
	coded    *coded // nil: it has copies

	store *Store
	lost  coding.Scheme                  // of which there are too few shards; zero: there is none
	away  error                          // of a copy in a provider that cannot be reached or has failed; nil: there was none
	order placement.Order                // in which copies are tried
	at    int                            // the place of the copy that is read
	stuck [placement.MaxProviders]uint64 // 1 + the offset at which each place failed; 0: it has not failed
}

// Get opens an object. ErrGone reports that its file is not there: the object was deleted meanwhile, or the
// file is lost in all providers. ErrAbsent reports that the only directory is not there.
func (s *Store) Get(a storage.Address, o storage.Object) (x *Object, err error) {
	row := storage.Stored{Address: a, Object: o}
	for range maxOpens {
		moved := s.moved.Load()
		x = &Object{store: s, order: s.order(o.File)}
		if err = x.open(row); err == nil {
			return x, nil
		}
		if s.moved.Load() == moved { // else a part may have moved into a provider that had been asked before
			break
		}
	}
	if !isAny(err, ErrUnavailable, ErrAbsent) {
		s.defect(row)
	}
	return nil, err
}

// maxOpens is how often an object is opened while parts are being moved.
const maxOpens = 3

// open opens the first copy that can be opened, or the shards. If there are none, it returns the error of a copy that is there, else
// ErrGone.
func (o *Object) open(row storage.Stored) error {
	failed, defect, short := ErrGone, false, false
	for ; o.at < o.order.Len(); o.at++ {
		err := o.openIn(row, o.order.At(o.at))
		if err == nil {
			if o.coded == nil && !short && (defect || o.lacksCopy()) {
				o.store.defect(row)
			}
			return nil
		}
		if !errors.Is(err, ErrGone) {
			failed, defect = err, true
			short = short || IsShortage(err) // nothing is known of this copy
		}
		o.stuck[o.at] = 1
		o.noteAway(o.order.At(o.at), err)
	}
	for _, scheme := range o.store.schemesOf(row.Size) { // its shards may be elsewhere than they are placed
		if scheme == o.lost {
			continue
		}
		if err := o.use(o.store.openCoded(row, scheme, o.order, nil)); err == nil || !errors.Is(err, ErrGone) {
			return err
		}
	}
	return o.failure(failed)
}

// openIn opens the copy in a provider, or all shards if the provider has the shard that is placed there.
func (o *Object) openIn(row storage.Stored, i int) (err error) {
	var shards [2]Part
	err = ErrGone
	for _, part := range o.store.candidates(shards[:0], row, i) {
		if part.Scheme.IsSet() && part.Scheme == o.lost {
			continue
		}
		if !part.Scheme.IsSet() {
			o.content, err = o.store.providers[i].open(row)
		} else if f, failed := o.store.openShard(row, part, new(pacing)); failed == nil {
			return o.use(o.store.openCoded(row, part.Scheme, o.order, f))
		} else {
			err = failed
		}
		if !errors.Is(err, ErrGone) {
			return err
		}
	}
	return err
}

// use reads from shards, if there are enough.
func (o *Object) use(c *coded) error {
	if c.open() < int(c.scheme.Data) {
		c.close()
		o.lost = c.scheme
		return c.failure()
	}
	o.coded = c
	return nil
}

// noteAway keeps the error of a copy in the i-th provider, if the provider cannot be reached or has failed.
func (o *Object) noteAway(i int, err error) {
	if away := o.store.providers[i].away(err); away != nil {
		o.away = away
	}
}

// failure returns why no copy can be read: that one cannot be reached now is more than that another one is bad.
func (o *Object) failure(err error) error {
	if o.away != nil && !errors.Is(err, ErrUnavailable) {
		return join(o.away, err)
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
func (o *Object) Close() {
	if o.coded != nil {
		o.coded.close()
		return
	}
	o.content.close()
}

// limits returns the pacing of o.
func (o *Object) limits() *pacing {
	if o.coded != nil {
		return o.coded.pacing
	}
	return o.content.pacing
}

// WriteRange passes length bytes from off to send, in parts of at most one group, each of which was verified. Both lie
// within the object. send must not keep its argument. A part that cannot be read from one copy is read from another. WriteRange
// returns the error of send, ErrDamaged, ErrUnavailable, or that of a read.
func (o *Object) WriteRange(off, length uint64, send func([]byte) error) error {
	if o.coded != nil {
		return o.coded.writeRange(off, length, send)
	}
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
	o.noteAway(o.order.At(o.at), err)
	if !IsShortage(err) {
		o.store.defect(row)
	}
	o.stuck[o.at] = off + 1
	for n := 1; n < o.order.Len(); n++ {
		at := (o.at + n) % o.order.Len()
		if o.stuck[at] == off+1 {
			continue
		}
		c, err := o.store.providers[o.order.At(at)].open(row)
		if err != nil {
			o.noteAway(o.order.At(at), err)
			o.stuck[at] = off + 1
			continue
		}
		o.content.close()
		c.pacing = o.content.pacing
		o.content, o.at = c, at
		return true
	}
	return false
}

// content is an open copy of an object.
type content struct {
	address storage.Address
	row     storage.Object
	data    fs.File
	nodeReader
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
	data, err := provider.OpenContent(p.Port, name(a, o.File)+l.suffix())
	if err != nil {
		return nil, gone(err)
	}
	x, want := &content{address: a, row: o, data: data, nodeReader: nodeReader{pacing: new(pacing)}}, o.Size
	switch l {
	case appendedNodes:
		x.nodes, x.nodesAt = data, o.Size
		want += digest.NodeLen * (digest.Groups(o.Size) - 1)
	case separateNodes:
		if x.nodes, err = provider.OpenContent(p.Port, name(a, o.File)+nodesSuffix); err != nil {
			x.close()
			return nil, gone(err)
		}
	case noNodes:
	}
	size, err := data.Size()
	if err == nil && uint64(size) != want {
		err = ErrDamaged
	}
	if err != nil {
		x.close()
		return nil, err
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
