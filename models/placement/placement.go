// Package placement is the reference model of moves: it tries every way to give shards their places, and keeps which parts of an object are
// good. It shares no code with core/placement, so that both cannot have the same bug.
package placement

// FewestWrites returns how many of some shards are written at least if each of them gets a place of its own, as far as there are places.
// held says which places have each shard.
func FewestWrites(held []map[int]bool, places []int) int {
	type rest struct{ given, writes int }
	var try func(shard int, used map[int]bool) rest
	try = func(shard int, used map[int]bool) rest {
		if shard == len(held) {
			return rest{}
		}
		best := try(shard+1, used) // without a place
		for _, p := range places {
			if used[p] {
				continue
			}
			used[p] = true
			is := try(shard+1, used)
			delete(used, p)
			is.given++
			if !held[shard][p] {
				is.writes++
			}
			if is.given > best.given || is.given == best.given && is.writes < best.writes {
				best = is
			}
		}
		return best
	}
	return try(0, map[int]bool{}).writes
}

// Disks are the good parts of an object: of each shard, the providers that have it. Copies are shard 0.
type Disks [16][16]bool

// Set says whether a provider has a good part of a shard.
func (d *Disks) Set(shard, provider int, good bool) { d[shard][provider] = good }

// Holders returns how many providers have a good part of a shard.
func (d *Disks) Holders(shard int) (n int) {
	for _, good := range d[shard] {
		if good {
			n++
		}
	}
	return n
}

// Readable returns how many different shards have a good part.
func (d *Disks) Readable() (n int) {
	for shard := range d {
		if d.Holders(shard) > 0 {
			n++
		}
	}
	return n
}
