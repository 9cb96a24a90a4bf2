package httpserver

import (
	"crypto/tls"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// exhaustedListener fails with some errors before it accepts.
type exhaustedListener struct {
	net.Listener
	why    []syscall.Errno
	failed atomic.Int32
}

func (l *exhaustedListener) Accept() (net.Conn, error) {
	if n := int(l.failed.Load()); n < len(l.why) {
		l.failed.Add(1)
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.Addr(), Err: os.NewSyscallError("accept4", l.why[n])}
	}
	return l.Listener.Accept()
}

// TestAcceptWithoutFilesGoesOn: a process without a free file descriptor warns, and accepts again later, without TLS and with it.
func TestAcceptWithoutFilesGoesOn(t *testing.T) {
	for name, withTLS := range map[string]bool{"HTTP": false, "TLS": true} {
		var lines strings.Builder
		inner, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		full := &exhaustedListener{Listener: inner, why: []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EMFILE}}
		l := newListener(full, 8, 8)
		var door net.Listener = plainListener{l}
		scheme, config := "http", new(tls.Config)
		if withTLS {
			server, client := shows(t, false)
			scheme, config = "https", client
			hands := secure(l, server.config, time.Minute, nil)
			ended := make(chan struct{})
			go func() { defer close(ended); _ = hands.Run(t.Context()) }()
			defer func() { <-ended }()
			door = hands
		}
		srv := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ReadHeaderTimeout: time.Minute, ErrorLog: log.New(serverLog{slog.New(slog.NewTextHandler(&lines, nil))}, "", 0)}
		served := make(chan error, 1)
		go func() { served <- srv.Serve(door) }()
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
		resp, err := client.Get(scheme + "://" + inner.Addr().String())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = resp.Body.Close()
		if n := full.failed.Load(); int(n) != len(full.why) || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d errors, status %d", name, n, resp.StatusCode)
		}
		client.CloseIdleConnections()
		_ = srv.Close()
		_ = full.Close()
		if err := <-served; err != nil && !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("%s: %v", name, err)
		}
		if n := strings.Count(lines.String(), "level=WARN"); n != len(full.why) {
			t.Errorf("%s: %d warnings: %s", name, n, lines.String())
		}
	}
}
