package fuzz

import (
	"bytes"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/objectstore"
	"macronode/chaos/world"
	"macronode/core/digest"
	"macronode/core/record"
	"macronode/core/storage"
	"macronode/core/types"
)

// FuzzStorageRecord folds payloads of records into the storage plane: what fits can be applied and undone, and breaks no
// invariant.
func FuzzStorageRecord(f *testing.F) {
	stored := func(size, tenant, bucket uint64) []byte {
		b := make([]byte, 32)
		for _, n := range []uint64{size, 1, tenant, 1, bucket, 1} {
			b = append(b, byte(n), 0, 0, 0, 0, 0, 0, 0)
		}
		return append(b, "photos"...)
	}
	f.Add([]byte{0}, stored(7, 7, 7), []byte{2}, stored(7, 0, 0))
	f.Add([]byte{0}, stored(7, 7, 7), []byte{1}, stored(7, 7, 7))
	f.Add([]byte{1}, stored(7, 7, 7), []byte{3}, []byte("short"))
	f.Fuzz(func(t *testing.T, kind1, payload1, kind2, payload2 []byte) {
		p := storage.New(storage.Limits{Objects: 2, Holdings: 2, Buckets: 3}, 1)
		for _, one := range []struct{ kind, payload []byte }{{kind1, payload1}, {kind2, payload2}} {
			if len(one.kind) == 0 {
				continue
			}
			r := record.Record{Kind: record.PlaneKind(types.PlaneStorage, one.kind[0]%16), Tenant: 1, Payload: one.payload}
			if !p.Fits(&r) {
				continue
			}
			before := p.Hash()
			p.Savepoint()
			p.Apply(0, types.TxID{}, &r)
			if err := p.Check(); err != nil {
				t.Fatal(err)
			}
			p.Undo()
			if p.Hash() != before {
				t.Fatal("an undone record leaves a trace")
			}
			p.Apply(0, types.TxID{}, &r)
		}
		copied := storage.New(storage.Limits{Objects: 2, Holdings: 2, Buckets: 3}, 2)
		p.Dump(func(kind uint8, b []byte) {
			if err := copied.Load(kind, b); err != nil {
				t.Fatal(err)
			}
		})
		if err := copied.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzObjectFiles replaces parts of the files of an object: what is sent is always a part of the object, and all of it only if
// nothing that is needed was changed.
func FuzzObjectFiles(f *testing.F) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 9000) // three groups
	f.Add(uint32(0), []byte("x"), uint32(200), []byte(nil), uint32(0), uint32(144_000))
	f.Add(uint32(70_000), []byte{1}, uint32(0), []byte{2}, uint32(65_536), uint32(10))
	f.Add(uint32(143_999), []byte("abc"), uint32(127), []byte("abc"), uint32(0), uint32(0))
	f.Fuzz(func(t *testing.T, at uint32, with []byte, nodesAt uint32, nodesWith []byte, off, length uint32) {
		d := world.NewDisk()
		s := objectstore.New(d, objectstore.Limits{Uploads: 1, Object: 1 << 20})
		u, err := s.Begin(1)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = u.Write(content)
		a, err := u.Sum()
		if err != nil || u.Store(a) != nil || a != storage.Address(digest.Sum(content)) {
			t.Fatal(a, err)
		}
		u.Done()
		names, _ := d.List()
		changed := spoil(t, d, names[0], at, with)
		spoilt := spoil(t, d, names[0], uint32(len(content))+nodesAt%(2*digest.NodeLen), nodesWith)
		from := uint64(off) % uint64(len(content))
		size := min(uint64(length), uint64(len(content))-from)
		var got []byte
		o, err := s.Get(a, storage.Object{Size: uint64(len(content)), File: u.File()})
		if err == nil {
			err = o.WriteRange(from, size, func(b []byte) error { got = append(got, b...); return nil })
			o.Close()
		}
		want := content[from : from+size]
		if !bytes.HasPrefix(want, got) || err == nil && len(got) != len(want) || err != nil && !changed && !spoilt {
			t.Fatalf("%d of %d bytes, %v", len(got), len(want), err)
		}
	})
}

// spoil replaces bytes of a file, which may grow, and reports whether that changed it.
func spoil(t *testing.T, d *world.Disk, name string, at uint32, with []byte) bool {
	t.Helper()
	was, err := fs.ReadAll(d, name)
	if err != nil {
		t.Fatal(err)
	}
	is := bytes.Clone(was)
	place := int(at) % len(is)
	is = append(is[:place], append(bytes.Clone(with), is[min(place+len(with), len(is)):]...)...)
	if err := d.Remove(name); err != nil {
		t.Fatal(err)
	}
	f, err := d.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(is, 0); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	return !bytes.Equal(was, is)
}
