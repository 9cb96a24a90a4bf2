package config

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"macronode/core/words"
)

// A Setting is a key with its value's text and where that came from.
type Setting struct{ Key, Value, From string }

// Settings lists all keys in the order of the tree.
func (c *Config) Settings() []Setting {
	var all []Setting
	for _, k := range keys(c) {
		all = append(all, Setting{k.path, format(k.value), c.origin(k)})
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
		fmt.Fprintf(&b, "%s%s: %s # %s\n", strings.Repeat("  ", len(sections)), name, k.yaml(), from)
	}
	return b.String()
}

// yaml is k's value as it stands in a file.
func (k key) yaml() string {
	text := format(k.value)
	switch k.value.Interface().(type) {
	case string, words.Amount:
		quoted, err := jsontext.AppendQuote(nil, text) // a text of JSON is one of YAML
		if err != nil {
			return `""`
		}
		return string(quoted)
	}
	return text
}

// Schema is the tree as JSON Schema.
func Schema() []byte {
	var b bytes.Buffer
	s := schema{jsontext.NewEncoder(&b, jsontext.WithIndent("  "))}
	s.open(jsontext.BeginObject)
	s.texts("$schema", "https://json-schema.org/draft/2020-12/schema", "title", "macronode configuration")
	s.section(reflect.TypeFor[Config]())
	s.open(jsontext.EndObject)
	return b.Bytes()
}

// schema writes tokens to memory, in an order that is always right: what cannot
// fail is not asked.
type schema struct{ to *jsontext.Encoder }

func (s schema) open(t jsontext.Token) { s.write(t) }

func (s schema) write(tokens ...jsontext.Token) {
	for _, t := range tokens {
		if err := s.to.WriteToken(t); err != nil {
			panic("config: " + err.Error())
		}
	}
}

func (s schema) texts(pairs ...string) {
	for _, p := range pairs {
		s.write(jsontext.String(p))
	}
}

func (s schema) section(t reflect.Type) {
	s.texts("type", "object", "additionalProperties")
	s.write(jsontext.False, jsontext.String("properties"), jsontext.BeginObject)
	for i := range t.NumField() {
		f := t.Field(i)
		name, ok := f.Tag.Lookup("key")
		if !ok {
			continue
		}
		s.write(jsontext.String(name), jsontext.BeginObject)
		s.texts("description", f.Tag.Get("doc"))
		if isSection(f.Type) {
			s.section(f.Type)
		} else {
			s.leaf(key{tag: f.Tag, value: reflect.New(f.Type).Elem()})
		}
		s.write(jsontext.EndObject)
	}
	s.write(jsontext.EndObject)
}

func (s schema) leaf(k key) {
	leader, follows := k.follows()
	if follows {
		s.texts("$comment", "default: as "+leader)
	}
	switch k.value.Interface().(type) {
	case bool:
		s.texts("type", "boolean", "default")
		s.write(jsontext.Bool(k.tag.Get("default") == "true"))
	case int:
		s.texts("type", "integer")
		for _, bound := range [...][2]string{{"min", "minimum"}, {"max", "maximum"}, {"default", "default"}} {
			if bound[0] == "default" && follows {
				continue
			}
			v, _ := k.bound(bound[0])
			s.write(jsontext.String(bound[1]), jsontext.Int(v.Int()))
		}
	default:
		s.texts("type", "string")
		if !follows {
			s.texts("default", k.tag.Get("default"))
		}
		s.form(k)
	}
}

// form says what a text looks like, as far as a schema can.
func (s schema) form(k key) {
	switch k.value.Interface().(type) {
	case time.Duration:
		s.texts("pattern", `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`)
	case Bytes:
		s.texts("pattern", `^[0-9]+(B|KiB|MiB|GiB)$`)
	case words.Amount:
		s.texts("pattern", `^(0|[1-9][0-9]{0,38})$`)
	}
	if one := k.tag.Get("one"); one != "" {
		s.write(jsontext.String("enum"), jsontext.BeginArray)
		s.texts(strings.Fields(one)...)
		s.write(jsontext.EndArray)
	}
}
