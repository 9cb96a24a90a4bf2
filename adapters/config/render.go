package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// A Setting is a key with its value's text and where that came from.
type Setting struct{ Key, Value, From string }

// Settings lists all keys in the order of the tree.
func (c *Config) Settings() []Setting {
	var all []Setting
	for _, k := range keys(c) {
		all = append(all, Setting{k.path, k.text(), c.origin(k)})
	}
	return all
}

// Effective is the whole tree as YAML that Load reads back to the same values, each
// with where it came from.
func (c *Config) Effective() string {
	var b strings.Builder
	var open []string
	for _, k := range keys(c) {
		sections := strings.Split(k.path, ".")
		name := sections[len(sections)-1]
		sections = sections[:len(sections)-1]
		for i, s := range sections {
			if i >= len(open) || open[i] != s {
				fmt.Fprintf(&b, "%s%s:\n", strings.Repeat("  ", i), s)
				open = append(open[:i:i], s)
			}
		}
		from := strings.Join(strings.Fields(c.origin(k)), " ")
		indent := strings.Repeat("  ", len(sections))
		if entries := k.lines(); len(entries) > 0 {
			fmt.Fprintf(&b, "%s%s: # %s\n%s  %s\n", indent, name, from, indent, strings.Join(entries, "\n  "+indent))
			continue
		}
		fmt.Fprintf(&b, "%s%s: %s # %s\n", indent, name, k.yaml(), from)
	}
	return b.String()
}

// text is k's value as the environment and flags take it.
func (k key) text() string {
	if isList(k.value.Type()) {
		return k.yaml()
	}
	return format(k.value)
}

// lines are the entries of a list as they stand in a file, if they have keys.
func (k key) lines() (lines []string) {
	if !isList(k.value.Type()) || !isSection(k.value.Type().Elem()) {
		return nil
	}
	for _, e := range k.entries() {
		mark := "- "
		if k.named() {
			mark = strconv.Quote(e.value.FieldByName("Name").String()) + ": "
		}
		lines = append(lines, mark+e.yaml())
	}
	return lines
}

// yaml is k's value as it stands in a file, on one line. Of a list it is JSON as well.
func (k key) yaml() string {
	switch {
	case isList(k.value.Type()):
		return k.flow()
	case isSection(k.value.Type()):
		var members []string
		for i := range k.value.NumField() {
			field := k.value.Type().Field(i)
			in := key{path: field.Name, of: k.of, tag: field.Tag, value: k.value.Field(i)}
			if name := field.Tag.Get("key"); name != "" && !in.silent() {
				members = append(members, strconv.Quote(name)+": "+in.yaml())
			}
		}
		return "{" + strings.Join(members, ", ") + "}"
	}
	text := format(k.value)
	switch v := k.value.Interface().(type) {
	case bool, int, Rate:
		return text
	case time.Duration, Bytes:
		if k.of == k.path {
			return text
		}
	case Burst:
		if !v.Sized {
			return text
		}
	}
	return strconv.Quote(text) // what Go escapes, YAML reads
}

// flow is a list on one line.
func (k key) flow() string {
	var all []string
	for _, e := range k.entries() {
		one := e.yaml()
		if k.named() {
			one = strconv.Quote(e.value.FieldByName("Name").String()) + ": " + one
		}
		all = append(all, one)
	}
	if k.named() {
		return "{" + strings.Join(all, ", ") + "}"
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// silent reports a part of an entry that says nothing: it has no value, or it is a section
// that is as it is by default.
func (k key) silent() bool {
	if !isSection(k.value.Type()) {
		return k.unset()
	}
	is := reflect.New(k.value.Type()).Elem()
	for _, in := range (key{value: is}).inside() {
		in.reset()
	}
	return reflect.DeepEqual(is.Interface(), k.value.Interface())
}

// A Change is a key whose value is another.
type Change struct {
	Key, Old, New string
	Hot           bool // it takes effect at once, not at the next start
}

// Diff lists the keys whose values differ, in the order of the tree.
func Diff(old, new *Config) (all []Change) {
	is := keys(new)
	for i, was := range keys(old) {
		if a, b := was.text(), is[i].text(); a != b {
			all = append(all, Change{was.path, a, b, was.change() == "hot"})
		}
	}
	return all
}
