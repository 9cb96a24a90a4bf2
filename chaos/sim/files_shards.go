package sim

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"macronode/adapters/objectstore"
	"macronode/core/coding"
	"macronode/core/digest"
	"macronode/core/placement"
	"macronode/core/storage"
)

// In a quarter of the runs with files, objects that are larger than a stripe have shards. Providers are added when the node starts, so that parts are
// moved to them. What each shard contains says models/coding.

// shardModes are the values of odds/shards but 0: how many providers a run has, how many after some were added, and what an object has.
var shardModes = [...]fileMode{
	{3, 5, objectstore.Copies{Count: 2, Required: 1, Coding: coding.Scheme{Data: 2, Parity: 1}}},
	{5, 6, objectstore.Copies{Count: 2, Required: 1, Coding: coding.Scheme{Data: 2, Parity: 2}}},
	{5, 6, objectstore.Copies{Count: 3, Required: 1, Coding: coding.Scheme{Data: 3, Parity: 2}}},
}

// shardFiles return the contents of the runs with shards: around a stripe.
var shardFiles = func() (made [len(shardModes)]func() fileContents) {
	for i, mode := range shardModes {
		stripe := int(mode.copies.Coding.Stripe())
		made[i] = sync.OnceValue(func() fileContents {
			return newContents([]int{3000, digest.Group + 1, stripe, stripe + 1, stripe + 3000, stripe + digest.Group + 1}, mode.copies.Coding)
		})
	}
	return made
}()

// A fileKey names the files of an object.
type fileKey struct {
	address storage.Address
	file    storage.File
}

// fileParts are the providers that have each shard of an object, or first those that have a copy.
type fileParts [coding.MaxShards]placement.Set

// with returns the parts of p and q.
func (p fileParts) with(q fileParts) fileParts {
	for shard := range p {
		p[shard] |= q[shard]
	}
	return p
}

// all returns the providers that have a part.
func (p *fileParts) all() (set placement.Set) {
	for _, in := range p {
		set |= in
	}
	return set
}

// count returns how many different shards there are, or how many copies.
func (c *fileContent) count(p fileParts) (n int) {
	if c.coded == nil {
		return p[0].Len()
	}
	for _, in := range p {
		n += min(1, in.Len())
	}
	return n
}

// wanted returns how many parts an object has that lacks none, and how many an upload requires.
func (f *fileWorld) wanted(c *fileContent) (all, required int) {
	if c.coded == nil {
		return f.copies.Count, f.copies.Required
	}
	return c.coded.Shards(), min(c.coded.Shards(), c.coded.Needed()+f.copies.Required)
}

// namesOf returns the names of the files of an object: of its shards, or of its copies.
func (f *fileWorld) namesOf(a storage.Address, n storage.File) []string {
	key := fileKey{a, n}
	list, known := f.names[key]
	if known {
		return list
	}
	base, c := fmt.Sprintf("%s-%016x", hex.EncodeToString(a[:]), uint64(n)), f.of[a.String()]
	if c.coded == nil {
		list = []string{base + c.suffix}
	} else {
		for shard := range c.coded.Shards() {
			list = append(list, fmt.Sprintf("%s.rs%d-%d-%d", base, c.coded.Needed(), c.coded.Shards()-c.coded.Needed(), shard))
		}
	}
	f.names[key] = list
	return list
}

// nodes returns the nodes of the hash tree.
func (c *fileContent) nodes() []byte { return c.file[len(c.bytes):] }

// isWhole reports whether b is the file of a shard, or of a copy.
func (c *fileContent) isWhole(shard int, n storage.File, b []byte) bool {
	if c.coded == nil {
		return bytes.Equal(b, c.file)
	}
	blocks, nodes, ok := c.goodBlocks(shard, n, b)
	return ok && nodes && bits.OnesCount64(blocks) == c.coded.Stripes()
}

// goodBlocks returns the stripes of which the file of a shard has the right block, and whether its nodes are right. ok is false if the file
// has another length: then no store can use it.
func (c *fileContent) goodBlocks(shard int, n storage.File, b []byte) (stripes uint64, nodes, ok bool) {
	for stripe := range c.coded.Stripes() {
		block, sum := c.coded.Block(shard, stripe, uint64(n))
		end := len(block) + len(sum)
		if len(b) < end {
			return 0, false, false
		}
		if bytes.Equal(b[:len(block)], block) && bytes.Equal(b[len(block):end], sum) {
			stripes |= 1 << stripe
		}
		b = b[end:]
	}
	return stripes, bytes.Equal(b, c.nodes()), len(b) == len(c.nodes())
}

