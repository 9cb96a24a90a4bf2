// Package ask has requests with their answers, so that they can be repeated and the answers
// compared. One program writes them, another reads them.
//
//	{"path":"/v1/transfer","key":"fill-7","body":"{…}","answer":"{…}"}      a line each
package ask

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Ask is a request and its answer. Body and Answer are the exact bytes.
type Ask struct {
	Path   string `json:"path"`
	Key    string `json:"key"`
	Body   string `json:"body"`
	Answer string `json:"answer"`
}

// Write appends one to a file.
func Write(to io.Writer, a Ask) error {
	line, err := json.Marshal(a)
	if err == nil {
		_, err = to.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write an ask: %w", err)
	}
	return nil
}

// Read reads a file, which must have at least one.
func Read(from io.Reader) (all []Ask, err error) {
	for d := json.NewDecoder(from); ; {
		var a Ask
		switch err := d.Decode(&a); {
		case errors.Is(err, io.EOF) && len(all) > 0:
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read asks: %w", err)
		}
		all = append(all, a)
	}
}
