package sim

import (
	"fmt"
	"slices"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/storage"
	"macronode/core/types"
)

// askKind is a command of storage.
type askKind int

const (
	askPut askKind = iota // under its address
	askPutNamed
	askDelete
	askCreateBucket
	askDeleteBucket
	askBegin
	askPart
	askAbort
)

// A storageAsk is what a client wants, however often it has to ask.
type storageAsk struct {
	kind         askKind
	bucket, name string
	content      string
	absent       bool           // If-None-Match
	match        types.Position // If-Match
	copied       bool           // the content is that of an object that exists
	upload       types.Position
	number       uint16 // of a part
	revision     uint32 // of the upload when its parts were read
	unpaid       bool   // does not pay
	keyed        bool   // has an idempotency key
}

// storageStep is the next command of a client: a write with a price has several.
type storageStep int

const (
	stepCommand storageStep = iota
	stepIssue               // money for the payer
	stepReserve
	stepCancel
)

// A storageClient makes one request at a time, and repeats it until it has the outcome.
type storageClient struct {
	number  int
	want    *storageAsk
	out     types.Ticket // called, not answered; 0: none
	doubts  bool         // the outcome of an attempt is unknown
	key     string       // of the current step, until it has an outcome
	step    storageStep  // of key
	hold    types.TxID   // of the price; zero: nothing is reserved
	funds   uint64       // of the issue
	cancels bool         // the put failed: the hold must be released
	upload  *fileUpload  // of the content, if objects have files
}

// A storageAttempt is one submitted command.
type storageAttempt struct {
	client   *storageClient
	step     storageStep
	ask      *storageAsk // nil: a step that only moves money
	paid     bool
	hold     types.TxID
	size     uint64        // of the object
	upload   *fileUpload   // of its content; nil: there are no files, or none is needed
	want     event.Problem // what the oracle predicts
	late     bool          // the hold was not active any more when it was decided
	replaces bool          // the name had another content
	recorded types.Position
}

// move makes a request, repeats it, or leaves.
func (c *storageClient) move(w *World) {
	switch {
	case c.out != 0 && w.odd("storage/leave", 24, w.odds.leave):
		w.late = append(w.late, event.Cancel{Ticket: c.out})
		w.promise.left[c.out] = true
		delete(w.storage.sent, c.out)
		c.upload = nil // it ends with the command
		c.unknown()
		c.out = 0
	case c.out != 0:
	case c.want == nil:
		if c.want = c.wish(w); w.c.Choose("storage/later", 3) != 1 {
			c.ask(w)
		}
	case w.c.Choose("storage/gives-up", 16) == 1:
		c.ends()
	case c.hold != (types.TxID{}) && !c.cancels && w.c.Choose("storage/slow", 6) == 1: // the upload takes long
		w.pass(holdTTL)
	default:
		c.ask(w)
	}
}

// ends ends a request. A hold that is left expires.
func (c *storageClient) ends() {
	c.want, c.doubts, c.key, c.hold, c.cancels = nil, false, "", types.TxID{}, false
	c.upload.drop()
	c.upload = nil
}

// unknown notes that the outcome of the current attempt is unknown. A hold may be used.
func (c *storageClient) unknown() {
	if c.doubts = true; c.key == "" {
		c.hold = types.TxID{}
	}
}

