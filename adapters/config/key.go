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

// key is one leaf of the tree, in a given Config, or a part of one that is a list.
type key struct {
	path  string
	of    string // the leaf of the tree that it is, or is a part of
	tag   reflect.StructTag
	value reflect.Value
	entry bool // it is an entry of a list, whose tag it has
}

// keys lists the leaves of tree, a pointer to a struct, in the order in which they
// are declared.
func keys(tree any) []key { return appendKeys(nil, "", "", reflect.ValueOf(tree).Elem()) }

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

// isSection reports a type that has keys.
func isSection(t reflect.Type) bool { return t.Kind() == reflect.Struct && len(namesOf(t)) > 0 }

func (k key) doc() string    { return k.tag.Get("doc") }
func (k key) change() string { return k.tag.Get("change") }

// variable is the name of k in the environment.
func (k key) variable() string {
	return prefix + strings.ToUpper(strings.ReplaceAll(k.path, ".", "__"))
}

const prefix = "MACRONODE_"

// follows is the key whose value k takes when nobody sets it.
func (k key) follows() (path string, ok bool) { return strings.CutPrefix(k.tag.Get("default"), "=") }

// bound is what the tag min or max says.
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

// reset gives k its default; a list is empty.
func (k key) reset() {
	if text := k.tag.Get("default"); !isList(k.value.Type()) && (text != "" || k.value.Kind() == reflect.String) {
		if err := parse(k.value, text); err != nil {
			panic("config: the default of " + k.path + " is not of its type")
		}
	}
}

// wants says what k takes.
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

// scalar is the text of what the file has under k, if it is of the right type:
// numbers and truths as such, everything else as a text.
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
