package usagefile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"macronode/cmd/internal/jsonerror"
	"macronode/core/accounting"
)

// lines reads a file line by line. Each line, the last one too, ends with a line feed.
type lines struct {
	from *bufio.Scanner
	n    int // of the line
}

func newLines(from io.Reader) *lines {
	s := bufio.NewScanner(from)
	s.Buffer(nil, maxLine)
	s.Split(splitLine)
	return &lines{from: s}
}

var errCut = errors.New("has no line feed: the file was cut")

// splitLine is a bufio.SplitFunc.
func splitLine(data []byte, atEnd bool) (advance int, line []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i:i], nil
	}
	if atEnd && len(data) > 0 {
		return 0, nil, errCut
	}
	return 0, nil, nil
}

// next reads a line. It returns false at the end, and if there is an error.
func (l *lines) next() bool {
	l.n++
	return l.from.Scan()
}

func (l *lines) text() []byte { return l.from.Bytes() }

// err returns why a file was not read to its end: a *Problem, or an error of the file.
func (l *lines) err() error {
	switch err := l.from.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return &Problem{Line: l.n, Detail: fmt.Sprintf("is longer than %d bytes", maxLine)}
	case errors.Is(err, errCut):
		return &Problem{Line: l.n, Detail: err.Error()}
	case err != nil:
		return fmt.Errorf("read: %w", err)
	}
	return nil
}

// unmarshal reads an object. Its error is a *Problem.
func unmarshal(text []byte, to any) error {
	if err := jsonerror.Describe(json.Unmarshal(text, to, json.RejectUnknownMembers(true))); err != nil {
		return &Problem{Detail: err.Error()}
	}
	return nil
}

// fieldProblem returns a *accounting.FieldError as a *Problem.
func fieldProblem(err error) error {
	at := new(accounting.FieldError)
	if err == nil || !errors.As(err, &at) {
		return err
	}
	return &Problem{Field: at.Field, Detail: at.Why}
}
