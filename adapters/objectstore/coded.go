package objectstore

import (
	"errors"

	"macronode/core/coding"
	"macronode/core/digest"
	"macronode/core/placement"
	"macronode/core/storage"
)

// coded is an open object that has shards:
//
//	group ──► its shard ──► verified ──► client
//	            │ missing, damaged, cannot be read
//	            ▼
//	stripe ──► any Data of its shards, each verified ──► restored groups, verified ──► client
//
// The nodes are read from one shard, and from another one if they are bad.
type coded struct {
	*pacing
	store    *Store
	row      storage.Stored
	scheme   coding.Scheme
	order    placement.Order                 // in which providers are tried for a shard that is not where it is placed
	files    [coding.MaxShards]*shardFile    // nil: not open
	others   [coding.MaxShards][]*shardFile  // open as well: each is damaged in a stripe, and may be good in another; nil: not open any more
	tried    [coding.MaxShards]placement.Set // for each shard
	badNodes placement.Set                   // shards whose nodes are bad
	faulty   placement.Set                   // providers that failed to open a file: they are not asked for another shard
	stripe   *stripe                         // nil until a stripe is restored
	restored uint64                          // 1 + the stripe that is in stripe
	short    bool                            // a file could not be opened because the node lacks a resource: nothing is known of that shard
	away     error                           // of a shard in a provider that cannot be reached or has failed; nil: there was none
	failed   error                           // of another shard that is not good; nil: all others are gone
}

// openCoded opens as many shards of an object as it has data, or fewer if there are fewer: those near by come first, those of data before
// those of parity. Then a read needs no file that a collector may remove meanwhile. first is a shard that is open already; nil: none is.
func (s *Store) openCoded(row storage.Stored, scheme coding.Scheme, order placement.Order, first *shardFile) *coded {
	c := &coded{pacing: new(pacing), store: s, row: row, scheme: scheme, order: order}
	if first != nil {
		c.pacing, c.files[first.Shard] = first.pacing, first
	}
	near, spare, all := s.healthy()&^s.far, s.table.All(), placement.Set(0)
	placed := s.table.Choose(uint64(row.File), scheme.Shards(), s.table.All(), 0)
	for i := range placed.Len() {
		spare &^= placement.Set(0).With(placed.At(i))
	}
	for i := range order.Len() {
		all = all.With(order.At(i))
	}
	for _, usable := range [...]placement.Set{near & all, s.healthy() & all} {
		for shard := 0; shard < scheme.Shards() && c.open() < int(scheme.Data); shard++ {
			among := spare
			if shard < placed.Len() {
				among = among.With(placed.At(shard))
				c.tryShard(shard, placed.At(shard), usable)
			}
			c.openShard(shard, among&usable)
			if shard >= placed.Len() || c.files[shard] != nil || !usable.Has(placed.At(shard)) {
				continue
			}
			c.openShard(shard, near&all&^c.holders()) // a provider was added since it was written
			if c.files[shard] == nil && !c.short {
				s.defect(row)
			}
		}
	}
	for shard := 0; shard < scheme.Shards() && c.open() < int(scheme.Data); shard++ {
		c.openShard(shard, all)
	}
	return c
}

// open returns how many shards are open.
func (c *coded) open() (n int) {
	for _, f := range c.files {
		if f != nil {
			n++
		}
	}
	return n
}

// holders returns the providers of the open shards: each has no other one.
func (c *coded) holders() (set placement.Set) {
	for _, f := range c.files {
		if f != nil {
			set = set.With(f.Provider)
		}
	}
	return set
}

// openShard looks for a shard in some providers that were not tried.
func (c *coded) openShard(shard int, among placement.Set) {
	for n := range c.order.Len() {
		c.tryShard(shard, c.order.At(n), among)
	}
}

// tryShard looks for a shard in a provider, if that is one of among and was not tried.
func (c *coded) tryShard(shard, i int, among placement.Set) {
	if c.files[shard] != nil || !among.Has(i) || c.tried[shard].Has(i) || c.faulty.Has(i) {
		return
	}
	c.tried[shard] = c.tried[shard].With(i)
	f, err := c.store.openShard(c.row, Part{i, c.scheme, shard}, c.pacing)
	if err == nil {
		c.files[shard] = f
		return
	}
	if isFault(err) {
		c.faulty = c.faulty.With(i)
	}
	c.noteError(i, err)
}

// noteError keeps why a shard in the i-th provider is not good.
func (c *coded) noteError(i int, err error) {
	c.short = c.short || IsShortage(err)
	if away := c.store.providers[i].away(err); away != nil {
		c.away = away
	}
	if !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrGone) && !IsShortage(err) {
		c.failed = err
		c.store.defect(c.row)
	}
}

// failure returns why too few shards are good.
func (c *coded) failure() error {
	switch {
	case c.away != nil:
		return join(c.away, c.failed)
	case c.failed != nil:
		return c.failed
	}
	return ErrGone
}

