// Package objectio moves the bytes of objects between requests and files. Every protocol that serves
// objects uses it:
//
//	body ──► Receive ──► upload ──► Sum, Store ──► row
//	row ──► Open ──► verified groups ──► response
package objectio

import (
	"context"
	"errors"
	"io"
	"syscall"

	"macronode/adapters/objectstore"
	"macronode/core/event"
	"macronode/core/storage"
)

// Errors of Receive and Open.
var (
	ErrLimit    = errors.New("objectio: the body is longer than the limit")
	ErrNoObject = errors.New("objectio: the object does not exist any more")
	ErrMoving   = errors.New("objectio: the object is replaced again and again")
)

// A WriteError is the failure of a file, not of a body.
type WriteError struct{ Err error }

func (e *WriteError) Error() string { return "write an object: " + e.Err.Error() }

// Unwrap returns the error of the file.
func (e *WriteError) Unwrap() error { return e.Err }

// Receive copies body into up and into the writers of also, until it ends. ErrLimit reports that it has
// more bytes than limit, a *WriteError that up failed. Every other error is that of body.
func Receive(up *objectstore.Upload, body io.Reader, limit uint64, also ...io.Writer) error {
	for {
		buf, err := up.Room()
		if err != nil {
			return &WriteError{err}
		}
		n, err := body.Read(buf)
		if n > 0 {
			if up.Size()+uint64(n) > limit {
				return ErrLimit
			}
			for _, w := range also {
				_, _ = w.Write(buf[:n]) // a hash does not fail
			}
			if err := up.Add(n); err != nil {
				return &WriteError{err}
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// DiskProblem returns the problem of an upload that could not be written. full reports that the disk has
// no space.
func DiskProblem(err error) (p event.Problem, full bool) {
	switch {
	case errors.Is(err, objectstore.ErrTooLong):
		return event.PayloadTooLarge, false
	case errors.Is(err, objectstore.ErrNoSpace), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return event.Unavailable, true
	}
	return event.Unavailable, false
}

// ReadProblem returns the problem of an object that could not be read.
func ReadProblem(err error) event.Problem {
	if errors.Is(err, objectstore.ErrUnavailable) {
		return event.Unavailable
	}
	return event.ObjectUnreadable
}

// CheckIntact returns why the file of an object does not have its content. An upload of the same content
// then replaces the file.
func CheckIntact(ctx context.Context, contents *objectstore.Store, a storage.Address, row storage.Object) error {
	content, err := contents.Get(a, row)
	if err != nil {
		return err
	}
	defer content.Close()
	return content.WriteRange(0, row.Size, func([]byte) error { return ctx.Err() })
}

// Open opens an object. One that was deleted and put again meanwhile has another file: again returns
// its row at that time. ErrNoObject reports that there is no row any more; any other error that the file
// cannot be read.
func Open(contents *objectstore.Store, a storage.Address, row storage.Object, again func() (storage.Object, bool)) (*objectstore.Object, error) {
	for range 2 {
		content, err := contents.Get(a, row)
		if err == nil {
			return content, nil
		}
		now, held := again()
		if !held {
			return nil, ErrNoObject
		}
		if !errors.Is(err, objectstore.ErrGone) || now == row {
			return nil, err
		}
		row = now
	}
	return nil, ErrMoving
}