// wish draws a request.
func (c *storageClient) wish(w *World) *storageAsk {
	s := w.storage
	a := &storageAsk{bucket: storageBuckets[[...]int{0, 1, 0, 1, 0, 1, 0, 2}[w.c.Choose("storage/bucket", 8)]], name: storageNames[w.c.Choose("storage/name", 4)%3],
		content: s.contents.texts[w.c.Choose("storage/content", len(s.contents.texts))]}
	what := w.c.Choose("storage/what", 20)
	if exists := w.fol.HasBucket(storageTenant, storage.Bucket(a.bucket).ID); !exists && what > 2 {
		what = 9
	}
	if len(s.uploads) == 0 && what > 12 {
		what = 12
	}
	if what > 12 {
		a.of(w, s.uploads[w.c.Choose("storage/upload", len(s.uploads))])
	}
	switch {
	case what == 0:
		a.kind, a.name = askPut, a.content
	case what < 6:
		a.kind = askPutNamed
		a.conditions(w)
	case what == 6:
		a.kind, a.copied = askPutNamed, true
	case what < 9:
		a.kind, a.content = askDelete, ""
		if w.c.Choose("storage/native", 3) == 1 {
			a.name = s.contents.texts[w.c.Choose("storage/content", len(s.contents.texts))]
		}
	case what < 11:
		a.kind, a.name, a.content = askCreateBucket, "", ""
	case what == 11:
		a.kind, a.name, a.content = askDeleteBucket, "", ""
	case what == 12:
		a.kind, a.content = askBegin, ""
	case what < 16:
		a.kind, a.number, a.copied = askPart, partNumbers[w.c.Choose("storage/part", len(partNumbers))], w.c.Choose("storage/copied", 4) == 1
	case what < 19:
		a.kind = askPutNamed
	default:
		a.kind, a.content = askAbort, ""
	}
	a.unpaid = w.c.Choose("storage/unpaid", 8) == 1
	a.keyed = s.price == 0 && a.upload.LSN == 0 && w.c.Choose("storage/keyed", 4) == 1
	return a
}

// of makes a concern an upload, as far as the client has read it.
func (a *storageAsk) of(w *World, u storageUpload) {
	a.bucket, a.name, a.upload = u.bucket, u.name, u.id
	row, _ := w.fol.Upload(storageTenant, storage.Bucket(u.bucket).ID, storage.ObjectName(u.name).ID, storage.UploadID(u.id))
	a.revision = row.Revision
}

// conditions draws a condition on the entry that is replaced.
func (a *storageAsk) conditions(w *World) {
	switch w.c.Choose("storage/match", 4) {
	case 1:
		a.absent = true
	case 2:
		e, _ := w.fol.Entry(storageTenant, storage.Bucket(a.bucket).ID, storage.ObjectName(a.name).ID)
		a.match = e.At
	}
}

// partNumbers are those of parts: the removal of the last needs a second record.
var partNumbers = [...]uint16{1, 2, 65}

// isPut reports whether a makes an object, which may have a price.
func (a *storageAsk) isPut() bool { return a.kind == askPut || a.kind == askPutNamed }

// next returns the next step of a request.
func (c *storageClient) next(w *World) storageStep {
	a := c.want
	switch {
	case c.key != "":
		return c.step
	case w.storage.price == 0 || !a.isPut() || a.unpaid:
		return stepCommand
	case c.cancels:
		return stepCancel
	case c.hold != types.TxID{}:
		return stepCommand
	}
	b := w.fol.Balance(storageTenant, []byte(payer), []byte("EUR/2"))
	if b.Available.Less(types.MinorUnits(w.storage.priceOf(w.storage.contents.sizeOf(a.content)))) && w.c.Choose("storage/poor", 4) != 1 {
		return stepIssue
	}
	return stepReserve
}

