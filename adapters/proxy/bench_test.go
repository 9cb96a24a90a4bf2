package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"syscall"
	"testing"

	"macronode/adapters/proxy"
	"macronode/core/event"
	"macronode/core/gateway/upstream"
)

// BenchmarkProxy and BenchmarkReverseProxy send the same request over loopback, through this
// proxy and through that of the standard library with the same transport. Compare the CPU time:
// client and upstream are included in both.
func BenchmarkProxy(b *testing.B) {
	benchmark(b, func(to string) http.Handler {
		c := proxy.Default()
		c.Upstreams = []proxy.Upstream{{Name: "app"}}
		c.Upstreams[0].URLs = append(c.Upstreams[0].URLs, mustURL(to))
		c.Routes = []proxy.Route{{Prefix: "/"}}
		c.Fail = func(w http.ResponseWriter, _ *http.Request, p event.Problem) { w.WriteHeader(p.Status()) }
		port := newCorePort(upstream.Default(1))
		port.isMuted = true
		p, err := proxy.New(c, port)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(p.Retire)
		return p
	})
}

func BenchmarkReverseProxy(b *testing.B) {
	benchmark(b, func(to string) http.Handler {
		transport := &http.Transport{DisableCompression: true, MaxIdleConns: 1024, MaxIdleConnsPerHost: 256, ReadBufferSize: 8 << 10}
		b.Cleanup(transport.CloseIdleConnections)
		return &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(mustURL(to))
			r.SetXForwarded()
		}}
	})
}

// BenchmarkDirect has no proxy: it measures the share of client and upstream.
func BenchmarkDirect(b *testing.B) {
	benchmark(b, func(string) http.Handler { return http.HandlerFunc(small) })
}

func small(w http.ResponseWriter, _ *http.Request) {
	w.Header()["Content-Type"] = []string{"application/json"}
	_, _ = io.WriteString(w, `{"hello":"world"}`)
}

func benchmark(b *testing.B, front func(to string) http.Handler) {
	up := httptest.NewServer(http.HandlerFunc(small))
	defer up.Close()
	s := httptest.NewServer(front(up.URL))
	defer s.Close()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	b.ReportAllocs()
	b.SetParallelism(16)
	began := cpu(b)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.URL, nil)
			if err != nil {
				b.Error(err)
				return
			}
			res, err := transport.RoundTrip(r)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	})
	b.ReportMetric(float64(cpu(b)-began)/float64(b.N), "cpu-ns/op")
}

// cpu returns the CPU time of this process in nanoseconds.
func cpu(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
