package config

import (
	"bytes"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"macronode/core/types"
)

// Schema returns the tree with these sections as JSON Schema.
func Schema(sections ...Section) []byte {
	var b bytes.Buffer
	s := schema{jsontext.NewEncoder(&b, jsontext.WithIndent("  ")), sections}
	s.open(jsontext.BeginObject)
	s.texts("$schema", "https://json-schema.org/draft/2020-12/schema", "title", "macronode configuration")
	s.section(reflect.TypeFor[Config](), "object", "null")
	s.open(jsontext.EndObject)
	return b.Bytes()
}

// schema writes JSON tokens to memory in a valid order, so errors are not checked.
type schema struct {
	to       *jsontext.Encoder
	sections []Section // of the tree, beside its own
}

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

// raw writes a JSON text.
func (s schema) raw(text string) {
	if err := s.to.WriteValue(jsontext.Value(text)); err != nil {
		panic("config: " + err.Error())
	}
}

// section writes a section. In the tree it may be empty, which sets nothing; in an entry it must
// not be empty.
func (s schema) section(t reflect.Type, types ...string) {
	s.write(jsontext.String("type"), jsontext.BeginArray)
	s.texts(types...)
	s.write(jsontext.EndArray, jsontext.String("additionalProperties"), jsontext.False, jsontext.String("properties"), jsontext.BeginObject)
	var need []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, ok := f.Tag.Lookup("key")
		if !ok {
			continue
		}
		if f.Tag.Get("need") != "" {
			need = append(need, name)
		}
		s.write(jsontext.String(name), jsontext.BeginObject)
		s.texts("description", f.Tag.Get("doc"))
		k := key{tag: f.Tag, value: reflect.New(f.Type).Elem()}
		switch {
		case isSection(f.Type):
			s.section(f.Type, types...)
		case isList(f.Type):
			s.list(k)
		default:
			s.leaf(k)
		}
		s.write(jsontext.EndObject)
	}
	if t == reflect.TypeFor[Config]() {
		s.added(types)
	}
	s.write(jsontext.EndObject)
	s.required(need)
	for _, group := range groups(t) {
		s.write(jsontext.String("oneOf"), jsontext.BeginArray)
		for _, name := range group[1:] {
			s.write(jsontext.BeginObject)
			s.required([]string{name})
			s.write(jsontext.EndObject)
		}
		s.write(jsontext.EndArray)
	}
}

// added writes the sections that planes add to the tree.
func (s schema) added(types []string) {
	for _, of := range s.sections {
		s.write(jsontext.String(of.Key), jsontext.BeginObject)
		s.texts("description", of.Doc)
		s.section(reflect.TypeOf(of.New()).Elem(), types...)
		s.write(jsontext.EndObject)
	}
}

func (s schema) required(names []string) {
	if len(names) > 0 {
		s.write(jsontext.String("required"), jsontext.BeginArray)
		s.texts(names...)
		s.write(jsontext.EndArray)
	}
}

func (s schema) list(k key) {
	kind, most, of := "array", "maxItems", "items"
	if k.named() {
		kind, most, of = "object", "maxProperties", "additionalProperties"
		s.write(jsontext.String("propertyNames"), jsontext.BeginObject)
		s.texts("pattern", forms["label"].pattern.String())
		s.write(jsontext.EndObject)
	}
	s.texts("type", kind)
	s.write(jsontext.String(most), jsontext.Int(int64(k.most())), jsontext.String(of), jsontext.BeginObject)
	entry := k.value.Type().Elem()
	if isSection(entry) {
		s.section(entry, "object")
	} else {
		s.leaf(key{tag: k.tag, value: reflect.New(entry).Elem(), entry: true})
	}
	s.write(jsontext.EndObject)
}

func (s schema) leaf(k key) {
	leader, follows := k.follows()
	if follows {
		s.texts("$comment", "default: as "+leader)
	}
	_, set := k.tag.Lookup("default")
	set = set && !follows && !k.entry
	switch k.value.Interface().(type) {
	case bool:
		s.texts("type", "boolean")
		if set {
			s.write(jsontext.String("default"), jsontext.Bool(k.tag.Get("default") == "true"))
		}
	case int:
		s.texts("type", "integer")
		s.bounds(k)
		if set {
			s.write(jsontext.String("default"))
			s.raw(k.tag.Get("default"))
		}
	case Rate:
		s.texts("type", "number")
		s.bounds(k)
	case Burst:
		s.write(jsontext.String("anyOf"), jsontext.BeginArray, jsontext.BeginObject)
		s.texts("type", "integer")
		s.bounds(k)
		s.write(jsontext.EndObject, jsontext.BeginObject)
		s.texts("type", "string", "pattern", sizes)
		s.write(jsontext.EndObject, jsontext.EndArray)
	default:
		s.texts("type", "string")
		if set {
			s.texts("default", k.tag.Get("default"))
		}
		s.form(k)
	}
}

// bounds writes the range of a number.
func (s schema) bounds(k key) {
	s.write(jsontext.String("minimum"))
	s.raw(k.tag.Get("min"))
	s.write(jsontext.String("maximum"))
	s.raw(k.tag.Get("max"))
}

const sizes = `^[0-9]+(B|KiB|MiB|GiB)$`

// form writes the form of a text, as far as a schema can express it.
func (s schema) form(k key) {
	switch k.value.Interface().(type) {
	case time.Duration:
		s.texts("pattern", `^[+-]?((([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+|0)$`)
	case Bytes:
		s.texts("pattern", sizes)
	case types.Amount:
		s.texts("pattern", `^(0|[1-9][0-9]{0,38})$`)
	case netip.Prefix:
		s.texts("pattern", `^[0-9A-Fa-f.:]+/[0-9]{1,3}$`)
	}
	if f, ok := forms[k.tag.Get("form")]; ok {
		s.texts("pattern", f.pattern.String(), "maxLength")
		s.write(jsontext.Int(longest))
	}
	if one := k.tag.Get("one"); one != "" {
		s.write(jsontext.String("enum"), jsontext.BeginArray)
		s.texts(strings.Fields(one)...)
		s.write(jsontext.EndArray)
	}
}
