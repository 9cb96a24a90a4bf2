package sim

import (
	"fmt"
	"slices"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
	meaning "macronode/models/storage"
)

// storageOracle follows the frames with the reference model of storage and with sums of money. It
// shares no code with the plane. A record that the model refuses is a violated rule.
type storageOracle struct {
	w        *World
	model    *meaning.Store
	files    map[string]uint64         // the file of each content that exists
	recorded map[types.Position]string // what each record of a command does

	holds                   map[types.Position]openHold
	issued, revenue, stored uint64 // minor units; stored: the price of all paid objects
}

// openHold is a hold of the payer.
type openHold struct {
	amount uint64
	until  types.Time
}

func newStorageOracle(w *World) *storageOracle {
	l := w.storage.limits
	return &storageOracle{w: w, files: map[string]uint64{}, recorded: map[types.Position]string{}, holds: map[types.Position]openHold{},
		model: meaning.New(meaning.Limits{Objects: l.Objects, Entries: l.Holdings, Buckets: l.Buckets, Uploads: l.Uploads, Parts: l.Parts,
			TenantBuckets: l.TenantBuckets, TenantUploads: l.TenantUploads, TenantParts: l.TenantParts,
			TenantBytes: l.TenantQuota.Bytes, TenantObjects: l.TenantQuota.Objects, BucketBytes: l.BucketQuota.Bytes, BucketObjects: l.BucketQuota.Objects}, w.storage.contents.sizeOf)}
}

// number identifies a position in the model.
func numberOf(p types.Position) int { return int(p.LSN)<<16 | int(p.Index) }

func bucketNamed(name string) meaning.Bucket {
	return meaning.Bucket{Tenant: storageTenant, Name: name}
}

// frame folds a frame. It returns the record of a command, if the frame has one.
func (o *storageOracle) frame(body []byte) (of *storageRecord, at types.Position) {
	h, rest, err := record.Open(body)
	if err != nil {
		o.w.fail("storage-unreadable", "a frame: %v", err)
		return nil, at
	}
	var r record.Record
	var money []record.Record
	free := true
	for i := range h.Count {
		if rest, err = record.Next(rest, &r); err != nil {
			o.w.fail("storage-unreadable", "%v: %v", h.LSN, err)
			return nil, at
		}
		place := types.Position{LSN: h.LSN, Index: i}
		s, ok, err := readStorageRecord(&r)
		switch {
		case err != nil:
			o.w.fail("storage-unreadable", "%v: %v", place, err)
		case ok:
			if r.Tenant != storageTenant {
				o.w.fail("storage-tenant", "%v is of tenant %d", place, r.Tenant)
			}
			keeps := o.keeps(s.bucket, s.name, s.content)
			if o.folds(place, h.At, &s); !s.isOfNode() {
				of, at, o.recorded[place] = &s, place, s.text()
				free = !s.isPut() || keeps
			}
		case r.Tenant == storageTenant && movesPayer(&r):
			if o.pays(place, h.At, &r); r.Kind == record.HoldCaptured || r.Kind == record.HoldReleased {
				money = append(money, r)
			}
		}
	}
	if of != nil {
		o.settles(at, of, free, money)
	}
	return of, at
}

// isPut reports whether a record makes an object: it has a price.
func (s *storageRecord) isPut() bool {
	return s.kind == recordStored || s.kind == recordKept || s.kind == recordNamed || s.kind == recordCompleted
}

// keeps reports whether a name refers to a content.
func (o *storageOracle) keeps(bucket, name, content string) bool {
	e, held := o.model.Entry(meaning.Name{Bucket: bucketNamed(bucket), Object: name})
	return held && e.Content == content
}

// settles checks that a put and its payment are one frame: a new object is paid, another one is not.
func (o *storageOracle) settles(at types.Position, of *storageRecord, free bool, money []record.Record) {
	price := o.w.storage.priceOf(of.size)
	switch {
	case free || price == 0:
		for i := range money {
			if money[i].Kind == record.HoldCaptured {
				o.w.fail("storage-paid-for-nothing", "%v: %v minor units for what stores nothing new: %s", at, money[i].Amount, of.text())
			}
		}
	case len(money) != 1 || money[0].Kind != record.HoldCaptured || money[0].Amount != types.MinorUnits(price):
		o.w.fail("storage-not-paid", "%v: an object without its price of %d: %s, %d movements", at, price, of.text(), len(money))
	default:
		o.stored += price
	}
}

