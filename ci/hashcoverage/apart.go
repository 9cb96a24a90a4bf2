package hashcoverage

import (
	"fmt"
	"reflect"
	"strings"
)

// apartMost is how many fields Apart names.
const apartMost = 4

// Apart names the first fields in which two values of plain data differ: of two whose hashes
// are not the same, those that a copy forgot. Empty when there is none.
func Apart[T any](a, b *T) string {
	var d differ
	d.into(reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem(), "")
	return strings.Join(d.said, ", ")
}

type differ struct{ said []string }

func (d *differ) into(a, b reflect.Value, path string) {
	if len(d.said) == apartMost {
		return
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			d.into(a.Field(i), b.Field(i), joined(path, a.Type().Field(i)))
		}
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			d.said = append(d.said, fmt.Sprintf("%s has %d elements and %d", named(path), a.Len(), b.Len()))
			return
		}
		for i := range a.Len() {
			d.into(a.Index(i), b.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	default:
		if x, y := fmt.Sprint(a), fmt.Sprint(b); x != y {
			d.said = append(d.said, fmt.Sprintf("%s is %s and %s", named(path), x, y))
		}
	}
}

// joined is the path of a field; those of what is embedded are those of what it stands in.
func joined(path string, f reflect.StructField) string {
	if f.Anonymous {
		return path
	}
	return strings.TrimPrefix(path+"."+f.Name, ".")
}
