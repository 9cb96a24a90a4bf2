package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"time"

	"macronode/core/types"
)

// key is a leaf of the tree in a Config, or a part of an entry of a list.
type key struct {
	path  string
	of    string // the leaf that it is, or is a part of
	tag   reflect.StructTag
	value reflect.Value
	entry bool // it is an entry of a list, and has the list's tag
}

// keys returns the leaves of tree, a pointer to a struct, in the order of declaration. Those of sections come last.
func keys(tree any) []key {
	all := appendKeys(nil, "", "", reflect.ValueOf(tree).Elem())
	if c, ok := tree.(*Config); ok {
		all = append(all, c.sectionKeys()...)
	}
	return all
}

func appendKeys(to []key, prefix, of string, section reflect.Value) []key {
	for i := range section.NumField() {
		field := section.Type().Field(i)
		name, ok := field.Tag.Lookup("key")
		switch {
		case !ok:
		case isSection(field.Type):
			to = appendKeys(to, prefix+name+".", of, section.Field(i))
		default:
			path := prefix + name
			to = append(to, key{path: path, of: cmp.Or(of, path), tag: field.Tag, value: section.Field(i)})
		}
	}
	return to
}

// isSection reports whether a type has keys.
func isSection(t reflect.Type) bool { return t.Kind() == reflect.Struct && len(namesOf(t)) > 0 }

func (k key) doc() string    { return k.tag.Get("doc") }
func (k key) change() string { return k.tag.Get("change") }

// variable returns the name of k in the environment.
func (k key) variable() string {
	return prefix + strings.ToUpper(strings.ReplaceAll(k.path, ".", "__"))
}

const prefix = "MACRONODE_"

// follows returns the key whose value k has if it is not set.
func (k key) follows() (path string, ok bool) { return strings.CutPrefix(k.tag.Get("default"), "=") }

// bound returns the value of the tag min or max.
func (k key) bound(name string) (v reflect.Value, ok bool) {
	text, ok := k.tag.Lookup(name)
	if !ok {
		return v, false
	}
	v = reflect.New(k.value.Type()).Elem()
	if err := parse(v, text); err != nil {
		panic("config: the " + name + " of " + k.path + " is not of its type")
	}
	return v, true
}

// reset sets k to its default; a list is empty.
func (k key) reset() {
	if text := k.tag.Get("default"); !isList(k.value.Type()) && (text != "" || k.value.Kind() == reflect.String) {
		if err := parse(k.value, text); err != nil {
			panic("config: the default of " + k.path + " is not of its type")
		}
	}
}

// wants describes the allowed values of k.
func (k key) wants() string {
	if isList(k.value.Type()) {
		what := "a list of"
		if k.named() {
			what = "a mapping of names to"
		}
		return fmt.Sprintf("%s at most %d %s", what, k.most(), k.tag.Get("takes"))
	}
	if one := k.tag.Get("one"); one != "" {
		return "one of " + strings.Join(strings.Fields(one), ", ")
	}
	var what string
	switch k.value.Interface().(type) {
	case bool:
		return "true or false"
	case string:
		return cmp.Or(forms[k.tag.Get("form")].wants, k.tag.Get("takes"))
	case netip.Prefix:
		return "a network such as 10.0.0.0/8 or fd00::/8"
	case Rate:
		what = "a number such as 0.5 or 5000, with at most 6 decimals,"
	case Burst:
		what = "a whole number or, of bytes, a size such as 512KiB, 256MiB or 1GiB,"
	case int:
		what = "a whole number"
	case time.Duration:
		what = "a duration such as 200ms, 5s or 24h,"
	case Bytes:
		what = "a size such as 512KiB, 256MiB or 1GiB,"
	case types.Amount:
		what = "an amount, a text of digits without leading zeros,"
	}
	return what + " from " + k.tag.Get("min") + " to " + k.tag.Get("max")
}

// scalar returns the text of a value of the file, if it has the right type: numbers and booleans
// as such, everything else as text.
func (k key) scalar(v any) (text string, ok bool) {
	kind := k.value.Kind()
	_, burst := k.value.Interface().(Burst)
	_, rate := k.value.Interface().(Rate)
	switch x := v.(type) {
	case string:
		_, err := parseBytes(x)
		return x, kind != reflect.Bool && kind != reflect.Int && !rate && (!burst || err == nil)
	case bool:
		return strconv.FormatBool(x), kind == reflect.Bool
	case int, int64, uint64:
		return fmt.Sprint(x), kind == reflect.Int || burst || rate
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64), rate
	}
	return "", false
}
