// Package exit has the exit codes of macronode, and the error that carries one.
package exit

// Exit codes. They are a contract: scripts depend on them.
const (
	CodeDone    = 0
	CodeFailed  = 1 // it was rejected, it failed, or it does not exist
	CodeUnable  = 2 // nothing was tried: wrong command line or configuration, or the node cannot start
	CodeUnknown = 3 // the outcome is unknown, or a write took effect and its output was lost: repeat the command, with the same idempotency key if it has one
)

// Help describes the codes in the help text.
const Help = `Exit codes: 0 done; 1 refused or failed; 2 wrong usage or configuration, or the node cannot start; ` +
	`3 the outcome is not known, or a write took effect and its output could not be written: repeat the command, with the printed key if there is one.`

// Error is an error with its exit code.
type Error struct {
	Code int
	error
}

// Unwrap returns the error without the code.
func (e *Error) Unwrap() error { return e.error }

// New returns an error that ends the process with a code.
func New(code int, err error) error { return &Error{code, err} }

// Unable returns err with CodeUnable: a command stopped before it tried anything. It returns nil if err is nil.
func Unable(err error) error {
	if err == nil {
		return nil
	}
	return New(CodeUnable, err)
}
