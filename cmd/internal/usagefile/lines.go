package usagefile

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"macronode/cmd/internal/jsonerror"
	"macronode/core/accounting"
)

// lines reads a file line by line. Each line, the last one too, ends with a line feed.
type lines struct {
	from *bufio.Reader
	text []byte
	err  error
	n    int
}

func newLines(from io.Reader) *lines { return &lines{from: bufio.NewReaderSize(from, maxLine)} }

// next reads a line. It returns false at the end, and if there is an error.
func (l *lines) next() bool {
	text, err := l.from.ReadSlice('\n')
	l.n++
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		l.err = &Problem{Line: l.n, Detail: fmt.Sprintf("is longer than %d bytes", maxLine)}
	case errors.Is(err, io.EOF) && len(text) > 0:
		l.err = &Problem{Line: l.n, Detail: "has no line feed: the file was cut"}
	case errors.Is(err, io.EOF):
	case err != nil:
		l.err = fmt.Errorf("read: %w", err)
	default:
		l.text = text[:len(text)-1]
		return true
	}
	return false
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
