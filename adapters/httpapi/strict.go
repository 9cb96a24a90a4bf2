package httpapi

import (
	"errors"
	"strconv"
	"strings"

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

// strict is how bodies are read: no member that is unknown, twice there, or of
// another case; no null; only UTF-8, and nothing behind it.
var strict = json.JoinOptions(
	json.RejectUnknownMembers(true),
	json.WithUnmarshalers(json.JoinUnmarshalers(json.UnmarshalFromFunc(noNull[any]), json.UnmarshalFromFunc(readItems))),
)

// brisk is strict of a body that is texts and a number, at less cost: a number that is
// null is 0, which is none.
var brisk = json.JoinOptions(
	json.RejectUnknownMembers(true),
	json.WithUnmarshalers(json.JoinUnmarshalers(json.UnmarshalFromFunc(noNull[*string]), json.UnmarshalFromFunc(noNull[**string]))),
)

func noNull[T any](from *jsontext.Decoder, _ T) error {
	if from.PeekKind() == 'n' {
		return errNull
	}
	return errors.ErrUnsupported
}

// readItems reads the items of a batch, and no more than it takes: what they come to in
// memory is many times what they are on the wire.
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

// decode reads a body, strict or brisk.
func decode(body []byte, into any, how json.Options) error {
	err := json.Unmarshal(body, into, how)
	if err == nil {
		return nil
	}
	r := &refusal{problem: event.BadRequest, detail: "The body is not the JSON that this operation takes."}
	member := ""
	r.item, member = whose(err)
	switch {
	case errors.Is(err, json.ErrUnknownName):
		r.detail = "The body has a member that this operation does not know."
	case errors.Is(err, jsontext.ErrDuplicateName):
		r.detail = "The body has a member twice."
	case errors.Is(err, errItems):
		r.item, r.detail = 0, "items: must be at most 1000"
	case member != "":
		r.detail = member + ": is not of the kind that is wanted"
	}
	return r
}

// whose is the item of a batch, from 1, and the member at which a body could not be
// taken, where it is known; it is not where the text is no JSON.
func whose(err error) (item int, member string) {
	var at *json.SemanticError
	var text *jsontext.SyntacticError
	var path jsontext.Pointer
	switch {
	case errors.As(err, &at):
		path = at.JSONPointer
	case errors.As(err, &text):
		path = text.JSONPointer
	}
	parts := strings.Split(strings.TrimPrefix(string(path), "/"), "/")
	if len(parts) >= 2 && parts[0] == "items" {
		if n, err := strconv.Atoi(parts[1]); err == nil && n < types.MaxItems {
			item, parts = n+1, parts[2:]
		}
	}
	if text == nil && len(parts) > 0 && plain(parts[0]) {
		member = parts[0]
	}
	return item, member
}

// plain reports what a member of ours is made of.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && c != '_' {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 16
}
