package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"macronode/adapters/nodedir"
	"macronode/adapters/s3"
	"macronode/adapters/services"
	"macronode/core/event"
)

// s3Interface derives the secret access keys of the S3 interface.
type s3Interface struct{ root nodedir.S3Secret } // zero: the node has no S3 interface

// secret returns the secret access key of an API key. It is empty if the node has no S3 interface.
func (i *s3Interface) secret(k *event.Key) string {
	if i.root == (nodedir.S3Secret{}) {
		return ""
	}
	return i.root.AccessKey(k.ID, k.Hash)
}

// openS3 reads the secret of the S3 interface, if the node has one. A secret that is made for a journal that exists is logged: clients
// may have had another one.
func (s *Server) openS3() (err error) {
	if s.listeners.s3().Address == "" {
		return nil
	}
	dir := string(s.store.dir)
	had := nodedir.HasS3Secret(dir)
	if s.s3.root, err = nodedir.OpenS3Secret(dir, rand.Reader); err != nil || had {
		return err
	}
	if segments, err := os.ReadDir(s.store.segmentsDir()); err == nil && len(segments) > 0 {
		s.log.Warn("s3.secret was missing and is created: S3 clients with a secret access key of the previous one get SignatureDoesNotMatch; put that file back, or show the new ones with macronode keys s3",
			"path", nodedir.S3SecretPath(dir))
	}
	return nil
}

// s3Listener returns the listener of the S3 interface, or none.
func (s *Server) s3Listener() []services.Run {
	c := s.listeners.s3()
	if c.Address == "" {
		return nil
	}
	return []services.Run{s.listeners.service(c, s.gauges.s3Listener(), s.s3Handler, func(r *nodedir.Run) *string { return &r.Listen.S3 }, func(context.Context) {})}
}

func (s *Server) s3Handler() http.Handler {
	rows, of := s.store.readModel, s.start.S3
	return s.publicAPI().ServeS3(s3.New(s3.Config{Rows: rows, Names: names{s.index, rows, s.start.Deadline}, Contents: s.objects.files, Transfers: s.metrics.Objects(), Log: s.log,
		Region: of.Region, Domain: of.Domain}))
}

// together returns the work of a service that consists of several. It is up when all are up, and ends when all have ended. The
// end of one ends the others.
func together(first services.Run, others ...services.Run) services.Run {
	if len(others) == 0 {
		return first
	}
	return func(ctx context.Context, up func()) error {
		g, ctx := errgroup.WithContext(ctx)
		var down atomic.Int32
		down.Store(int32(1 + len(others)))
		for _, run := range append([]services.Run{first}, others...) {
			g.Go(func() (err error) {
				defer func() {
					if v := recover(); v != nil {
						err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
					}
				}()
				return run(ctx, sync.OnceFunc(func() {
					if down.Add(-1) == 0 {
						up()
					}
				}))
			})
		}
		return g.Wait()
	}
}
