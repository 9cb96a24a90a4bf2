package hashcoverage

import (
	"reflect"
	"slices"
	"testing"

	"macronode/core/types"
)

type inner struct {
	id   [3]byte
	seen bool
}

type outer struct {
	count  int32
	inner  inner
	rows   []inner
	spare  uint16
	_      [3]byte
	ignore string
}

func (o *outer) hash(leave string) types.Hash64 {
	h := types.Hash64(0)
	if leave != "count" {
		h = h.Mix(uint64(uint32(o.count)))
	}
	if leave == "count's high half" {
		h = types.Hash64(0).Mix(uint64(uint16(o.count)))
	}
	for _, in := range append([]inner{o.inner}, o.rows...) {
		for i, b := range in.id {
			if leave != "the last byte of an id" || i < 2 {
				h = h.Mix(uint64(b))
			}
		}
		if leave != "a truth" {
			h = h.MixBool(in.seen)
		}
	}
	if leave == "nothing" {
		h = h.Mix(uint64(o.spare))
	}
	return h
}

const (
	spare  = "spare: unused"
	ignore = "ignore: a label"
)

func TestEveryCoversAllFields(t *testing.T) {
	o := outer{rows: make([]inner, 2), ignore: "rows"}
	was := o.hash("nothing")
	Every(t, &o, func() types.Hash64 { return o.hash("nothing") }, ignore)
	if o.hash("nothing") != was {
		t.Error("a flip was not taken back")
	}
}

// TestMissedFieldsAreReported: each of these hashes misses a field, which is reported.
func TestMissedFieldsAreReported(t *testing.T) {
	for _, c := range []struct {
		leave  string
		except []string
		want   []string
	}{
		{"nothing", []string{ignore}, nil},
		{"count", []string{ignore, spare}, []string{"count is not in the hash"}},
		{"count's high half", []string{ignore, spare}, []string{"count is not in the hash"}},
		{"the last byte of an id", []string{ignore, spare, "inner: elsewhere"}, []string{
			"rows[0].id[2] is not in the hash", "rows[1].id[2] is not in the hash"}},
		{"a truth", []string{ignore, spare, "rows[].seen: elsewhere"}, []string{"inner.seen is not in the hash"}},
		{"nothing", nil, []string{"ignore is no plain data: string"}},
		{"nothing", []string{"ignore"}, []string{`exception "ignore" gives no reason: want "path: reason"`}},
		{"nothing", []string{ignore, "gone: x"}, []string{"exception gone names no field"}},
		{"spare", []string{ignore}, []string{"spare is not in the hash"}},
	} {
		o := outer{rows: make([]inner, 2), ignore: "rows"}
		got := complaints(reflect.ValueOf(&o).Elem(), func() types.Hash64 { return o.hash(c.leave) }, c.except)
		if !slices.Equal(got, c.want) {
			t.Errorf("forgetting %s, except %q: %q, want %q", c.leave, c.except, got, c.want)
		}
	}
}

// TestValueWithoutFieldsIsAnError: a value without fields is an error.
func TestValueWithoutFieldsIsAnError(t *testing.T) {
	var o outer
	got := complaints(reflect.ValueOf(&o).Elem(), func() types.Hash64 { return o.hash("nothing") }, []string{ignore})
	if want := []string{"rows is empty: give it an element, or a reason"}; !slices.Equal(got, want) {
		t.Errorf("an empty slice: %q, want %q", got, want)
	}
	var n struct{ next *int }
	got = complaints(reflect.ValueOf(&n).Elem(), func() types.Hash64 { return 0 }, []string{"next: not ours"})
	if want := []string{"there was nothing to flip"}; !slices.Equal(got, want) {
		t.Errorf("only exceptions: %q, want %q", got, want)
	}
}

// TestPanicCountsAsChange: a flipped index may make the hash panic.
func TestPanicCountsAsChange(t *testing.T) {
	v := struct {
		at   uint32
		ring []uint8
	}{ring: []uint8{1, 2}}
	Every(t, &v, func() types.Hash64 {
		return types.Hash64(0).Mix(uint64(v.ring[v.at])).Mix(uint64(v.ring[1-v.at]))
	})
}

// TestRandomHashIsReported: a random hash is reported.
func TestRandomHashIsReported(t *testing.T) {
	var v struct{ n uint8 }
	calls := types.Hash64(0)
	got := complaints(reflect.ValueOf(&v).Elem(), func() types.Hash64 { calls++; return calls }, nil)
	if want := []string{"the hash is not the same twice"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestApartReturnsDifferingFields: the first differing fields are returned.
func TestApartReturnsDifferingFields(t *testing.T) {
	type inner struct{ n, m int }
	type outer struct {
		inner
		list [3]inner
		some []byte
		name string
	}
	was := outer{inner: inner{1, 2}, some: []byte{1, 2}, name: "a"}
	is := was
	if got := Apart(&was, &is); got != "" {
		t.Errorf("the same are apart: %s", got)
	}
	is.m, is.list[1].n, is.some, is.name = 3, 4, []byte{1}, "b"
	if got, want := Apart(&was, &is), "m is 2 and 3, list[1].n is 0 and 4, some has 2 elements and 1, name is a and b"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	is.some, is.n = []byte{3, 4}, 5
	if got, want := Apart(&was, &is), "n is 1 and 5, m is 2 and 3, list[1].n is 0 and 4, some[0] is 1 and 3"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
