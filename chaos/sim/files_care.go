package sim

import (
	"errors"
	"fmt"
	"slices"

	"macronode/adapters/objectio"
	"macronode/adapters/objectstore"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/placement"
	"macronode/core/repair"
	"macronode/core/storage"
)

// moves is a move of the files. It is false if a client moves instead.
func (f *fileWorld) moves(w *World) bool {
	defer f.counts(w)
	if f.store == nil {
		f.opens(w)
		return true
	}
	switch w.c.Choose("files/what", 16) {
	case 1, 2, 3:
		f.trouble(w)
	case 4, 5:
		f.reads(w)
	case 6:
		f.collect(w)
	case 7:
		f.probe(w)
	case 8:
		f.inventory(w)
	case 9, 10:
		f.repairs(w)
	case 11:
		f.scrubs(w)
	case 12:
		if !f.copies.Coding.IsSet() {
			return false
		}
		f.rebalances(w)
	default:
		return false
	}
	return true
}

// interrupts lets others move within a call of the store, as they do in other goroutines.
func (f *fileWorld) interrupts(w *World) {
	if f.inside || w.err != nil || w.dead() {
		return
	}
	what := w.c.Choose("files/interrupt", 8)
	if what == 0 || what > 5 {
		return
	}
	store := f.store
	f.inside, w.defers = true, true
	defer func() { f.inside, w.defers = false, false }()
	if what != 2 {
		w.Saw["files: a client moves within a call of the store"]++
		w.storage.clients[w.c.Choose("storage/client", len(w.storage.clients))].move(w)
	}
	for n := 1; n < what && n < 3 && !w.dead(); n++ { // a reply comes with the second
		w.round()
	}
	if what == 5 && !f.collects && !w.dead() {
		f.collect(w)
	}
	if f.store != store {
		w.fail("files-restarted", "a process ended within a call of its store")
	}
}

// collect removes the files without rows, as the node does while it takes writes.
func (f *fileWorld) collect(w *World) {
	var s event.Status
	if w.node.Status(&s); s.Writes {
		f.removes(w)
	}
}

func (f *fileWorld) removes(w *World) {
	held, err := f.store.Unpinned()
	if err != nil {
		w.fail("files-pinned", "the directories cannot be held: %v", err)
		return
	}
	f.collects = true
	c, err := f.store.Collect(func(a storage.Address, n storage.File) bool {
		w.note(f.sends(w, a.String()), "files: a collection meets an upload of the same content")
		f.interrupts(w)
		is := w.fol.HasFile(a, n)
		f.interrupts(w)
		return is
	})
	f.collects = false
	_ = held.Close() // nothing was written
	w.note(c.Files > 0, "files: garbage is collected")
	w.note(err != nil, "files: a collection fails")
	f.compare(w)
}

// sends reports whether a client uploads a content.
func (*fileWorld) sends(w *World, content string) bool {
	return slices.ContainsFunc(w.storage.clients, func(c *storageClient) bool { return c.upload != nil && c.want.content == content })
}

// probe tries all providers, and reports what it found to the node.
func (f *fileWorld) probe(w *World) {
	var unreadable, writable placement.Set
	for i := range f.ports {
		read, write := f.store.Probe(i)
		if read != nil {
			unreadable = unreadable.With(i)
		}
		if write == nil {
			writable = writable.With(i)
		}
	}
	f.probed = true
	table, failed := f.store.Table(), 0
	if len(f.ports) > 1 {
		failed = table.Len() - f.store.Usable().Len()
	}
	w.note(failed > 0, "files: a provider has failed")
	f.lacking, f.hasLost = len(f.found) > 0, f.forgetDeleted(w) > 0
	w.step(event.ProviderHealth{Failed: failed, Lacking: f.lacking, Lost: f.hasLost})
	w.step(event.ObjectFiles{Unreadable: table.Spread(unreadable) > f.copies.Losses(), Unwritable: table.Spread(writable) < f.copies.Domains()})
}

// plan plans the repair of an object.
func (f *fileWorld) plan(o storage.Stored, urgent, verify bool) {
	t := taskOf(o)
	t.Urgent, t.Verify = urgent, verify
	f.enqueue(t)
}

func taskOf(o storage.Stored) repair.Task {
	return repair.Task{File: uint64(o.File), Address: digest.Value(o.Address), Size: o.Size}
}

// enqueue plans a task.
func (f *fileWorld) enqueue(t repair.Task) { f.machine.Plan(t) }

// inventory plans the repair of each object that lacks a copy, as far as the names of files say it.
func (f *fileWorld) inventory(w *World) {
	f.machine.BeginInventory()
	settled, moved, harms := f.store.Settled(), f.store.Moved(), f.harms()
	files, err := f.store.Files()
	if err != nil {
		return
	}
	usable := f.store.Usable()
	f.found = nil
	order := repair.InventoryOrder{Limit: fileRepairs, Plan: f.enqueue}
	for _, row := range f.rows(w) {
		has := files.Parts(row)
		is := has.Within(usable)
		if !settled(row.File) || is.Count() >= f.store.Wanted(&is) {
			continue
		}
		if !is.AreEnough() && files.Listed == f.store.Table().All() && usable == f.store.Table().All() && f.store.Moved() == moved {
			f.findsLost(w, row, harms)
		}
		f.found = append(f.found, row)
		order.Add(taskOf(row), is.Count(), is.Needed())
	}
	order.Close()
	w.note(len(f.found) > 0, "files: an inventory finds that copies are missing")
}

