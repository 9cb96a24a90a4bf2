package sim

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"macronode/adapters/objectio"
	"macronode/adapters/objectstore"
	"macronode/adapters/provider"
	"macronode/core/placement"
	"macronode/core/storage"
)

// What the oracle of files knows, it reads from the disks, without the code of the store: a copy or a shard is good if a crash leaves all its bytes.
// A provider is blamed for a file that it lost or changed, or whose sync it acknowledged without effect.

// good returns the good parts of an object.
func (f *fileWorld) good(a storage.Address, n storage.File) (is fileParts) {
	c := f.of[a.String()]
	for shard, name := range f.namesOf(a, n) {
		for i, p := range f.ports {
			if b, ok := p.disk.Durable(name); ok && c.isWhole(shard, n, b) {
				is[shard] = is[shard].With(i)
			}
		}
	}
	return is
}

// blamed returns the parts of an object for which a provider is blamed.
func (f *fileWorld) blamed(a storage.Address, n storage.File) (is fileParts) {
	for shard, name := range f.namesOf(a, n) {
		for i, p := range f.ports {
			if p.blamed[name] {
				is[shard] = is[shard].With(i)
			}
		}
	}
	return is
}

func (f *fileWorld) isBlamed(a storage.Address, n storage.File) bool {
	is := f.blamed(a, n)
	return is.all() != 0
}

// all returns all providers.
func (f *fileWorld) all() placement.Set { return f.store.Table().All() }

// isFailing reports whether a fault may be due, or a provider has failed.
func (f *fileWorld) isFailing() bool {
	return !f.probed || f.store.Usable() != f.all() || slices.ContainsFunc(f.ports, func(p *fileProvider) bool {
		return p.lie != truth || p.disk.FailRead || p.disk.FailWrite || p.disk.FailSync || p.disk.FailDir || p.disk.Full || p.disk.LoseSync || p.disk.Dead() || p.disk.Fuse > 0
	})
}

// acknowledged checks that the content of an acknowledged command is durable in as many providers as are required.
func (f *fileWorld) acknowledged(w *World, content string, u *fileUpload) {
	a := w.storage.contents.addressOf(content)
	row, held := w.fol.StoredAs(a)
	if !held {
		return // it was deleted since
	}
	c, is := f.of[content], f.good(a, row.File).with(f.blamed(a, row.File))
	_, required := f.wanted(&c)
	switch {
	case row.File == u.file && c.count(is) < required,
		row.File != u.file && !f.isReadable(a, row.File, f.all(), true): // it was stored before, and was read as a whole
		w.fail("files-acknowledged", "object %v, file %d, is acknowledged, and durable in %b; uploaded was %d", a, row.File, is, u.file)
	}
	w.note(c.coded != nil, "shards: an object is acknowledged")
}

// compare checks that each object of the read model has its copies: those that an upload required, and those that were good, but for those
// that a provider is blamed for. No directory has files before it is claimed.
func (f *fileWorld) compare(w *World) {
	for i, p := range f.ports {
		if names := p.disk.Names(); !slices.Contains(names, identityFile) && slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, "-") }) {
			w.fail("files-unclaimed", "provider %d has files, and was not claimed: %q", i, names)
		}
	}
	for _, row := range f.rows(w) {
		if f.writing[row.File] {
			continue
		}
		f.compareParts(w, row)
	}
}

// compareParts compares the parts of an object.
func (f *fileWorld) compareParts(w *World, row storage.Stored) {
	c, key := f.of[row.Address.String()], fileKey{row.Address, row.File}
	is, blamed, known := f.good(row.Address, row.File), f.blamed(row.Address, row.File), f.known[key]
	all := is.with(blamed)
	_, required := f.wanted(&c)
	missing := c.count(all) < required
	for shard := range all {
		vanished := known[shard]&^all[shard] != 0
		if vanished && key == f.moving { // others have replaced it
			vanished = all[shard] == 0 || c.coded == nil && all[0].Len() < min(known[0].Len(), f.copies.Count)
		}
		missing = missing || vanished
	}
	if missing {
		w.fail("files-missing", "object %v, file %d: good are %b, required are %d, known were %b; blamed are %b", row.Address, row.File, is, required, known, blamed)
	}
	for shard, name := range f.namesOf(row.Address, row.File) {
		for i, p := range f.ports {
			if is[shard].Has(i) {
				delete(p.blamed, name)
			}
		}
	}
	f.known[key] = is
}

// A fileReader reads an object that it has open.
type fileReader struct {
	address storage.Address
	row     storage.Object
	from    *objectstore.Object
	expects int // see expects, when it was opened: copies that were restored since are not read
}

// reads opens an object, reads a range of an open one, or closes it.
func (f *fileWorld) reads(w *World) {
	n := w.c.Choose("files/reader", fileReaders)
	if n >= len(f.readers) {
		rows := f.rows(w)
		if len(rows) == 0 {
			return
		}
		row := rows[w.c.Choose("files/row", len(rows))]
		expects := f.expects(row.Address, row.Object)
		from, err := f.open(w, row.Address, row.Object)
		if err != nil {
			f.unreadable(w, row.Address, row.Object, err, expects)
			return
		}
		f.readers = append(f.readers, &fileReader{row.Address, row.Object, from, expects})
		return
	}
	r := f.readers[n]
	size := int(r.row.Size)
	off := size >> w.c.Choose("files/off", 4)
	length := (size - off) >> w.c.Choose("files/length", 3)
	f.readRange(w, r, uint64(off), uint64(length))
	if w.c.Choose("files/close", 3) == 1 {
		r.from.Close()
		f.readers = slices.Delete(f.readers, n, n+1)
	}
}

