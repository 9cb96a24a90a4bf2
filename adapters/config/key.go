package config

import (
	"reflect"
	"strings"
	"time"

	"macronode/core/words"
)

// key is one leaf of the tree, in a given Config.
type key struct {
	path  string
	tag   reflect.StructTag
	value reflect.Value
}

// keys lists the leaves of tree, a pointer to a struct, in the order in which they
// are declared.
func keys(tree any) []key { return appendKeys(nil, "", reflect.ValueOf(tree).Elem()) }

func appendKeys(to []key, prefix string, section reflect.Value) []key {
	for i := range section.NumField() {
		field := section.Type().Field(i)
		name, ok := field.Tag.Lookup("key")
		switch {
		case !ok:
		case isSection(field.Type):
			to = appendKeys(to, prefix+name+".", section.Field(i))
		default:
			to = append(to, key{prefix + name, field.Tag, section.Field(i)})
		}
	}
	return to
}

func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[words.Amount]()
}

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

// wants says what k takes.
func (k key) wants() string {
	var what string
	switch k.value.Interface().(type) {
	case bool:
		return "true or false"
	case string:
		if one := k.tag.Get("one"); one != "" {
			return "one of " + strings.Join(strings.Fields(one), ", ")
		}
		return k.tag.Get("takes")
	case int:
		what = "a whole number"
	case time.Duration:
		what = "a duration such as 200ms, 5s or 24h,"
	case Bytes:
		what = "a size such as 512KiB, 256MiB or 1GiB,"
	case words.Amount:
		what = "an amount, a text of digits without leading zeros,"
	}
	return what + " from " + k.tag.Get("min") + " to " + k.tag.Get("max")
}

// scalar is the text of what the file has under k, if it is of the right type:
// whole numbers and truths as such, everything else as a text.
func (k key) scalar(v any) (text string, ok bool) {
	want := reflect.String
	if kind := k.value.Kind(); kind == reflect.Bool || kind == reflect.Int {
		want = kind
	}
	switch x := v.(type) {
	case string:
		return x, want == reflect.String
	case bool:
		return format(reflect.ValueOf(x)), want == reflect.Bool
	case int, int64, uint64:
		return format(reflect.ValueOf(x)), want == reflect.Int
	}
	return "", false
}
