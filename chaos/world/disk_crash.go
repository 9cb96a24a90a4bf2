package world

import (
	"bytes"
	"slices"
)

// sector is the usual unit of an atomic write. It is small, so that one frame spans several.
const sector = 64

// Crash cuts the power of the disk and restores it: open handles are dead, and unsynced data of each directory is kept as c
// chooses. The default choices lose all of it.
func (d *Disk) Crash(c Chooser) {
	for _, dir := range d.dirs {
		dir.crash(c)
	}
	d.Fuse = -1
	d.FailRead, d.FailWrite, d.FailSync, d.FailDir = false, false, false, false
}

func (d *Disk) crash(c Chooser) {
	kept := c.Choose("disk/names", len(d.moves)+1)
	if kept < len(d.moves) {
		d.hurt(NameLost, "")
	}
	if kept > 0 {
		d.durable = d.moves[kept-1]
	}
	for _, n := range d.durable.sorted() {
		d.durable[n].crash(c, d.Sector, func(how string) { d.hurt(how, n) })
	}
	d.live, d.moves, d.open = d.durable, nil, 0
	d.life++
	d.LoseSync, d.Astray = false, 0
}

// crash settles each unsynced write: lost, whole, torn at a byte, or any of its sectors.
func (i *inode) crash(c Chooser, sector int, hurt func(how string)) {
	for _, w := range i.pending {
		if w.cut {
			if c.Choose("disk/truncate", 2) == 1 {
				i.durable = w.onto(i.durable, 0, 0)
			} else {
				hurt(WriteLost)
			}
			continue
		}
		switch size := len(w.data); c.Choose("disk/write", 4) {
		case 0:
			hurt(WriteLost)
		case 1:
			i.durable = w.onto(i.durable, 0, size)
		case 2:
			hurt(WriteTorn)
			i.durable = w.onto(i.durable, 0, 1+c.Choose("disk/tear", size))
		case 3:
			hurt(WriteMixed)
			for from := 0; from < size; {
				to := min(size, ((w.off+from)/sector+1)*sector-w.off)
				if c.Choose("disk/sector", 2) == 1 {
					i.durable = w.onto(i.durable, from, to)
				}
				from = to
			}
		}
	}
	i.pending = nil
	i.live = bytes.Clone(i.durable)
}

// Rot flips a bit of a byte on disk, and returns the file and offset; at is negative if there is
// none. Unsynced data over it is read as written.
func (d *Disk) Rot(c Chooser) (name string, at int) {
	all := slices.DeleteFunc(d.live.sorted(), func(n string) bool { return len(d.live[n].durable) == 0 })
	if len(all) == 0 {
		return "", -1
	}
	name = all[c.Choose("disk/rot/file", len(all))]
	return name, d.RotFile(c, name)
}

// RotFile flips a bit of a file on disk, and returns its offset; negative: no byte of it is there.
func (d *Disk) RotFile(c Chooser, name string) (at int) {
	i := d.live[name]
	if i == nil || len(i.durable) == 0 {
		return -1
	}
	at = c.Choose("disk/rot/byte", len(i.durable))
	i.flip(at, 1<<c.Choose("disk/rot/bit", 8))
	d.hurt(BitRotten, name)
	return at
}

// Lose loses a file, although it was durable. A correct disk never does that.
func (d *Disk) Lose(name string) {
	for _, m := range slices.Concat(d.moves, []names{d.live, d.durable}) {
		delete(m, name)
	}
	d.hurt(FileLost, name)
}

// LoseAll loses all files, those included whose removal is not durable: the directory is a new one.
func (d *Disk) LoseAll() {
	for _, m := range append(slices.Clone(d.moves), d.live, d.durable) {
		for _, name := range m.sorted() {
			d.Lose(name)
		}
	}
	d.durable, d.moves = d.live, nil
}

// Durable returns what a crash leaves of a file at least; false: the file is not there now, or may not be there then. The result must
// not be changed.
func (d *Disk) Durable(name string) ([]byte, bool) {
	i := d.durable[name]
	if i == nil || d.live[name] == nil {
		return nil, false
	}
	return i.durable, true
}

// Cut loses the end of the last file, or all of it, although it was durable. A correct disk never
// does that.
func (d *Disk) Cut(c Chooser) (name string, at int) {
	all := d.live.sorted()
	if len(all) == 0 {
		return "", -1
	}
	name = all[len(all)-1]
	i := d.live[name]
	at = c.Choose("disk/cut", len(i.live)+1) - 1
	if d.hurt(EndLost, name); at < 0 {
		d.rename(func(n names) { delete(n, name) })
		d.durable, d.moves = d.live, nil
		return name, 0
	}
	i.live, i.durable, i.pending = i.live[:at], i.durable[:min(at, len(i.durable))], nil
	return name, at
}

func (i *inode) flip(at int, bit byte) {
	i.durable[at] ^= bit
	over := func(w write) bool { return w.off <= at && (w.cut || at < w.off+len(w.data)) }
	if at < len(i.live) && !slices.ContainsFunc(i.pending, over) {
		i.live[at] ^= bit
	}
}

// Copy returns an independent disk with the same directory, without open files.
func (d *Disk) Copy() *Disk {
	to, copies, medium := *d, map[*inode]*inode{}, *d.Medium
	to.Medium, medium.dirs = &medium, []*Disk{&to}
	to.OnOperation, to.Hurt = nil, nil
	copied := func(m names) names {
		if m == nil {
			return nil
		}
		out := make(names, len(m))
		for n, i := range m {
			if copies[i] == nil {
				copies[i] = &inode{bytes.Clone(i.live), bytes.Clone(i.durable), slices.Clone(i.pending)}
			}
			out[n] = copies[i]
		}
		return out
	}
	to.live, to.durable, to.moves, to.open = copied(d.live), copied(d.durable), slices.Clone(d.moves), 0
	for n, m := range to.moves {
		to.moves[n] = copied(m)
	}
	return &to
}