// isReadable reports whether an object can be read from some providers: a good copy, or of each stripe enough good blocks. With blame, what a
// provider is blamed for counts as good.
func (f *fileWorld) isReadable(a storage.Address, n storage.File, in placement.Set, blame bool) bool {
	c := f.of[a.String()]
	if c.coded == nil {
		is := f.good(a, n)
		if blame {
			is = is.with(f.blamed(a, n))
		}
		return is[0]&in != 0
	}
	var has [64]placement.Set // the shards of each stripe
	var nodes, there placement.Set
	for shard, name := range f.namesOf(a, n) {
		for i, p := range f.ports {
			b, ok := p.disk.Durable(name)
			stripes, isNodes := uint64(0), false
			if ok {
				stripes, isNodes, ok = c.goodBlocks(shard, n, b)
			}
			if blame && p.blamed[name] {
				stripes, isNodes, ok = 1<<c.coded.Stripes()-1, true, true
			}
			if !ok || !in.Has(i) {
				continue
			}
			there = there.With(shard)
			if isNodes {
				nodes = nodes.With(shard)
			}
			for ; stripes > 0; stripes &= stripes - 1 {
				at := bits.TrailingZeros64(stripes)
				has[at] = has[at].With(shard)
			}
		}
	}
	least := there.Len()
	for stripe := range c.coded.Stripes() {
		for shard := range c.coded.Needed() {
			if block, _ := c.coded.Block(shard, stripe, 0); len(block) == 0 { // the object ends before it
				has[stripe] = has[stripe].With(shard)
			}
		}
		least = min(least, has[stripe].Len())
	}
	return nodes != 0 && least >= c.coded.Needed()
}

// noteRead notes that an object with shards was read.
func (f *fileWorld) noteRead(w *World, c *fileContent, r *fileReader) {
	is, data := f.good(r.address, r.row.File), 0
	for _, in := range is[:c.coded.Needed()] {
		data += min(1, in.Len())
	}
	w.note(data < c.coded.Needed(), "shards: an object is read from parity")
}

// grows adds a provider when the node starts.
func (f *fileWorld) grows(w *World) {
	if len(f.ports) == f.most || w.c.Choose("files/add", 4) != 1 {
		return
	}
	f.add(w)
	f.ports[len(f.ports)-1].wiped = true // it has no identity
	w.note(w.fol.HasObjects(), "shards: a provider is added")
}

// rebalances plans the moves of the objects whose parts are elsewhere than an upload would write them. As in the product, they use half of the queue.
func (f *fileWorld) rebalances(w *World) {
	settled := f.store.Settled()
	files, err := f.store.Files()
	if err != nil {
		return
	}
	for _, row := range f.rows(w) {
		has := files.Parts(row)
		_, needed := f.store.ToMove(row, &has)
		if !needed || !settled(row.File) || f.machine.Waiting() >= max(1, fileRepairs/2) {
			continue
		}
		t := taskOf(row)
		t.Move = true
		f.enqueue(t)
	}
}

// moveParts moves the parts of an object. It reports whether that failed.
func (f *fileWorld) moveParts(w *World, o storage.Stored) (failed bool) {
	f.moving = fileKey{o.Address, o.File}
	is, err := f.store.Move(o, func(int) error { f.interrupts(w); return nil })
	f.compare(w)
	f.moving = fileKey{}
	w.note(is.IsDone && len(is.Written) > 0, "shards: parts are moved")
	w.note(errors.Is(err, objectstore.ErrProviderFailed), "shards: nothing is moved, because a provider has failed")
	return err != nil || errors.Join(is.Errs...) != nil
}

// balanced moves the parts of all objects, without faults: each is then in one provider, which has no other part of the object.
func (f *fileWorld) balanced(w *World) {
	for _, row := range f.rows(w) {
		c := f.of[row.Address.String()]
		if all, _ := f.wanted(&c); c.count(f.good(row.Address, row.File)) < all {
			continue // it is lost
		}
		f.moving = fileKey{row.Address, row.File}
		is, err := f.store.Move(row, func(int) error { return nil })
		if err = errors.Join(append(is.Errs, err)...); err != nil || !is.IsDone {
			w.fail("files-move", "object %v, file %d, cannot be moved: %v", row.Address, row.File, err)
			return
		}
		f.compare(w)
		parts, files := f.good(row.Address, row.File), 0
		for _, name := range f.namesOf(row.Address, row.File) {
			for _, p := range f.ports {
				if slices.Contains(p.disk.Names(), name) {
					files++
				}
			}
		}
		all, _ := f.wanted(&c)
		if is := parts.all().Len(); files != all || is != all || c.count(parts) != all {
			w.fail("files-places", "object %v, file %d: %d files in %d providers, %d good, want %d", row.Address, row.File, files, is, c.count(parts), all)
		}
	}
	f.moving = fileKey{}
}
