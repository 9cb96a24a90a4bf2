// Package hashcoverage changes every field of a value, one at a time, and requires that its hash
// changes: if the hash misses a field, two states look equal.
package hashcoverage

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"macronode/core/types"
)

// Every flips the lowest and the highest bit of each plain field under v, at any depth, and
// requires another hash each time. An exception is the path of a field and the reason why the
// hash may omit it:
//
//	hashcoverage.Every(t, &s, s.Hash, "children[].until: unused while up")
//
// An exception that matches no field is an error, and so is a field that cannot be flipped: a
// pointer, a map, a string, an empty slice.
//
//	flip.Every(t, &s, s.Hash, "children[].until: of no meaning while up")
//
// One that names no field is an error, and so is what a flip cannot look into: a
// pointer, a map, a text, an empty slice.
func Every[T any](t *testing.T, v *T, hash func() types.Hash64, except ...string) {
	t.Helper()
	for _, why := range complaints(reflect.ValueOf(v).Elem(), hash, except) {
		t.Error(why)
	}
}

type walk struct {
	hash   func() types.Hash64
	except map[string]bool // path → whether it matched a field
	lines  []string
	flips  int
}

func complaints(v reflect.Value, hash func() types.Hash64, except []string) []string {
	w := walk{hash: hash, except: map[string]bool{}}
	for _, e := range except {
		path, reason, _ := strings.Cut(e, ":")
		if strings.TrimSpace(reason) == "" {
			w.say("exception %q gives no reason: want \"path: reason\"", e)
		}
		w.except[path] = false
	}
	if first, second := hash(), hash(); first != second {
		w.say("the hash is not the same twice")
	}
	w.into(v, "")
	for path, met := range w.except {
		if !met {
			w.say("exception %s names no field", path)
		}
	}
	if w.flips == 0 {
		w.say("there was nothing to flip")
	}
	slices.Sort(w.lines)
	return slices.Compact(w.lines)
}

func (w *walk) say(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

var indices = regexp.MustCompile(`\[\d+\]`)

// into visits the parts of v. Elements have their index in paths, and [] in exceptions.
func (w *walk) into(v reflect.Value, path string) {
	general := indices.ReplaceAllString(path, "[]")
	if _, ok := w.except[general]; ok {
		w.except[general] = true
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Name != "_" {
				w.into(v.Field(i), joined(path, f))
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Len() == 0 {
			w.say("%s is empty: give it an element, or a reason", named(path))
		}
		for i := range v.Len() {
			w.into(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		w.flip(v, path)
	default:
		w.say("%s is no plain data: %v", named(path), v.Kind())
	}
}

// flip changes the ends of v in memory, because most fields are not exported.
func (w *walk) flip(v reflect.Value, path string) {
	at := unsafe.Slice((*byte)(unsafe.Pointer(v.UnsafeAddr())), v.Type().Size())
	was := w.hash()
	type bit struct {
		at   int
		mask byte
	}
	bits := []bit{{0, 1}}
	if v.Kind() != reflect.Bool {
		bits = append(bits, bit{len(at) - 1, 0x80})
	}
	for _, b := range bits {
		at[b.at] ^= b.mask
		if w.same(was) {
			w.say("%s is not in the hash", named(path))
		}
		at[b.at] ^= b.mask
		w.flips++
	}
}

// same reports whether the hash is unchanged. A panic counts as a change: the flipped field was
// an index.
func (w *walk) same(was types.Hash64) (same bool) {
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	return w.hash() == was
}

func named(path string) string {
	if path == "" {
		return "the value"
	}
	return path
}
