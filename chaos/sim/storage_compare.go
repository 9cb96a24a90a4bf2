package sim

import (
	"slices"

	"macronode/core/digest"
	"macronode/core/state"
	"macronode/core/storage"
	"macronode/core/types"
	meaning "macronode/models/storage"
)

// buckets and names of objects.
var (
	storageBuckets = [...]string{"one", "two", "six"}
	storageNames   = [...]string{"x", "y", "z"}
)

// entryOf returns the content that the name of a has; empty: none.
func (o *storageOracle) entryOf(a *storageAsk) string {
	e, _ := o.model.Entry(meaning.Name{Bucket: bucketNamed(a.bucket), Object: a.name})
	return e.Content
}

// compare compares a state with the model and the sums.
func (o *storageOracle) compare(w *World, st *state.State) {
	p, _ := st.Plane(types.PlaneStorage).(*storage.Plane)
	for _, bucket := range storageBuckets {
		id := storage.Bucket(bucket).ID
		o.compareUsage(p, bucket, id)
		if has := o.model.HasBucket(bucketNamed(bucket)); has != p.HasBucket(storageTenant, id) {
			w.fail("storage-state", "bucket %s exists: %v, want %v", bucket, !has, has)
		}
		for _, name := range slices.Concat(storageNames[:], o.w.storage.contents.texts) {
			want, held := o.model.Entry(meaning.Name{Bucket: bucketNamed(bucket), Object: name})
			e, has := p.Entry(storageTenant, id, storage.ObjectName(name).ID)
			if held != has || held && (want.Content != e.Address.String() || want.Put != numberOf(e.At)) {
				w.fail("storage-state", "%s/%s is %v of %v, want %.9s of %d, held %v", bucket, name, e.Address, e.At, want.Content, want.Put, held)
			}
		}
	}
	o.compareUsage(p, "", types.NameHash{})
	for i, content := range o.w.storage.contents.texts {
		object, has := p.Find(o.w.storage.contents.addresses[i])
		if file := o.files[content]; uint64(object.File) != file || has != (file > 0) {
			w.fail("storage-state", "content %.9s is in file %d, want %d", content, object.File, file)
		}
	}
	o.compareUploads(w, p)
	o.compareMoney(w, st)
}

func (o *storageOracle) compareUsage(p *storage.Plane, bucket string, id types.NameHash) {
	bytes, objects := o.model.Usage(bucketNamed(bucket))
	if got := p.Usage(storageTenant, id); got != (storage.Usage{Bytes: bytes, Objects: objects}) {
		o.w.fail("storage-state", "usage of %q is %v, the sum is %d bytes of %d objects", bucket, got, bytes, objects)
	}
}

func (o *storageOracle) compareUploads(w *World, p *storage.Plane) {
	parts := 0
	for i := range o.model.Uploads {
		u := &o.model.Uploads[i]
		parts += len(u.Parts)
		id := storage.UploadID{LSN: types.LSN(u.ID >> 16), Index: uint16(u.ID)}
		row, open := p.Upload(storageTenant, storage.Bucket(u.Name.Bucket.Name).ID, storage.ObjectName(u.Name.Object).ID, id)
		if open == u.Ended || open && (int(row.Revision) != u.Revision || len(p.Parts(id, 0, 9)) != len(u.Parts)) {
			w.fail("storage-state", "upload %v: open %v, %d parts, revision %d, want %+v", id, open, len(p.Parts(id, 0, 9)), row.Revision, *u)
		}
	}
	if gotUploads, gotParts := p.Uploads(); gotUploads != len(o.model.Uploads) || gotParts != parts {
		w.fail("storage-state", "%d uploads and %d parts, want %d and %d", gotUploads, gotParts, len(o.model.Uploads), parts)
	}
}

// compareMoney compares the balances with the sums: what was captured is the price of what was stored.
func (o *storageOracle) compareMoney(w *World, st *state.State) {
	if w.storage.price == 0 {
		return
	}
	held := uint64(0)
	for _, h := range o.holds { //nolint:maporder // a sum
		if h.until > st.At {
			held += h.amount
		}
	}
	asset := digest.Name([]byte("EUR/2"))
	has, isHeld, _ := st.Wallet.Balance(st.At, storageTenant, digest.Name([]byte(payer)), asset)
	got, _, _ := st.Wallet.Balance(st.At, storageTenant, digest.Name([]byte(beneficiary)), asset)
	if o.revenue != o.stored || has != types.MinorUnits(o.issued-o.revenue) || isHeld != types.MinorUnits(held) || got != types.MinorUnits(o.revenue) {
		w.fail("storage-money", "issued %d, captured %d, stored for %d, held %d; the payer has %v, of which %v is held, the beneficiary %v",
			o.issued, o.revenue, o.stored, held, has, isHeld, got)
	}
}