// repairs restores the next object.
func (f *fileWorld) repairs(w *World) {
	t, ok := f.machine.Next()
	if !ok {
		return
	}
	machine, failed := f.machine, false
	o := storage.Stored{Address: storage.Address(t.Address), Object: storage.Object{Size: t.Size, File: storage.File(t.File)}}
	if t.Move && w.fol.HasFile(o.Address, o.File) {
		failed = f.moveParts(w, o)
	}
	if w.fol.HasFile(o.Address, o.File) {
		harms, expects := f.harms(), f.expects(o.Address, o.Object)
		r, err := f.store.Restore(o, t.Verify || f.lost.Has(t.File), func(int) error { f.interrupts(w); return nil })
		if err != nil {
			w.fail("files-restore", "without a limit: %v", err)
		}
		failed = failed || r.Lacks
		whole := len(r.Written) > 0 && !r.Lacks && !r.Lost
		w.note(whole, "files: a copy is restored")
		w.note(whole && r.Written[0].Scheme.IsSet(), "shards: a shard is restored")
		w.note(len(r.Written) > 0 && !w.fol.HasFile(o.Address, o.File), "files: an object is deleted while it is repaired")
		if r.Lost && w.fol.HasFile(o.Address, o.File) && (expects == f.harms() && !w.dead() || !f.isBlamed(o.Address, o.File) && !f.isFailing()) {
			w.fail("files-lost", "object %v, file %d, is lost for a repair; good are %b, and blamed %b", o.Address, o.File, f.good(o.Address, o.File), f.blamed(o.Address, o.File))
		}
		switch {
		case r.IsHopeless():
			f.findsLost(w, o, harms)
		case r.Readable:
			f.clears(w, o)
		}
	}
	machine.Done(t.File, failed)
	f.compare(w)
}

// scrubs reads and verifies all copies of one object.
func (f *fileWorld) scrubs(w *World) {
	rows := f.rows(w)
	if len(rows) == 0 {
		return
	}
	f.scrub(w, rows[w.c.Choose("files/row", len(rows))])
}

func (f *fileWorld) scrub(w *World, row storage.Stored) {
	files, err := f.store.Files()
	if err != nil {
		return
	}
	has := files.Parts(row)
	is := has.Within(f.store.Usable())
	good, bad := f.store.NewParts(is.Scheme), 0
	for _, part := range is.List() {
		err := f.store.VerifyPart(row, part, func(int) error { f.interrupts(w); return nil })
		switch {
		case err == nil:
			good.Add(part)
		case !errors.Is(err, objectstore.ErrGone) || w.fol.HasFile(row.Address, row.File):
			bad++
		}
	}
	if good.AreEnough() {
		f.clears(w, row)
	}
	if bad > 0 {
		w.Saw["files: a scrub finds a bad copy"]++
		f.plan(row, good.Count() <= good.Needed() && !f.lost.Has(uint64(row.File)), true)
	}
}

// tends does all that is due for the files, without faults. It is false if the store cannot be opened.
func (f *fileWorld) tends(w *World) bool {
	f.inside = true // nothing is interrupted
	defer func() { f.inside = false }()
	if f.store == nil {
		f.opens(w)
	}
	if f.store == nil && w.fol.HasObjects() && slices.ContainsFunc(f.ports, func(p *fileProvider) bool { return !p.cheats && !p.wiped }) {
		w.fail("files-start", "a start fails, and one provider is well")
	}
	if f.store == nil || f.repaired(w) {
		f.operates(w)
		f.opens(w)
	}
	if f.store == nil {
		return false
	}
	f.probe(w)
	f.inventory(w)
	for _, row := range f.rows(w) {
		f.scrub(w, row)
		for f.machine.Waiting() > 0 {
			f.repairs(w)
		}
	}
	f.inventory(w)
	f.probe(w)
	f.collect(w)
	f.counts(w)
	return true
}

// identityFile is the name of the file that says which node and provider has a directory.
const identityFile = "provider.id"

// repaired probes all providers. It is true if one fails without a fault.
func (f *fileWorld) repaired(w *World) bool {
	f.probe(w)
	return f.store.Usable() != f.all()
}

// operates does what the error of a provider asks an operator to do: its identity is written again. That is only needed if a disk lied about
// it, or all disks are new.
func (f *fileWorld) operates(w *World) {
	all := !slices.ContainsFunc(f.ports, func(p *fileProvider) bool { return !p.wiped })
	for i, p := range f.ports {
		if !p.cheats && !all {
			continue
		}
		w.Saw["files: an operator writes an identity"]++
		text := fmt.Appendf(nil, "macronode provider p%d\njournal %016x\n", i, uint64(w.jour.ID()))
		_ = p.disk.Remove(identityFile) // it may not be there
		id, err := p.disk.Create(identityFile)
		if err == nil {
			_, err = id.WriteAt(text, 0)
			err = errors.Join(err, id.Sync(), id.Close(), p.disk.SyncDir())
		}
		if err != nil {
			w.fail("files-operator", "an operator cannot write an identity: %v", err)
		}
	}
}

// open opens an object as a request does.
func (f *fileWorld) open(w *World, a storage.Address, row storage.Object) (*objectstore.Object, error) {
	return objectio.Open(f.store, a, row, func() (storage.Object, bool) { return w.fol.StoredAs(a) })
}
