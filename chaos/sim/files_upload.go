package sim

import (
	"context"
	"errors"
	"slices"

	"macronode/adapters/objectio"
	"macronode/adapters/objectstore"
	"macronode/chaos/world"
	"macronode/core/coding"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/placement"
	"macronode/core/storage"
)

// A fileUpload is the upload of a content, before its command is submitted.
type fileUpload struct {
	f        *fileWorld
	up       *objectstore.Upload
	file     storage.File
	rest     []byte // not written yet
	written  bool
	summed   bool
	durable  bool
	ready    bool
	replaces bool // the content is there, and its file is damaged
}

// needsFile reports whether a command brings a content.
func (a *storageAsk) needsFile() bool {
	return (a.isPut() || a.kind == askPart) && !a.copied
}

// uploads carries out the next part of the upload of what a client wants. It returns the upload when its file is durable; then the
// command may be submitted.
func (f *fileWorld) uploads(w *World, c *storageClient) *fileUpload {
	u := c.upload
	if u == nil {
		if u = f.begins(w, c.want); u == nil {
			return nil
		}
		c.upload = u
	}
	for !u.ready {
		if err := u.advance(w, c.want); err != nil {
			f.failed(w, c, err)
			return nil
		}
		if u.f.store == nil || !u.ready && w.c.Choose("files/pause", 4) == 1 {
			return nil
		}
	}
	return u
}

// begins begins an upload, unless there are too many.
func (f *fileWorld) begins(w *World, a *storageAsk) *fileUpload {
	if f.store == nil {
		return nil
	}
	up, err := f.store.Begin(storageTenant)
	if err != nil {
		w.Saw["files: too many uploads"]++
		return nil
	}
	u := &fileUpload{f: f, up: up, file: up.File(), rest: f.of[a.content].bytes}
	up.Expect(uint64(len(u.rest)))
	for _, row := range f.rows(w) {
		if row.File == u.file {
			w.fail("files-number", "upload %d begins, and is the file of %v", u.file, row.Address)
		}
	}
	f.writing[u.file] = true
	delete(f.known, fileKey{w.storage.contents.addressOf(a.content), u.file}) // a number that a process used before, of which nothing is left, may be used again
	return u
}

// advance carries out the next part of an upload, and checks the choice of providers that it may make: it does not fail for lack of space while
// as many as are required have room. Nothing else happens meanwhile.
func (u *fileUpload) advance(w *World, a *storageAsk) error {
	f, c := u.f, u.f.of[a.content]
	begins, full := !f.hasFiles(u.file), placement.Set(0)
	for i, h := range f.store.Health() {
		if h.Failed != "" || h.Full != "" || f.ports[i].disk.Room() < fileReserve+4<<20+int64(c.largest()) {
			full = full.With(i)
		}
	}
	err := u.next(w, a)
	_, required := f.wanted(&c)
	if lacks := errors.Is(err, objectstore.ErrNoSpace) || errors.Is(err, world.ErrFull); lacks && begins && len(f.ports)-full.Len() >= required {
		w.fail("files-space", "upload %d of %v has no space, although %d providers are required, and only %b of %d have none: %v", u.file, a.content, required, full, len(f.ports), err)
	}
	w.note(err == nil && begins && full != 0 && f.hasFiles(u.file), "files: an upload passes over a full provider")
	return err
}

// hasFiles reports whether there are files of a number.
func (f *fileWorld) hasFiles(n storage.File) bool {
	return slices.ContainsFunc(f.ports, func(p *fileProvider) bool {
		return slices.ContainsFunc(p.disk.Names(), func(name string) bool {
			is, ok := fileNumber(name)
			return ok && is == n
		})
	})
}

// largest returns the size of the largest file of an object.
func (c *fileContent) largest() int {
	if c.coded == nil {
		return len(c.file)
	}
	return c.coded.Stripes()*(digest.Group+coding.ChecksumLen) + len(c.nodes())
}

// next is the next part of an upload.
func (u *fileUpload) next(w *World, a *storageAsk) (err error) {
	switch {
	case !u.written:
		n := len(u.rest) >> w.c.Choose("files/portion", 3)
		_, err = u.up.Write(u.rest[:n])
		u.rest = u.rest[n:]
		u.written = n == 0 || len(u.rest) == 0
		if n == 0 {
			_, err = u.up.Write(u.rest)
		}
	case !u.summed:
		var sum storage.Address
		if sum, err = u.up.Sum(); err == nil && sum.String() != a.content {
			w.fail("files-address", "upload %d has the address %v, its content %s", u.file, sum, a.content)
		}
		u.summed = true
	case !u.durable:
		err = u.up.Store(w.storage.contents.addressOf(a.content))
		u.durable = true
	default:
		address := w.storage.contents.addressOf(a.content)
		if row, known := w.fol.StoredAs(address); known {
			u.replaces = objectio.CheckIntact(context.Background(), u.f.store, address, row) != nil
			w.note(u.replaces, "files: an upload replaces a damaged file")
			w.note(!u.replaces, "files: a content is there already")
		}
		u.ready = true
	}
	return err
}

// failed ends an upload that could not be written. Its client tries again, or gives up.
func (f *fileWorld) failed(w *World, c *storageClient, err error) {
	w.Saw["files: an upload fails"]++
	w.tell(clients, disk, trouble, "storage client %d: %v", c.number, err)
	c.upload.drop()
	c.upload = nil
	switch {
	case c.hold.Position().LSN > 0:
		c.cancels = true
	case w.c.Choose("files/again", 3) == 1:
		c.ends()
	}
}

// drop ends an upload without a command.
func (u *fileUpload) drop() {
	if u != nil {
		u.up.Done()
		delete(u.f.writing, u.file)
	}
}

// answered ends an upload with the reply to its command.
func (f *fileWorld) answered(w *World, a *storageAttempt, r event.Reply) {
	if a == nil || a.upload == nil {
		return
	}
	u := a.upload
	a.upload = nil
	if r.Problem == event.OutcomeUnknown {
		w.Saw["files: an upload with an unknown outcome is kept"]++
		u.up.Keep()
		return
	}
	if r.Problem == event.None {
		f.acknowledged(w, a.ask.content, u)
	}
	u.up.Done()
	delete(f.writing, u.file)
}
