package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

func isList(t reflect.Type) bool { return t.Kind() == reflect.Slice }

// named reports whether k is a mapping of names to entries.
func (k key) named() bool { return k.tag.Get("by") == "name" }

// most returns the largest number of entries.
func (k key) most() int {
	n, err := strconv.Atoi(k.tag.Get("most"))
	if err != nil {
		panic("config: " + k.path + " is a list without end")
	}
	return n
}

// entries returns the entries of a list, each a text or a section.
func (k key) entries() []key {
	all := make([]key, k.value.Len())
	for i := range all {
		e := key{path: fmt.Sprintf("%s[%d]", k.path, i), of: k.of, tag: k.tag, value: k.value.Index(i), entry: true}
		if k.named() {
			e.path = k.path + "." + e.value.FieldByName("Name").String()
		}
		all[i] = e
	}
	return all
}

// inside returns the keys of an entry.
func (k key) inside() []key { return appendKeys(nil, k.path+".", k.of, k.value) }

// parts returns k and, for a list, all keys of its entries.
func (k key) parts() []key {
	all := []key{k}
	if !isList(k.value.Type()) {
		return all
	}
	for _, e := range k.entries() {
		if !isSection(e.value.Type()) {
			all = append(all, e)
			continue
		}
		for _, in := range e.inside() {
			all = append(all, in.parts()...)
		}
	}
	return all
}

// unset reports whether a part of an entry has no value and needs none.
func (k key) unset() bool {
	empty := k.value.IsZero() || isList(k.value.Type()) && k.value.Len() == 0
	return empty && !k.entry && k.change() == "" && k.tag.Get("need") == "" && k.tag.Get("default") == ""
}

// list sets k to the entries of a layer.
func (l *layers) list(k key, layer string, raw any) {
	names, values, ok := k.unpack(raw)
	if !ok {
		l.refuse("%s (%s) is %s: must be %s", k.path, layer, shown(raw), k.wants())
		return
	}
	if len(values) > k.most() {
		l.refuse("%s (%s) has %d: must be %s", k.path, layer, len(values), k.wants())
		return
	}
	k.value.SetZero()
	if len(values) == 0 {
		if k.change() == "" { // in an entry: unclear whether none or any is meant
			l.refuse("%s (%s) is empty: must be %s", k.path, layer, k.wants())
		}
		return
	}
	k.value.Set(reflect.MakeSlice(k.value.Type(), len(values), len(values)))
	for i, name := range names {
		if !forms["label"].has(name) {
			l.refuse("%s (%s) has %q: must be %s", k.path, layer, name, forms["label"].wants)
		}
		k.value.Index(i).FieldByName("Name").SetString(name)
	}
	seen := map[string]bool{}
	for i, e := range k.entries() {
		if isSection(e.value.Type()) {
			l.entry(e, layer, values[i])
			continue
		}
		l.part(e, layer, values[i])
		if text := format(e.value); seen[text] {
			l.refuse("%s (%s) is %s again: once is allowed", e.path, layer, shown(values[i]))
		} else {
			seen[text] = true
		}
	}
}

// unpack returns the values of a list and, for a mapping, their names in order.
func (k key) unpack(raw any) (names []string, values []any, ok bool) {
	if !k.named() {
		values, ok = raw.([]any)
		return nil, values, ok
	}
	m, ok := raw.(map[string]any)
	names = slices.Sorted(maps.Keys(m))
	for _, name := range names {
		values = append(values, m[name])
	}
	return names, values, ok
}

// entry sets an entry of a list, or a section of one, from a layer.
func (l *layers) entry(k key, layer string, raw any) {
	values, ok := raw.(map[string]any)
	if !ok {
		l.refuse("%s (%s) is %s: must be a section, %s", k.path, layer, shown(raw), has(k.value.Type()))
		return
	}
	names := namesOf(k.value.Type())
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(names, name) {
			l.refuse("%s.%s (%s) is not a configuration key: the nearest is %s, %s", k.path, name, layer, nearest(name, names), has(k.value.Type()))
		}
	}
	either := map[string][]string{}
	for i := range k.value.NumField() {
		field := k.value.Type().Field(i)
		name := field.Tag.Get("key")
		in := key{path: k.path + "." + name, of: k.of, tag: field.Tag, value: k.value.Field(i)}
		raw, there := values[name]
		if group := field.Tag.Get("either"); there && group != "" {
			either[group] = append(either[group], name)
		}
		switch {
		case name == "":
		case isSection(field.Type):
			l.inner(in, layer, raw, there)
		case there:
			l.part(in, layer, raw)
		case field.Tag.Get("need") != "":
			l.refuse("%s (%s) has no %s: set %s", k.path, layer, name, in.wants())
		default:
			in.reset()
		}
	}
	for _, group := range groups(k.value.Type()) {
		if n := len(either[group[0]]); n != 1 {
			l.refuse("%s (%s) has %d of %s: set exactly one", k.path, layer, n, strings.Join(group[1:], ", "))
		}
	}
}

// inner is entry for a section of an entry, which may be absent.
func (l *layers) inner(k key, layer string, raw any, there bool) {
	if !there {
		raw = map[string]any{}
	}
	l.entry(k, layer, raw)
}

// part sets a part of an entry from a layer.
func (l *layers) part(k key, layer string, raw any) {
	if isList(k.value.Type()) {
		l.list(k, layer, raw)
		return
	}
	text, ok := k.scalar(raw)
	if !ok || parse(k.value, text) != nil || !k.within() {
		l.refuse("%s (%s) is %s: must be %s", k.path, layer, shown(raw), k.wants())
	}
}

// namesOf returns the keys of a section, sorted.
func namesOf(section reflect.Type) (names []string) {
	for i := range section.NumField() {
		if name := section.Field(i).Tag.Get("key"); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func has(section reflect.Type) string { return "valid keys: " + strings.Join(namesOf(section), ", ") }

// groups returns the groups of keys of which a section has exactly one: the name of the group,
// then its keys.
func groups(section reflect.Type) (all [][]string) {
	for i := range section.NumField() {
		tag := section.Field(i).Tag
		group := tag.Get("either")
		if group == "" {
			continue
		}
		at := slices.IndexFunc(all, func(g []string) bool { return g[0] == group })
		if at < 0 {
			all, at = append(all, []string{group}), len(all)
		}
		all[at] = append(all[at], tag.Get("key"))
	}
	return all
}

// unjson parses JSON, with integers as such.
func unjson(text string) (v any, err error) {
	numbers := json.UnmarshalFromFunc(func(from *jsontext.Decoder, to *any) error {
		if from.PeekKind() != '0' {
			return errors.ErrUnsupported
		}
		digits, err := from.ReadValue()
		if err != nil {
			return err
		}
		if n, err := strconv.ParseInt(string(digits), 10, 64); err == nil {
			*to = n
			return nil
		}
		f, err := strconv.ParseFloat(string(digits), 64)
		*to = f
		return err
	})
	if err := json.Unmarshal([]byte(text), &v, json.WithUnmarshalers(numbers)); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "jsontext: "))
	}
	return v, nil
}
