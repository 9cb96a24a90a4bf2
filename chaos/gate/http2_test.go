package gate_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// tlsSettings returns the settings of a node with TLS, and the trust of its clients.
func tlsSettings(t *testing.T) (sets []string, trust *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir, pool := t.TempDir(), x509.NewCertPool()
	for name, block := range map[string]*pem.Block{"cert": {Type: "CERTIFICATE", Bytes: der}, "key": {Type: "PRIVATE KEY", Bytes: secret}} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		sets = append(sets, "listen.tls."+name+"="+path)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	pool.AddCert(c)
	return sets, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}
}

// TestCancelledHTTP2Requests: HTTP/2 requests that are cancelled as fast as they are sent, and connections that
// end in the middle, hold no permits. Other requests are served meanwhile, with upstreams of either protocol.
func TestCancelledHTTP2Requests(t *testing.T) {
	for _, protocol := range []string{"http1", "http2"} {
		t.Run(protocol, func(t *testing.T) { checkCancelled(t, protocol) })
	}
}

func checkCancelled(t *testing.T, protocol string) {
	sets, trust := tlsSettings(t)
	h := startBy(t, protocol, append(sets, "permits.proxy=64", "queue.proxy=64", "http.streams=32")...)
	h.hold.Store(int64(time.Millisecond))
	at := strings.TrimPrefix(h.HTTP, "http://")
	var wg sync.WaitGroup
	var sent atomic.Int64
	const clients, each = 8, 400
	for i := range clients {
		wg.Go(func() {
			for range max(1, *aborts/clients/each) {
				sent.Add(int64(cancelRequests(t, at, trust, i, each)))
			}
		})
	}
	wire := &http.Transport{TLSClientConfig: trust.Clone(), ForceAttemptHTTP2: true}
	defer wire.CloseIdleConnections()
	served := 0
	for over := done(&wg); ; {
		if get(t, wire, "https://"+at+"/open") == http.StatusOK {
			served++
		}
		select {
		case <-over:
		default:
			continue
		}
		break
	}
	h.awaitIdle()
	if code := get(t, wire, "https://"+at+"/open"); code != http.StatusOK || served == 0 || sent.Load() < int64(*aborts/10) {
		t.Errorf("afterwards %d; %d others were served, %d requests were taken back", code, served, sent.Load())
	}
	t.Logf("%d requests of HTTP/2 taken back at once, all permits back", sent.Load())
}

func done(wg *sync.WaitGroup) <-chan struct{} {
	over := make(chan struct{})
	go func() { wg.Wait(); close(over) }()
	return over
}

func get(t *testing.T, by *http.Transport, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := by.RoundTrip(req)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// cancelRequests sends requests on one connection and cancels most of them, until it gets GOAWAY or has sent the
// most; then it drops the connection.
func cancelRequests(t *testing.T, at string, trust *tls.Config, seed, most int) (sent int) {
	c := trust.Clone()
	c.NextProtos = []string{"h2"}
	conn, err := tls.Dial("tcp", at, c)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer conn.Close()
	var heard sync.WaitGroup
	f := http2.NewFramer(conn, nil)
	heard.Go(func() { _, _ = io.Copy(io.Discard, conn) })
	defer heard.Wait()
	defer conn.Close()
	var text bytes.Buffer
	code := hpack.NewEncoder(&text)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil || f.WriteSettings() != nil {
		return 0
	}
	for ; sent < most; sent++ {
		text.Reset()
		for _, h := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "node"}, {":path", []string{"/open", "/v1/issue", "/openapi.json"}[(sent+seed)%3]}} {
			if err := code.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}); err != nil {
				panic(err)
			}
		}
		stream := uint32(2*sent + 1)
		err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: text.Bytes(), EndStream: sent%2 == 0, EndHeaders: true})
		if err == nil && sent%7 > 0 {
			err = f.WriteRSTStream(stream, http2.ErrCodeCancel)
		}
		if err != nil {
			break
		}
	}
	return sent
}
