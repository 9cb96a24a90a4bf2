// reverse is the proxy of Go's standard library, httputil.ReverseProxy, with a transport that
// keeps its connections and a pool of buffers, behind one token bucket of golang.org/x/time/rate.
// It prints its address; SIGTERM makes it finish running requests with http.Server.Shutdown, and
// end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"
)

func main() {
	to := flag.String("to", "", "host:port of the origin")
	limit := flag.Float64("rate", 1e6, "requests a second")
	burst := flag.Int("burst", 1e5, "requests at once")
	flag.Parse()
	if err := serve(*to, rate.NewLimiter(rate.Limit(*limit), *burst)); err != nil {
		fmt.Fprintln(os.Stderr, "reverse:", err)
		os.Exit(1)
	}
}

func serve(to string, limit *rate.Limiter) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	s := &http.Server{Handler: handler(to, limit), ReadHeaderTimeout: 5 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	err = s.Shutdown(context.Background())
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

func handler(to string, limit *rate.Limiter) http.Handler {
	origin := &url.URL{Scheme: "http", Host: to}
	proxy := &httputil.ReverseProxy{
		Transport: &http.Transport{DisableCompression: true, MaxIdleConns: 1024, MaxIdleConnsPerHost: 1024, IdleConnTimeout: 30 * time.Second},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(origin)
			r.SetXForwarded()
		},
		BufferPool: &buffers{},
		ErrorLog:   log.New(io.Discard, "", 0),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !limit.Allow() {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

// buffers is a pool of buffers for answers.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if kept, ok := b.pool.Get().(*[]byte); ok {
		return *kept
	}
	return make([]byte, 32<<10)
}

func (b *buffers) Put(buf []byte) { b.pool.Put(&buf) }
