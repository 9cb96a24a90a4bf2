package fs

import (
	"context"
	_ "macronode/core/record" // want `layer adapters/fs may not import core/record`
	_ "os"
)

type Runner struct{ done chan error }

func (r *Runner) Run(ctx context.Context) error {
	go func() { r.done <- ctx.Err() }()
	return <-r.done
}

func (r Runner) begin() { func() { go close(r.done) }() }

type wrapped struct{ *Runner }

func (w wrapped) begin() { go close(w.done) }

type Loose struct{}

func (Loose) Run() error { return nil }

func (Loose) begin() { go close(make(chan int)) } // want `no goroutine here: only a type with Run\(ctx\) error`

type Deaf struct{}

func (Deaf) Run(context.Context) {}

func (Deaf) begin() { go close(make(chan int)) } // want `no goroutine here: only a type with Run\(ctx\) error`

type Idle struct{ Run func(context.Context) error }

func (i Idle) begin() { go i.Run(nil) } // want `no goroutine here: only a type with Run\(ctx\) error`

func begin() { go close(make(chan int)) } // want `no goroutine here: only a type with Run\(ctx\) error`

var _ = func() { go begin() } // want `no goroutine here: only a type with Run\(ctx\) error`
