package adminapi

import (
	"context"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync"
	"time"
)

// profile serves net/http/pprof. A profile or a trace takes as long as its query says: it ends when the credential of its caller does.
func (a *API) profile(w http.ResponseWriter, r *http.Request) {
	ctx, end := context.WithCancel(r.Context())
	var watcher sync.WaitGroup
	watcher.Go(func() { a.watchCredential(ctx, end, r) })
	serveProfile(&endingResponse{w, ctx}, r.WithContext(ctx))
	hasEnded := ctx.Err() != nil
	end()
	watcher.Wait()
	if hasEnded {
		panic(http.ErrAbortHandler) // what is there must not look like a whole profile
	}
}

// watchCredential calls end when the credential of a request is no longer valid. It returns when ctx ends.
func (a *API) watchCredential(ctx context.Context, end context.CancelFunc, r *http.Request) {
	check := time.NewTicker(a.checkInterval)
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-check.C:
		}
		if _, ok := a.holder(r); !ok {
			a.Log.Warn("admin request ended: its credential is no longer valid", "path", r.URL.Path, "from", r.RemoteAddr)
			end()
			return
		}
	}
}

// endingResponse accepts nothing more once its request has ended.
type endingResponse struct {
	http.ResponseWriter
	request context.Context //nolint:containedctx // it lives as long as its request
}

func (w *endingResponse) Write(b []byte) (int, error) {
	if err := w.request.Err(); err != nil {
		return 0, err
	}
	return w.ResponseWriter.Write(b)
}

// serveProfile serves net/http/pprof. Its handlers parse the path.
func serveProfile(w http.ResponseWriter, r *http.Request) {
	switch strings.TrimPrefix(r.URL.Path, "/debug/pprof/") {
	case "cmdline":
		pprof.Cmdline(w, r)
	case "profile":
		pprof.Profile(w, r)
	case "symbol":
		pprof.Symbol(w, r)
	case "trace":
		pprof.Trace(w, r)
	default:
		pprof.Index(w, r)
	}
}
