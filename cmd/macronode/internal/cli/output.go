package cli

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"macronode/adapters/client"
	"macronode/cmd/macronode/internal/exit"
)

// executions are the writes of a command that the node has executed. They are reported if the output of the command
// cannot be written.
type executions struct {
	n     int
	last  string // the last one, as text
	again string // how to repeat the command so that it takes effect once; empty: it has no such way
}

// outputWriter counts the bytes written to it, and keeps the first error for the exit code.
type outputWriter struct {
	io.Writer
	n      int
	failed *error
}

func (w *outputWriter) Write(p []byte) (int, error) {
	w.n += len(p)
	n, err := w.Writer.Write(p)
	if err != nil {
		w.fail(err)
	}
	return n, err
}

func (w *outputWriter) fail(err error) {
	if *w.failed == nil {
		*w.failed = err
	}
}

// output returns w as an output of the command, which may be a file beside standard output.
func (c *Console) output(w io.Writer) *outputWriter {
	return &outputWriter{Writer: w, failed: &c.outputErr}
}

// addExecution records that the node has executed a write.
func (c *Console) addExecution(e client.Execution) {
	var answer struct {
		TxID string `json:"txid"`
		ID   string `json:"id"`
	}
	_ = json.Unmarshal(e.Response, &answer) // a response has one of them, or none
	text := e.Method + " " + e.Path
	for _, name := range []string{answer.TxID, answer.ID} {
		if name != "" {
			text += ", " + name
		}
	}
	if e.IdempotencyKey != "" {
		text += ", idempotency key " + e.IdempotencyKey
	}
	c.executions.n, c.executions.last = c.executions.n+1, text
}

// lostOutput returns the error of a command whose output could not be written. If the node has executed a write, the
// exit code is not that of a failure: a script would repeat the write.
func (c *Console) lostOutput(err error) error {
	done := &c.executions
	if err == nil || c.outputErr == nil || done.n == 0 {
		return err
	}
	text := "the node has executed " + done.last
	if done.n > 1 {
		text = fmt.Sprintf("the node has executed %d requests, at last %s", done.n, done.last)
	}
	if done.again != "" {
		text += ": " + done.again
	}
	return exit.New(exit.CodeUnknown, fmt.Errorf("%w\nthe output is incomplete, but %s", err, text))
}
