package objectstore

import (
	"context"
	"sync"

	"macronode/adapters/fs"
	"macronode/core/digest"
	"macronode/core/storage"
)

// Store makes the content durable under its address, which Sum has returned. Afterwards a row may name the file.
func (u *Upload) Store(a storage.Address) error { return u.commit(a, true) }

// commit makes the content durable and gives it its name, which is durable after the directory is synced as well.
func (u *Upload) commit(a storage.Address, syncDir bool) error {
	u.address = a
	if u.isSmall {
		u.writeSmall()
	}
	if len(u.targets) == 1 {
		u.each(func(u *Upload, t *target) error { return u.finish(t, syncDir) })
	} else if u.err == nil {
		_ = finishing{u, syncDir}.Run(context.Background()) // the errors are those of the targets
		u.settle()
	}
	u.stored = u.err == nil
	return u.err
}

// finishing makes the copies of an upload durable, all at once.
type finishing struct {
	*Upload
	syncDir bool
}

// Run returns when each copy is durable or has failed.
func (f finishing) Run(context.Context) error {
	var all sync.WaitGroup
	for i := range f.targets {
		if t := &f.targets[i]; t.err == nil {
			all.Go(func() { t.err = t.note(f.finish(t, f.syncDir)) })
		}
	}
	all.Wait()
	return nil
}

// layout returns the layout of the files.
func (u *Upload) layout() layout {
	switch {
	case u.separate:
		return separateNodes
	case len(u.pending) > 0:
		return appendedNodes
	}
	return noNodes
}

// contentName returns the name of the file with the content of a target, and nodesName that of the one with its nodes.
func (u *Upload) contentName(t *target) string {
	if u.scheme.IsSet() {
		return shardName(u.address, u.file, u.scheme, t.shard)
	}
	return name(u.address, u.file) + u.layout().suffix()
}

func (u *Upload) nodesName(t *target) string {
	if u.scheme.IsSet() {
		return u.contentName(t) + nodesSuffix
	}
	return name(u.address, u.file) + nodesSuffix
}

// finish makes one copy durable and gives it its name.
func (u *Upload) finish(t *target, syncDir bool) error {
	for _, f := range [...]fs.File{t.nodes, t.data} {
		if f != nil {
			if err := f.Sync(); err != nil {
				return err
			}
		}
	}
	if !t.isNamed {
		if err := u.nameFiles(t); err != nil {
			return err
		}
	}
	t.isComplete = true
	if !syncDir {
		return nil
	}
	return t.Port.Flush()
}

// nameFiles makes files of the drafts of a copy.
func (u *Upload) nameFiles(t *target) error {
	if err := u.store.checkPlace(t.member); err != nil {
		return err
	}
	if t.nodes != nil {
		if err := u.publish(t, number(u.file)+nodesSuffix+partSuffix, u.nodesName(t)); err != nil {
			return err
		}
	}
	return u.publish(t, number(u.file)+partSuffix, u.contentName(t))
}

// publish gives a file its name.
func (u *Upload) publish(t *target, draft, name string) error {
	if u.replaces {
		return t.Port.Replace(draft, name)
	}
	return t.Port.Put(draft, name)
}

// Done ends the upload after its outcome is known. A file that no row names is removed by the collector;
// one without an address at once. An object that lacks copies is reported.
func (u *Upload) Done() {
	u.close()
	good := 0
	for i := range u.targets {
		t := &u.targets[i]
		u.removeFailed(t)
		if t.err == nil {
			good++
		}
	}
	s := u.store
	s.mu.Lock()
	delete(s.uploads, u.file)
	if s.tenants[u.tenant]--; s.tenants[u.tenant] == 0 {
		delete(s.tenants, u.tenant)
	}
	s.mu.Unlock()
	u.freeNodes()
	if !u.silent && isFull(u.err) {
		s.refused.Store(new(oneLine(u.err.Error())))
	}
	if u.stored && !u.silent && good < s.wanted(u.scheme) {
		s.defect(storage.Stored{Address: u.address, Object: storage.Object{Size: u.Size(), File: u.file}})
	}
}

// removeFailed removes the files of a copy that has no address, or is not durable while another one is.
func (u *Upload) removeFailed(t *target) {
	if t.isComplete && (t.err == nil || u.err != nil) {
		return
	}
	if t.isComplete || t.isNamed && t.data != nil {
		_ = t.left.remove(t.Port, u.contentName(t)) // the next probe tries again
		if t.nodes != nil {
			_ = t.left.remove(t.Port, u.nodesName(t))
		}
		return
	}
	// A draft that cannot be removed is left to the collector.
	if t.data != nil {
		_ = t.Port.Remove(number(u.file) + partSuffix)
	}
	if t.nodes != nil {
		_ = t.Port.Remove(number(u.file) + nodesSuffix + partSuffix)
	}
}

// Keep ends the upload whose outcome is unknown: a row may name its file later. The file is not collected
// before the next start, and the upload counts against the limit until then.
func (u *Upload) Keep() {
	u.close()
	u.freeNodes()
	u.store.mu.Lock()
	defer u.store.mu.Unlock()
	u.store.kept[u.file] = true
}

// freeNodes gives the buffer of the nodes back. The names of the files depend on how many nodes there are.
func (u *Upload) freeNodes() {
	if u.nodes != nil {
		groups.Put(u.nodes)
		u.nodes = nil
	}
	u.pending = nil
}

func (u *Upload) close() {
	switch {
	case u.stripe != nil:
		u.stripe.free()
		u.stripe = nil
	case u.group != nil:
		groups.Put((*[digest.Group]byte)(u.group))
	}
	u.group = nil
	for i := range u.targets {
		for _, f := range [...]fs.File{u.targets[i].data, u.targets[i].nodes} {
			if f != nil {
				_ = f.Close() // what must be durable was synced before
			}
		}
	}
}
