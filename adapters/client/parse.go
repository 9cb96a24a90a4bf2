package client

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// parse parses a response. Unknown members are ignored. A response without any of the members that a node always sends is from
// another server, which may answer 200 to anything.
func parse[T any](raw []byte, to *T) error {
	if err := json.Unmarshal(raw, to); err != nil {
		return fmt.Errorf("%w: %w", ErrWrongNode, err)
	}
	if always := required(reflect.TypeFor[T]()); len(always) > 0 && !hasMember(raw, always) {
		return fmt.Errorf("%w: a response without %s", ErrWrongNode, strings.Join(always, ", "))
	}
	return nil
}

// required returns the names of the members of a struct that are never omitted; nil for another type.
func required(of reflect.Type) (names []string) {
	if of.Kind() != reflect.Struct {
		return nil
	}
	for field := range of.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && !slices.ContainsFunc(strings.Split(options, ","), func(o string) bool { return o == "omitempty" || o == "omitzero" }) {
			names = append(names, name)
		}
	}
	return names
}

// hasMember reports whether a JSON object has one of some members.
func hasMember(raw []byte, names []string) bool {
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	if open, err := d.ReadToken(); err != nil || open.Kind() != '{' {
		return false
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil || slices.Contains(names, name.String()) {
			return err == nil
		}
		if d.SkipValue() != nil {
			return false
		}
	}
	return false
}