// readRange reads a range. Each part must be that of the content.
func (f *fileWorld) readRange(w *World, r *fileReader, off, length uint64) {
	want := f.of[r.address.String()].bytes[off : off+length]
	got := 0
	err := r.from.WriteRange(off, length, func(b []byte) error {
		if got+len(b) > len(want) || !bytes.Equal(b, want[got:got+len(b)]) {
			w.fail("files-wrong-bytes", "object %v, file %d: other bytes at %d", r.address, r.row.File, off+uint64(got))
			return errWrong
		}
		got += len(b)
		f.interrupts(w)
		return nil
	})
	switch {
	case err != nil:
		f.unreadable(w, r.address, r.row, err, r.expects)
	case got != len(want):
		w.fail("files-short", "object %v, file %d: %d bytes of %d", r.address, r.row.File, got, len(want))
	default:
		held := w.fol.HasFile(r.address, r.row.File)
		w.note(!held, "files: an object is read after it was deleted")
		w.note(held && f.isBlamed(r.address, r.row.File), "files: an object is read although a copy is lost or changed")
		if c := f.of[r.address.String()]; held && c.coded != nil {
			f.noteRead(w, &c, r)
		}
	}
}

var errWrong = errors.New("sim: other bytes")

// expects returns how many faults there were, if an object must be readable as long as there are no more; negative: it need not be.
func (f *fileWorld) expects(a storage.Address, row storage.Object) int {
	if !f.probed || !f.isReadable(a, row.File, f.store.Usable(), false) {
		return -1
	}
	return f.harms()
}

// unreadable judges a read that failed.
func (f *fileWorld) unreadable(w *World, a storage.Address, row storage.Object, err error, expects int) {
	w.Saw["files: an object cannot be read"]++
	if errors.Is(err, objectio.ErrNoObject) || w.dead() || expects < 0 || expects != f.harms() || !w.fol.HasFile(a, row.File) {
		return
	}
	w.fail("files-unreadable", "object %v, file %d, cannot be read: %v; good are %b", a, row.File, err, f.good(a, row.File))
}

// certify checks the files after the calm: each object has all its copies or shards, or its loss is known and someone is to blame; there is no
// other file.
func (f *fileWorld) certify(w *World) {
	if f.store == nil {
		w.fail("files-closed", "the store cannot be opened")
		return
	}
	f.inside = true // nothing is interrupted
	f.removes(w)
	lacks := false
	known := map[string]bool{identityFile: true, identityFile + provider.DraftSuffix: true, provider.ProbeName: true} // small, and replaced
	for _, row := range f.rows(w) {
		for _, name := range f.namesOf(row.Address, row.File) {
			known[name] = true
		}
		lacks = f.certifyObject(w, row) || lacks
	}
	isKnown := func(o storage.Stored) bool { return w.fol.HasFile(o.Address, o.File) }
	if lacks != f.lacking && (lacks || slices.ContainsFunc(f.found, isKnown)) { // not what was deleted after the last inventory
		w.fail("files-lacking", "copies are missing: %v, and the node was told %v", lacks, f.lacking)
	}
	for i, p := range f.ports {
		for _, name := range p.disk.Names() {
			if !known[name] {
				w.fail("files-garbage", "provider %d has %s, of which there is no row", i, name)
			}
		}
	}
	if f.copies.Coding.IsSet() {
		f.balanced(w)
	}
	f.counts(w)
}

// certifyObject checks an object after the calm. It reports whether the object lacks a file.
func (f *fileWorld) certifyObject(w *World, row storage.Stored) (lacks bool) {
	c := f.of[row.Address.String()]
	is, all, there := f.good(row.Address, row.File), 0, fileParts{}
	for shard, name := range f.namesOf(row.Address, row.File) {
		for i, p := range f.ports {
			if slices.Contains(p.disk.Names(), name) {
				there[shard] = there[shard].With(i)
			}
		}
	}
	all, _ = f.wanted(&c)
	f.certifyLost(w, row, !f.isReadable(row.Address, row.File, f.all(), false))
	switch {
	case c.count(is) >= all:
		if r := f.opened(w, row); r != nil {
			f.readRange(w, r, 0, row.Size)
		}
	case f.isReadable(row.Address, row.File, f.all(), false) || !f.isBlamed(row.Address, row.File):
		w.fail("files-not-restored", "object %v, file %d: good are %b, wanted are %d, blamed are %b", row.Address, row.File, is, all, f.blamed(row.Address, row.File))
	default:
		w.Saw["files: an object is lost"]++
		w.note(c.coded != nil, "shards: an object is lost")
	}
	return c.count(there) < all
}

// opened opens an object that must be readable.
func (f *fileWorld) opened(w *World, row storage.Stored) *fileReader {
	expects := f.expects(row.Address, row.Object)
	from, err := f.open(w, row.Address, row.Object)
	if err != nil {
		w.fail("files-unreadable", "object %v, file %d, cannot be opened: %v", row.Address, row.File, err)
		return nil
	}
	return &fileReader{row.Address, row.Object, from, expects}
}
