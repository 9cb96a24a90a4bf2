package storage

import (
	"macronode/core/record"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// Details is what the record of an entry or an upload says beside its row. Its texts are views of the
// record.
type Details struct {
	Bucket []byte
	Name   []byte // empty: the object is stored under its address
	ETag   ETag   // of an object with a name
	Meta   []byte
	At     types.Time // of the record
}

// ReadDetails reads the record at an index of a body. Its error is ErrNoAnswer of core/wallet/receipt if
// that is the record of no entry and no upload.
func ReadDetails(body []byte, index uint16) (d Details, err error) {
	var r record.Record
	h, err := record.Read(body, index, &r)
	if err != nil {
		return d, err
	}
	m, ok := parse(&r)
	if !ok {
		return d, receipt.ErrNoAnswer
	}
	switch m.kind {
	case kindStored, kindNamed, kindCompleted, kindUploadBegun:
		return Details{Bucket: m.bucket, Name: m.name, ETag: m.etag, Meta: m.meta, At: h.At}, nil
	}
	return d, receipt.ErrNoAnswer
}

// A ChangeKind is what a record changes of the names of buckets, objects and uploads.
type ChangeKind uint8

const (
	NoChange      ChangeKind = iota
	EntryPut                 // an object has the name
	EntryRemoved             // no object has the name
	BucketCreated            //
	BucketDeleted            //
	UploadBegun              //
	UploadEnded              // without an object
)

// A Change is what an index of names learns from a record. Its texts are views of the record.
type Change struct {
	Kind    ChangeKind
	Tenant  types.Tenant
	Bucket  []byte // empty if the node itself ended the upload
	Name    []byte
	Address Address
	Size    uint64
	ETag    ETag
	Upload  UploadID // UploadEnded, and EntryPut if an upload became the object
	First   bool     // EntryPut: the bucket was empty, and exists without having been created
}

// ReadChange returns what r, the record at a position, changes. NoChange is the kind of a record that
// changes no name.
func ReadChange(at types.Position, r *record.Record) (c Change) {
	m, ok := parse(r)
	if !ok {
		return c
	}
	c = Change{Tenant: r.Tenant, Bucket: m.bucket, Name: m.name, Address: m.address, Size: m.size, ETag: m.etag, Upload: m.upload}
	if !hasNames(m.kind) {
		c.Name, _ = m.address.AppendText(nil)
	}
	switch m.kind {
	case kindStored:
		c.Kind, c.First = EntryPut, m.bucketUsage.Objects == 1
	case kindNamed, kindCompleted:
		c.Kind = EntryPut
	case kindDeleted, kindRemoved:
		c.Kind = EntryRemoved
	case kindBucketCreated:
		c.Kind = BucketCreated
	case kindBucketDeleted:
		c.Kind = BucketDeleted
	case kindUploadBegun:
		c.Kind, c.Upload = UploadBegun, UploadID(at)
	case kindAborted:
		c.Kind = UploadEnded
	}
	return c
}
