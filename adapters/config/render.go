package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// A Setting is a key with its value and its layer.
type Setting struct{ Key, Value, From string }

// Settings returns all keys in the order of the tree.
func (c *Config) Settings() []Setting {
	var all []Setting
	for _, k := range keys(c) {
		all = append(all, Setting{k.path, k.text(), c.origin(k)})
	}
	return all
}

// Effective returns the tree as YAML that Load reads back to the same values, with the layer of
// each.
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

// text returns k's value in the form of the environment and flags.
func (k key) text() string {
	if isList(k.value.Type()) {
		return k.yaml()
	}
	return format(k.value)
}

// lines returns the entries of a list in the form of a file, if they have keys.
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

// yaml returns k's value in the form of a file, on one line. For a list this is JSON too.
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
	return strconv.Quote(text) // YAML reads what Go escapes
}

// flow returns a list on one line.
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

// silent reports whether a part of an entry can be omitted: it has no value, or it is a section
// with default values.
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

// A Change is a key with a changed value.
type Change struct {
	Key, Old, New string
	Hot           bool // takes effect at once, not at the next start
}

// Diff returns the keys whose values differ, in the order of the tree.
func Diff(old, new *Config) (all []Change) {
	is := keys(new)
	for i, was := range keys(old) {
		if a, b := was.text(), is[i].text(); a != b {
			all = append(all, Change{was.path, a, b, was.change() == "hot"})
		}
	}
	return all
}
