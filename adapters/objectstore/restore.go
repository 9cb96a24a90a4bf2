package objectstore

import (
	"macronode/core/coding"
	"macronode/core/digest"
	"macronode/core/placement"
)

// wantedStripe is a stripe that is restored.
type wantedStripe struct {
	number uint64
	groups int                                 // of the object
	block  int                                 // the length of its parity
	valid  [coding.MaxShards]func([]byte) bool // whether a group is that of the object; nil: the object ends before it
}

// restore reads a stripe: each group that is good, and as many blocks of parity as groups are not. It computes the others, which are not
// verified yet.
func (c *coded) restore(number uint64) error {
	if c.stripe == nil {
		c.stripe = newStripe(c.scheme)
	}
	c.restored = 0
	s, data := c.stripe, int(c.scheme.Data)
	w := wantedStripe{number: number, groups: c.scheme.Groups(c.row.Size, number), block: c.scheme.BlockLen(c.row.Size, number)}
	for shard := range c.scheme.Shards() {
		s.shards[shard] = s.group(shard)[:0]
	}
	for shard := w.groups; shard < data; shard++ {
		s.setData(shard, 0, w.block)
	}
	begin := number * uint64(data)
	r := digest.Range{Digest: digest.Value(c.row.Address), Size: c.row.Size, First: begin, Last: begin + uint64(w.groups) - 1}
	if err := c.verify(&r, func(i uint64, valid func([]byte) bool) error {
		w.valid[i-begin] = valid
		return nil
	}); err != nil {
		return err
	}
	if enough, err := c.gather(&w); err != nil || !enough {
		if err == nil {
			err = c.failure()
		}
		return err
	}
	if err := c.store.codec(c.scheme).RestoreData(s.shards[:c.scheme.Shards()]); err != nil {
		return err
	}
	c.restored = number + 1
	return nil
}

// gather reads shards of a stripe, first those that are open, until as many are good as the scheme has data. The error is that of the pace.
func (c *coded) gather(w *wantedStripe) (enough bool, err error) {
	good, seen := int(c.scheme.Data)-w.groups, placement.Set(0)
	for _, opens := range [...]placement.Set{0, c.store.table.All()} {
		for shard := 0; shard < c.scheme.Shards() && good < int(c.scheme.Data); shard++ {
			if seen.Has(shard) || c.scheme.IsData(shard) && w.valid[shard] == nil {
				continue
			}
			c.openShard(shard, opens)
			if c.files[shard] == nil {
				continue
			}
			ok, err := c.readShard(w, shard)
			if err != nil {
				return false, err
			}
			if ok {
				good++
			}
			if c.files[shard] != nil { // else it may be elsewhere
				seen = seen.With(shard)
			}
		}
	}
	for shard := 0; shard < c.scheme.Shards() && good < int(c.scheme.Data); shard++ {
		if !seen.Has(shard) || len(c.stripe.shards[shard]) > 0 {
			continue
		}
		ok, err := c.readElsewhere(w, shard)
		if err != nil {
			return false, err
		}
		if ok {
			good++
		}
	}
	return good == int(c.scheme.Data), nil
}

// readElsewhere reads what a shard has of a stripe from another file of it than the one that is open: it may be in two providers. It
// returns what readShard does.
func (c *coded) readElsewhere(w *wantedStripe, shard int) (ok bool, err error) {
	for n := len(c.others[shard]); ; n-- {
		if n > 0 {
			last := &c.others[shard][n-1]
			if *last == nil {
				continue
			}
			c.files[shard], *last = *last, c.files[shard]
		} else if !c.openOther(shard) {
			return false, nil
		}
		if ok, err = c.readShard(w, shard); ok || err != nil {
			return ok, err
		}
	}
}

// readShard reads what an open shard has of a stripe. ok is false if that is not good. The error is that of the pace.
func (c *coded) readShard(w *wantedStripe, shard int) (ok bool, err error) {
	_, length := c.scheme.At(c.row.Size, w.number, shard)
	part := c.stripe.memory[shard*shardMemory:][:length]
	err = c.files[shard].read(w.number, part)
	if c.paced != nil {
		return false, c.paced
	}
	if valid := w.valid[shard]; err == nil && valid != nil && !valid(part) {
		err = ErrDamaged
	}
	if err != nil {
		c.drop(shard, err)
		return false, nil
	}
	if c.scheme.IsData(shard) {
		c.stripe.setData(shard, length, w.block)
	} else {
		c.stripe.shards[shard] = part[:w.block]
	}
	return true, nil
}