func (c *coded) close() {
	for shard, f := range c.files {
		if f != nil {
			f.close()
		}
		for _, f := range c.others[shard] {
			if f != nil {
				f.close()
			}
		}
	}
	if c.stripe != nil {
		c.stripe.free()
		c.stripe = nil
	}
}

// openOther opens the file of a shard in a provider that was not tried. It keeps the one that is open. It returns false if there is none.
func (c *coded) openOther(shard int) bool {
	was := c.files[shard]
	c.files[shard] = nil
	if c.openShard(shard, c.store.table.All()); c.files[shard] == nil {
		c.files[shard] = was
		return false
	}
	if was != nil {
		c.others[shard] = append(c.others[shard], was)
	}
	return true
}

// drop handles a failed read of a shard. One that is damaged may be good elsewhere; another one is not read again.
func (c *coded) drop(shard int, err error) {
	f := c.files[shard]
	_ = c.store.providers[f.Provider].note(err)
	c.noteError(f.Provider, err)
	if !errors.Is(err, ErrDamaged) {
		f.close()
		c.files[shard] = nil
	}
}

// writeRange is WriteRange of an object with shards.
func (c *coded) writeRange(off, length uint64, send func([]byte) error) error {
	if length == 0 {
		return nil
	}
	r := digest.Range{Digest: digest.Value(c.row.Address), Size: c.row.Size, First: off / digest.Group, Last: (off + length - 1) / digest.Group}
	for _, f := range c.files {
		if f != nil && c.scheme.IsData(f.Shard) {
			f.expect(r.First/uint64(c.scheme.Data), r.Last/uint64(c.scheme.Data)+1)
		}
	}
	buf := groups.Get().(*[digest.Group]byte)
	defer groups.Put(buf)
	return c.verify(&r, func(i uint64, valid func([]byte) bool) error {
		part, err := c.readGroup(&r, i, valid, buf[:])
		if err != nil {
			return err
		}
		begin := i * digest.Group
		if err := send(part[max(off, begin)-begin : min(off+length, begin+uint64(len(part)))-begin]); err != nil {
			return err
		}
		r.First = i + 1
		return nil
	})
}

// verify calls group for the groups of r with the nodes of any shard. If these are bad, it goes on with those of another one, from r.First,
// which group may advance.
func (c *coded) verify(r *digest.Range, group func(uint64, func([]byte) bool) error) error {
	for {
		from := c.nodesFrom()
		if from == nil {
			return c.failure()
		}
		var failed error
		ok, err := r.Verify(func(place uint64, n *[digest.NodeLen]byte) error {
			failed = from.readNode(place, n)
			return failed
		}, group)
		if c.paced != nil {
			return c.paced
		}
		if ok && failed == nil {
			return err
		}
		if !ok {
			failed = ErrDamaged
		}
		c.badNodes = c.badNodes.With(from.Shard)
		if c.files[from.Shard] == from {
			c.drop(from.Shard, failed)
		}
	}
}

// nodesFrom returns a shard whose nodes are not known to be bad; nil: there is none. If those of all shards are bad, it looks for another file of
// each.
func (c *coded) nodesFrom() *shardFile {
	for _, among := range [...]placement.Set{0, c.store.table.All()} {
		for shard := range c.scheme.Shards() {
			if c.badNodes.Has(shard) {
				continue
			}
			c.openShard(shard, among)
			if f := c.files[shard]; f != nil {
				return f
			}
		}
	}
	for shard := range c.scheme.Shards() {
		if c.openOther(shard) {
			c.badNodes &^= placement.Set(0).With(shard)
			return c.files[shard]
		}
	}
	return nil
}

// readGroup returns a group that is valid, from its shard or restored.
func (c *coded) readGroup(r *digest.Range, i uint64, valid func([]byte) bool, buf []byte) ([]byte, error) {
	number, shard := i/uint64(c.scheme.Data), int(i%uint64(c.scheme.Data))
	_, length := c.scheme.At(c.row.Size, number, shard)
	if c.restored != number+1 && !c.lacks(r, number) {
		part := buf[:length]
		err := c.files[shard].read(number, part)
		if c.paced != nil {
			return nil, c.paced
		}
		if err == nil && valid(part) {
			return part, nil
		}
		if err == nil {
			err = ErrDamaged
		}
		c.drop(shard, err)
	}
	if c.restored != number+1 {
		if err := c.restore(number); err != nil {
			return nil, err
		}
	}
	part := c.stripe.shards[shard][:length]
	if !valid(part) {
		return nil, ErrDamaged
	}
	return part, nil
}

// lacks reports whether a group of a stripe that is to be read has no open shard.
func (c *coded) lacks(r *digest.Range, number uint64) bool {
	begin := number * uint64(c.scheme.Data)
	for i := max(begin, r.First); i <= min(r.Last, begin+uint64(c.scheme.Data)-1); i++ {
		if c.files[i-begin] == nil {
			return true
		}
	}
	return false
}
