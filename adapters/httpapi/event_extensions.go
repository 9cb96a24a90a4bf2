package httpapi

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"macronode/core/event"
)

// decodeEvent parses an event in JSON. A member that is no attribute must have the name of an extension: a-z and 0-9.
func decodeEvent(text []byte, e *cloudEvent) error {
	if err := decode(text, e, strict); err != nil {
		return err
	}
	if len(e.Extensions) > 0 {
		return checkExtensions(e.Extensions)
	}
	return nil
}

// checkExtensions checks the names of the members of an object that is valid JSON.
func checkExtensions(object jsontext.Value) error {
	d := jsontext.NewDecoder(bytes.NewReader(object))
	_, err := d.ReadToken()
	for err == nil && d.PeekKind() != '}' {
		var name jsontext.Token
		if name, err = d.ReadToken(); err != nil {
			break
		}
		switch name := name.String(); {
		case isExtensionName(name):
		case isMemberName(name):
			return problemDetail(event.BadRequest, name+": is no attribute of an event")
		default:
			return problemDetail(event.BadRequest, "The event has a member that is no attribute.")
		}
		err = d.SkipValue()
	}
	return err
}

func isExtensionName(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