// movesPayer reports whether a record moves money of the payer: other accounts of the tenant pay for usage.
func movesPayer(r *record.Record) bool {
	return string(r.From.Text) == payer || r.Kind == record.Posted && string(r.To.Text) == payer
}

// pays folds a movement of the payer.
func (o *storageOracle) pays(at types.Position, now types.Time, r *record.Record) {
	switch r.Kind { //nolint:exhaustive // the others are not movements of the payer
	case record.Posted:
		o.issued += r.Amount.Lo
	case record.HoldOpened:
		o.holds[at] = openHold{r.Amount.Lo, r.ExpiresAt}
	case record.HoldCaptured, record.HoldReleased, record.HoldExpired:
		h, open := o.holds[r.Hold.Position()]
		if !open || (r.Kind == record.HoldExpired) != (h.until <= now) {
			o.w.fail("storage-hold", "%v ends a hold, open %v, until %d at %d", at, open, h.until, now)
		}
		if r.Kind == record.HoldCaptured {
			o.revenue += r.Amount.Lo
		}
		delete(o.holds, r.Hold.Position())
	}
}

// folds makes the change of a record on the model, which must accept it.
func (o *storageOracle) folds(at types.Position, now types.Time, s *storageRecord) {
	bucket, want := s.bucket, meaning.Done
	n := meaning.Name{Bucket: bucketNamed(s.bucket), Object: s.name}
	old, _ := o.model.Entry(n)
	id := numberOf(s.upload)
	var got meaning.Outcome
	switch s.kind {
	case recordStored:
		got = o.model.Put(n, numberOf(at))
	case recordKept:
		got, want = o.model.Put(n, numberOf(at)), meaning.Kept
	case recordNamed:
		got = o.model.PutNamed(n, s.content, numberOf(at), meaning.Match{}, false, 0, 0)
	case recordCompleted:
		if u := o.model.Upload(id); u != nil {
			got = o.model.PutNamed(n, s.content, numberOf(at), meaning.Match{}, false, id, u.Revision)
		}
	case recordDeleted, recordRemoved:
		if got = o.model.Delete(n); old.Content != s.content {
			o.w.fail("storage-deletes-another", "%v: %s, it was %.9s", at, s.text(), old.Content)
		}
	case recordBucketCreated:
		got = o.model.CreateBucket(n.Bucket)
	case recordBucketDeleted:
		got = o.model.DeleteBucket(n.Bucket)
	case recordUploadBegun:
		got = o.model.Begin(numberOf(at), n, now)
	case recordPartPut:
		got = o.model.PutPart(id, n, int(s.number), s.content, false)
	case recordAborted, recordPartsRemoved:
		bucket, got = o.ends(now, s)
	}
	if got != want {
		o.w.fail("storage-model-refuses", "%v: %s: %q, want %q", at, s.text(), got, want)
		return
	}
	o.agreesWith(at, s, bucket)
}

// ends makes the end of an upload, or the removal of its parts, on the model. It returns the bucket.
func (o *storageOracle) ends(now types.Time, s *storageRecord) (bucket string, got meaning.Outcome) {
	id := numberOf(s.upload)
	u := o.model.Upload(id)
	if u == nil {
		return "", meaning.NotFound
	}
	bucket = u.Name.Bucket.Name
	if s.kind == recordAborted {
		if s.bucket == "" {
			if o.w.Saw["an upload expires"]++; now < u.Begun+types.Time(o.w.storage.limits.UploadTTL.Milliseconds()) {
				return bucket, meaning.Stale
			}
		}
		return bucket, o.model.Abort(id, u.Name)
	}
	if !u.Ended {
		return bucket, meaning.Precondition
	}
	if slices.ContainsFunc(u.Parts, func(p meaning.Part) bool { return p.Number < int(s.number) }) {
		return bucket, meaning.Stale // they were to be removed before
	}
	o.w.Saw["parts of an ended upload are removed"]++
	if u.Parts = slices.DeleteFunc(u.Parts, func(p meaning.Part) bool { return p.Number < int(s.upto) }); len(u.Parts) > 0 {
		o.w.Saw["the removal of parts needs another record"]++
		return bucket, meaning.Done
	}
	o.model.Uploads = slices.DeleteFunc(o.model.Uploads, func(u meaning.Upload) bool { return u.ID == id })
	return bucket, meaning.Done
}

