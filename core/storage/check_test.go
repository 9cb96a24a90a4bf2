package storage

import (
	"errors"
	"macronode/core/command"
	"testing"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/types"
)

// script decides commands on a plane, each in a frame of its own.
type script struct {
	*testing.T
	plane *Plane
	at    types.Position
	rec   record.Record
}

func (s *script) Record() *record.Record { return &s.rec }
func (s *script) Savepoint()             {}
func (s *script) Undo()                  {}
func (s *script) Commit()                {}
func (s *script) FindRef(types.Tenant, types.NameHash, command.PriorOutcome) (command.PriorOutcome, bool) {
	return command.PriorOutcome{}, false
}

func (s *script) Add() types.Position {
	if !s.plane.Fits(&s.rec) {
		s.Fatalf("%v does not fit", s.rec.Kind)
	}
	s.plane.Apply(types.Time(s.at.LSN), types.NewTxID(1, s.at), &s.rec)
	return s.at
}

var _ plane.Frame = (*script)(nil)

// do decides a command and returns the position of its record.
func (s *script) do(c interface {
	Plane() types.Plane
	ValidateFields() error
}) types.Position {
	s.Helper()
	s.at.LSN++
	var reply event.Reply
	switch c := c.(type) {
	case *Put:
		s.plane.Decide(0, c, s, &reply)
	case *CreateBucket:
		s.plane.Decide(0, c, s, &reply)
	case *BeginUpload:
		s.plane.Decide(0, c, s, &reply)
	case *PutPart:
		s.plane.Decide(0, c, s, &reply)
	}
	if reply.Problem != event.None {
		s.Fatalf("%T: %v", c, reply.Problem)
	}
	return s.at
}

// held returns a plane with two objects, one of them in two buckets, and an upload of two parts.
func held(t *testing.T) *Plane {
	s := &script{T: t, plane: New(Limits{Objects: 9, Holdings: 9, Buckets: 9, Uploads: 2, Parts: 9, TenantBuckets: 9, TenantUploads: 2, TenantParts: 9,
		TenantQuota: Usage{1000, 100}, BucketQuota: Usage{1000, 100}}, 1)}
	photos, books, name := Bucket("photos"), Bucket("books"), ObjectName("a")
	put := func(tenant types.Tenant, bucket types.Name, a Address) *Put {
		c := &Put{Bucket: bucket, Address: a, Size: 10, File: 1}
		c.Tenant = tenant
		return c
	}
	s.do(put(1, photos, Address{1}))
	s.do(put(2, books, Address{1}))
	begin := &BeginUpload{Bucket: photos, Name: name}
	begin.Tenant = 1
	id := UploadID(s.do(begin))
	for n := range uint16(2) {
		part := &PutPart{Bucket: photos, Name: name, Upload: id, Number: n + 1, Address: Address{7}, Size: 20, File: 2}
		part.Tenant = 1
		s.do(part)
	}
	return s.plane
}

// TestCheckFindsEachBrokenInvariant breaks each invariant.
func TestCheckFindsEachBrokenInvariant(t *testing.T) {
	photos := owner{1, digest.Name([]byte("photos"))}
	upload := func(p *Plane, change func(*Upload)) {
		_, u := p.uploads.Row(0)
		change(&u)
		set(&p.uploads, UploadID{LSN: 3}, u, true)
	}
	for what, c := range map[string]struct {
		spoil func(p *Plane)
		want  error
	}{
		"nothing": {func(*Plane) {}, nil},
		"an object with one reference less": {func(p *Plane) {
			o, _ := p.Find(Address{1})
			o.refs--
			set(&p.objects, Address{1}, o, true)
		}, ErrReferences},
		"an object without a reference": {func(p *Plane) { p.objects.Put(Address{9}, Object{}) }, ErrReferences},
		"an entry without an object":    {func(p *Plane) { p.entries.Put(place{photos, types.NameHash{3}}, Entry{Address: Address{9}}) }, ErrReferences},
		"a usage too high":              {func(p *Plane) { set(&p.owners, photos, owned{Usage: Usage{99, 1}}, true) }, ErrUsage},
		"a usage that is lost":          {func(p *Plane) { set(&p.owners, photos, owned{}, false) }, ErrUsage},
		"logical":                       {func(p *Plane) { p.logical.Bytes++ }, ErrTotals},
		"physical":                      {func(p *Plane) { p.physical.Objects-- }, ErrTotals},
		"bytes of an upload":            {func(p *Plane) { upload(p, func(u *Upload) { u.Bytes-- }) }, ErrUpload},
		"an end without a next":         {func(p *Plane) { upload(p, func(u *Upload) { u.ended = true }) }, ErrUpload},
		"a part above the highest":      {func(p *Plane) { upload(p, func(u *Upload) { u.high = 1 }) }, ErrParts},
		"a part below the next":         {func(p *Plane) { upload(p, func(u *Upload) { u.next = 2 }) }, ErrParts},
		"buckets of all tenants":        {func(p *Plane) { p.buckets-- }, ErrCounts},
		"buckets of a tenant":           {func(p *Plane) { p.count(2, func(c *counts) { c.buckets++ }) }, ErrCounts},
		"uploads of a tenant":           {func(p *Plane) { p.count(1, func(c *counts) { c.uploads-- }) }, ErrCounts},
		"parts of a tenant":             {func(p *Plane) { p.count(1, func(c *counts) { c.parts = 1 }) }, ErrCounts},
		"counts of no tenant":           {func(p *Plane) { p.count(9, func(c *counts) { c.parts = 1 }) }, ErrCounts},
		"a part without an upload":      {func(p *Plane) { set(&p.uploads, UploadID{LSN: 3}, Upload{}, false) }, ErrParts},
	} {
		p := held(t)
		c.spoil(p)
		if err := p.Check(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
}

// TestBytesAreWhatNewTakes: no step takes more memory than New.
func TestBytesAreWhatNewTakes(t *testing.T) {
	l := Limits{Objects: 1000, Holdings: 2000, Buckets: 50, Uploads: 10, Parts: 100, TenantBuckets: 9, TenantQuota: Usage{1000, 100}, BucketQuota: Usage{1000, 100}}
	if got := Bytes(l); got < 1000*52+2000*84 || got > 1<<20 {
		t.Errorf("%d bytes", got)
	}
	s := &script{T: t, plane: New(l, 1)}
	create := &CreateBucket{Bucket: Bucket("photos")}
	create.Tenant = 1
	s.do(create)
	put := &Put{Bucket: create.Bucket, Name: ObjectName("a"), Address: Address{1}, Size: 10, File: 1, Meta: make([]byte, MaxMeta)}
	put.Tenant = 1
	if n := testing.AllocsPerRun(100, func() { s.do(put); put.Address[0]++ }); n > 0 {
		t.Errorf("%v allocations of a put", n)
	}
}