// ask submits the next command.
func (c *storageClient) ask(w *World) {
	s := w.storage
	if c.doubts && c.key == "" && w.c.Choose("storage/looks", 2) == 1 && c.finds(w) {
		c.ends()
		return
	}
	a := &storageAttempt{client: c, step: c.next(w), size: s.contents.sizeOf(c.want.content)}
	if a.step == stepCommand && s.files != nil && c.want.needsFile() {
		if a.upload = s.files.uploads(w, c); a.upload == nil {
			return
		}
	}
	if c.step = a.step; c.key == "" && (a.step != stepCommand || c.want.keyed) {
		s.serial++
		c.key = fmt.Sprintf("s%d", s.serial)
		if c.funds = issueAmounts[0]; a.step == stepIssue {
			c.funds = issueAmounts[w.c.Choose("storage/funds", len(issueAmounts))]
		}
	}
	head := w.headOf(c.key)
	var in event.Event
	switch a.step {
	case stepIssue:
		r := &event.Request{Header: head, Item: event.Item{Op: event.Issue, To: name(payer), Asset: name("EUR/2"), Amount: types.MinorUnits(c.funds)}}
		r.Seal(nil)
		in = r
	case stepReserve:
		in = &event.Execute{Command: &flow.Reserve{Header: head, Size: a.size}}
	case stepCancel:
		in = &event.Execute{Command: &flow.Cancel{Header: head, Hold: c.hold}}
	case stepCommand:
		a.ask, a.hold, a.paid = c.want, c.hold, c.hold != types.TxID{}
		in = &event.Execute{Command: c.command(w, head, a)}
	}
	c.out = head.Ticket
	s.sent[c.out], s.attempts[c.out], s.enter = a, a, append(s.enter, in)
	w.tell(clients, noLane, plain, "storage client %d: %T", c.number, in)
}

// finds reports whether the read model has what a client does not know the outcome of.
func (c *storageClient) finds(w *World) bool {
	a := c.want
	e, has := w.fol.Entry(storageTenant, storage.Bucket(a.bucket).ID, storage.ObjectName(a.name).ID)
	found := a.isPut() && has && e.Address.String() == a.content && a.upload.LSN == 0
	if found {
		w.Saw["a put with an unknown outcome is found"]++
	}
	return found
}

// command returns the command of an attempt.
func (c *storageClient) command(w *World, h command.Header, at *storageAttempt) command.Command {
	a, s := at.ask, w.storage
	bucket, object, upload := storage.Bucket(a.bucket), storage.ObjectName(a.name), storage.UploadID(a.upload)
	address, size := storage.Address{}, uint64(0)
	if i := slices.Index(s.contents.texts, a.content); i >= 0 {
		address, size = s.contents.addresses[i], s.contents.sizeOf(a.content)
	}
	s.file++
	file, replace := s.file, false
	if at.upload != nil {
		file, replace = at.upload.file, at.upload.replaces
	}
	if a.copied {
		file = 0
	}
	native := slices.Contains(s.contents.texts, a.name)
	switch a.kind {
	case askDelete:
		d := &storage.Delete{Header: h, Bucket: bucket, Name: object}
		if i := slices.Index(s.contents.texts, a.name); i >= 0 {
			d.Name, d.Address = types.Name{}, s.contents.addresses[i]
		}
		d.Seal()
		return d
	case askCreateBucket:
		return &storage.CreateBucket{Header: h, Bucket: bucket}
	case askDeleteBucket:
		return &storage.DeleteBucket{Header: h, Bucket: bucket}
	case askBegin:
		return &storage.BeginUpload{Header: h, Bucket: bucket, Name: object}
	case askPart:
		return &storage.PutPart{Header: h, Bucket: bucket, Name: object, Upload: upload, Number: a.number, Address: address, Size: size, File: file, Replace: replace}
	case askAbort:
		return &storage.AbortUpload{Header: h, Bucket: bucket, Name: object, Upload: upload}
	case askPut, askPutNamed:
	}
	put := storage.Put{Header: h, Bucket: bucket, Name: object, Address: address, Size: size, File: file, Replace: replace, Upload: upload, Revision: a.revision,
		Match: storage.Match{Absent: a.absent, At: a.match}}
	if native {
		put.Name = types.Name{}
	}
	put.Seal()
	if !at.paid {
		return &put
	}
	s.serial++
	paid := &flow.PaidPut{Put: put, Hold: at.hold, Key: types.Name{Text: fmt.Appendf(nil, "s%d", s.serial)}}
	paid.Seal()
	return paid
}