// agreesWith compares the usage that a record says with the sums of the model, and the file of its content.
func (o *storageOracle) agreesWith(at types.Position, s *storageRecord, bucket string) {
	var all, one usage
	all.bytes, all.objects = o.model.Usage(bucketNamed(""))
	one.bytes, one.objects = o.model.Usage(bucketNamed(bucket))
	if s.tenantUsage != all || s.bucketed != one {
		o.w.fail("storage-usage", "%v: %s: the record says %v and %v, the sums are %v and %v", at, s.text(), s.tenantUsage, s.bucketed, all, one)
	}
	if s.isPut() || s.kind == recordPartPut {
		if was, known := o.files[s.content]; known && was != s.file && o.w.storage.files == nil || s.file == 0 || s.size != o.w.storage.contents.sizeOf(s.content) {
			o.w.fail("storage-file", "%v: %s has file %d of %d bytes, it was in file %d", at, s.text(), s.file, s.size, was)
		}
		o.files[s.content] = s.file
	}
	there := map[string]bool{}
	for _, c := range o.model.Contents() {
		there[c] = true
	}
	for c := range o.files { //nolint:maporder // removes what is not there
		if !there[c] {
			delete(o.files, c)
		}
	}
}

// predict returns what becomes of a command if it is decided now.
func (o *storageOracle) predict(a *storageAsk, paid bool) event.Problem {
	n := meaning.Name{Bucket: bucketNamed(a.bucket), Object: a.name}
	keeps := o.keeps(a.bucket, a.name, a.content)
	if (a.kind == askPut || a.kind == askPutNamed) && o.w.storage.price > 0 && !paid && !keeps {
		return event.PaymentRequired
	}
	m, id := o.model.Clone(), numberOf(a.upload)
	var got meaning.Outcome
	switch a.kind {
	case askPut:
		got = m.Put(n, 1)
	case askPutNamed:
		got = m.PutNamed(n, a.content, 1, meaning.Match{Absent: a.absent, Put: numberOf(a.match)}, a.copied, id, int(a.revision))
	case askDelete:
		got = m.Delete(n)
	case askCreateBucket:
		got = m.CreateBucket(n.Bucket)
	case askDeleteBucket:
		got = m.DeleteBucket(n.Bucket)
	case askBegin:
		got = m.Begin(1, n, 0)
	case askPart:
		got = m.PutPart(id, n, int(a.number), a.content, a.copied)
	case askAbort:
		got = m.Abort(id, n)
	}
	return map[meaning.Outcome]event.Problem{meaning.Done: event.None, meaning.Kept: event.None, meaning.NotFound: event.NotFound,
		meaning.Precondition: event.PreconditionFailed, meaning.Stale: event.InProgress, meaning.Quota: event.QuotaExceeded, meaning.Capacity: event.CapacityExceeded}[got]
}

// asksFor returns why a record is not what a command asks for; empty: it is.
func (a *storageAsk) asksFor(s *storageRecord) string {
	kinds := map[askKind][]int{askPut: {recordStored, recordKept}, askPutNamed: {recordNamed}, askDelete: {recordDeleted, recordRemoved},
		askCreateBucket: {recordBucketCreated}, askDeleteBucket: {recordBucketDeleted}, askBegin: {recordUploadBegun}, askPart: {recordPartPut}, askAbort: {recordAborted}}[a.kind]
	if a.kind == askPutNamed && a.upload.LSN > 0 {
		kinds = []int{recordCompleted}
	}
	ok := false
	for _, k := range kinds {
		ok = ok || k == s.kind
	}
	content := a.content == s.content || a.kind != askPut && a.kind != askPutNamed && a.kind != askPart
	if ok && content && a.bucket == s.bucket && (a.name == s.name || a.name == "") && a.upload == s.upload && a.number == s.number {
		return ""
	}
	return fmt.Sprintf("asked %+v, recorded %s", *a, s.text())
}
