package httpapi

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"macronode/adapters/httpapi/wire"
	"macronode/core/event"
	"macronode/core/types"
)

var (
	errNull  = errors.New("httpapi: null")
	errItems = errors.New("httpapi: more items than a batch takes")
)

// strict are the options for bodies: no unknown, repeated or differently cased members, no null, only valid UTF-8,
// and nothing after the value.
var strict = json.JoinOptions(
	json.RejectUnknownMembers(true),
	json.WithUnmarshalers(json.JoinUnmarshalers(json.UnmarshalFromFunc(noNull[any]), json.UnmarshalFromFunc(readItems))),
)

// strictFlat is a faster strict for bodies of strings and one number. A null number becomes 0, which validation
// rejects.
var strictFlat = json.JoinOptions(
	json.RejectUnknownMembers(true),
	json.WithUnmarshalers(json.JoinUnmarshalers(json.UnmarshalFromFunc(noNull[*string]), json.UnmarshalFromFunc(noNull[**string]))),
)

func noNull[T any](from *jsontext.Decoder, _ T) error {
	if from.PeekKind() == 'n' {
		return errNull
	}
	return errors.ErrUnsupported
}

// readItems reads the items of a batch and stops at the limit, because items take far more memory than their JSON.
func readItems(from *jsontext.Decoder, into *[]wire.BatchItem) error {
	if from.PeekKind() != '[' {
		return errors.ErrUnsupported
	}
	if _, err := from.ReadToken(); err != nil {
		return err
	}
	*into = make([]wire.BatchItem, 0, 8)
	for from.PeekKind() != ']' {
		if len(*into) == types.MaxItems {
			return errItems
		}
		var item wire.BatchItem
		if err := json.UnmarshalDecode(from, &item); err != nil {
			return err
		}
		*into = append(*into, item)
	}
	_, err := from.ReadToken()
	return err
}

// decode parses a body with the options strict or strictFlat.
func decode(body []byte, into any, how json.Options) error {
	err := json.Unmarshal(body, into, how)
	if err == nil {
		return nil
	}
	r := &refusal{problem: event.BadRequest, detail: "The body is not the JSON that this operation takes."}
	item, path := errorLocation(err)
	r.item = item
	member, isWhole := memberName(path)
	switch {
	case errors.Is(err, json.ErrUnknownName) && isWhole:
		r.detail = member + ": is not accepted by this operation"
	case errors.Is(err, json.ErrUnknownName):
		r.detail = "The body has a member that this operation does not accept."
	case errors.Is(err, jsontext.ErrDuplicateName):
		r.detail = repeatedMember("body", path)
	case errors.Is(err, errItems):
		r.item, r.detail = 0, "items: must be at most 1000"
	case member != "":
		r.detail = member + ": must " + requirement(err)
	}
	return r
}

// requirement describes what a member must be.
func requirement(err error) string {
	var at *json.SemanticError
	switch {
	case errors.Is(err, errNull):
		return "not be null"
	case !errors.As(err, &at) || at.GoType == nil:
		return "be another JSON value"
	}
	t := at.GoType
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "be a JSON string"
	case reflect.Bool:
		return "be true or false"
	case reflect.Slice:
		return "be a JSON array"
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return "be a JSON string with a time as in RFC 3339"
		}
		return "be a JSON object"
	default:
		return "be a whole JSON number"
	}
}

// errorLocation returns the item of a batch, from 1, and the path of the member that is invalid; zero values if they are not
// known, as for a syntax error.
func errorLocation(err error) (item int, path []string) {
	var at *json.SemanticError
	var text *jsontext.SyntacticError
	var pointer jsontext.Pointer
	switch {
	case errors.As(err, &at):
		pointer = at.JSONPointer
	case errors.As(err, &text):
		pointer = text.JSONPointer
	}
	path = pathOf(pointer)
	if len(path) >= 2 && path[0] == "items" {
		if n, err := strconv.Atoi(path[1]); err == nil && n < types.MaxItems {
			item, path = n+1, path[2:]
		}
	}
	if text != nil && !errors.Is(err, jsontext.ErrDuplicateName) {
		path = nil
	}
	return item, path
}

// pathOf returns the parts of a pointer.
func pathOf(p jsontext.Pointer) []string {
	return strings.Split(strings.TrimPrefix(string(p), "/"), "/")
}

// memberName names the member at a path by all parts, as "data.labels.route". It ends before an element of an array, and before a
// part that a response may not repeat: then it is not whole.
func memberName(path []string) (name string, isWhole bool) {
	for i, part := range path {
		if _, err := strconv.Atoi(part); err == nil || !isMemberName(part) {
			return strings.Join(path[:i], "."), false
		}
	}
	return strings.Join(path, "."), len(path) > 0
}

// repeatedMember says which member of a value of a kind occurs twice.
func repeatedMember(kind string, path []string) string {
	switch name, isWhole := memberName(path); {
	case isWhole:
		return name + ": occurs twice"
	case name != "":
		return name + ": has a member twice"
	default:
		return "The " + kind + " has a member twice."
	}
}

// isMemberName reports whether the name of a member may be repeated in a response: it is a word like the names of the
// members that operations have.
func isMemberName(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 32
}
