// Package jsonerror describes what is wrong in JSON that a user has written.
package jsonerror

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Describe returns an error of the package json without the names of Go types; other errors stay as they are.
func Describe(err error) error {
	if at := new(jsontext.SyntacticError); errors.As(err, &at) {
		return fmt.Errorf("invalid JSON: %w", at.Err)
	}
	at := new(json.SemanticError)
	if !errors.As(err, &at) {
		return err
	}
	name := strings.TrimPrefix(string(at.JSONPointer), "/")
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return fmt.Errorf("unknown member %q", name)
	case name == "":
		return errors.New("it is no object")
	}
	return fmt.Errorf("%s: invalid value", name)
}
