package httpserver

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// greets connects and returns the negotiated parameters.
func (r *running) greets(t *testing.T, c *tls.Config) (*tls.Conn, error) {
	t.Helper()
	if c.ServerName == "" && !c.InsecureSkipVerify {
		c = c.Clone()
		c.ServerName = "127.0.0.1"
	}
	conn := tls.Client(r.dial(t), c)
	return conn, conn.Handshake()
}

func TestTLSVersionAndKeyExchange(t *testing.T) {
	quantum := []tls.CurveID{tls.X25519MLKEM768}
	classic := []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384}
	for _, c := range []struct {
		name     string
		required bool
		most     uint16
		knows    []tls.CurveID
		agreed   tls.CurveID // 0: rejected
	}{
		{"whoever knows it", false, tls.VersionTLS13, nil, tls.X25519MLKEM768},
		{"who names it last", false, tls.VersionTLS13, []tls.CurveID{tls.X25519, tls.CurveP256, tls.X25519MLKEM768}, tls.X25519MLKEM768},
		{"who does not know it", false, tls.VersionTLS13, classic, tls.X25519},
		{"required, of who knows it", true, tls.VersionTLS13, quantum, tls.X25519MLKEM768},
		{"required, of who does not", true, tls.VersionTLS13, classic, 0},
		{"an older version", false, tls.VersionTLS12, nil, 0},
	} {
		server, client := shows(t, c.required)
		config := local()
		config.TLS = server
		r := start(t, config, respondWith("here"), nil)
		client.MaxVersion, client.CurvePreferences = c.most, c.knows
		conn, err := r.greets(t, client)
		if is := conn.ConnectionState(); (err == nil) != (c.agreed != 0) || is.CurveID != c.agreed || err == nil && is.Version != tls.VersionTLS13 {
			t.Errorf("%s: %v, version %x, %v", c.name, is.CurveID, is.Version, err)
		}
	}
}

// TestCertificateIsReplaced: new connections use the new certificate; established ones continue.
func TestCertificateIsReplaced(t *testing.T) {
	first, client := shows(t, false)
	second, other := shows(t, false)
	config := local()
	config.TLS = first
	r := start(t, config, respondWith("here"), nil)
	client.ClientSessionCache = tls.NewLRUClientSessionCache(4) // it would resume if the server allowed it
	before, err := r.greets(t, client)
	if err != nil {
		t.Fatal(err)
	}
	from := bufio.NewReader(before)
	if _, _, body, err := ask(before, from); body != "here" || err != nil {
		t.Fatalf("before: %q, %v", body, err)
	}
	first.SetCertificate(second.Certificate())
	if _, _, body, err := ask(before, from); body != "here" || err != nil {
		t.Fatalf("who was there: %q, %v", body, err)
	}
	if _, err := r.greets(t, client); err == nil {
		t.Fatal("who comes is shown the old one")
	}
	after, err := r.greets(t, other)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, body, err := ask(after, bufio.NewReader(after)); body != "here" || err != nil {
		t.Fatalf("after: %q, %v", body, err)
	}
}

func TestUnixSocketsHaveNoTLS(t *testing.T) {
	config := Default("unix:" + t.TempDir() + "/sock")
	config.TLS, _ = shows(t, false)
	conn := start(t, config, respondWith("here"), nil).dial(t)
	if _, _, body, err := ask(conn, bufio.NewReader(conn)); body != "here" || err != nil {
		t.Fatalf("%q, %v", body, err)
	}
}

// TestPlainHTTPOnTLSListener: a plain HTTP request gets an explanation.
func TestPlainHTTPOnTLSListener(t *testing.T) {
	config := local()
	config.TLS, _ = shows(t, false)
	conn := start(t, config, respondWith("here"), nil).dial(t)
	if _, err := io.WriteString(conn, hello); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(b), "HTTP/1.0 400 Bad Request\r\n") {
		t.Fatalf("%q, %v", b, err)
	}
}

// TestHijackedConnections: a hijacked connection carries any protocol, with TLS and without; each
// side sees the end of the other.
func TestHijackedConnections(t *testing.T) {
	server, client := shows(t, false)
	for _, within := range []bool{false, true} {
		config := local()
		if within {
			config.TLS = server
		}
		r := start(t, config, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, with, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Errorf("within TLS %v: %v", within, err)
				return
			}
			defer func() { _ = conn.Close() }()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			_, _ = io.Copy(conn, with)
			_ = conn.(interface{ CloseWrite() error }).CloseWrite()
		}), nil)
		conn := r.dial(t)
		var half interface{ CloseWrite() error } = conn.(*net.TCPConn)
		if within {
			shaken, err := r.greets(t, client)
			if err != nil {
				t.Fatal(err)
			}
			conn, half = shaken, shaken
		}
		const early, late = "GET\n\x81 no header\r\r\n", "Transfer-Encoding: chunked\r\n\r\nzz\r\n"
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"+early); err != nil {
			t.Fatal(err)
		}
		from := bufio.NewReader(conn)
		resp, err := http.ReadResponse(from, nil)
		if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("within TLS %v: %+v, %v", within, resp, err)
		}
		if _, err := io.WriteString(conn, late); err != nil {
			t.Fatal(err)
		}
		if err := half.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(from); err != nil || string(b) != early+late {
			t.Errorf("within TLS %v: %q, %v", within, b, err)
		}
	}
}

// TestAbortedResponseHasNoCloseNotify: a connection that is reset with TLS sends nothing that
// looks like the end of a response.
func TestAbortedResponseHasNoCloseNotify(t *testing.T) {
	config := local()
	server, client := shows(t, false)
	config.TLS = server
	for _, abrupt := range []bool{false, true} {
		r := start(t, config, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.0 200 OK\r\n\r\nhalf")
			if abrupt {
				_ = conn.(interface{ SetLinger(int) error }).SetLinger(0)
			}
			_ = conn.Close()
		}), nil)
		conn, err := r.greets(t, client)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, hello); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(conn); (err != nil) != abrupt {
			t.Errorf("reset %v: ended with %v", abrupt, err)
		}
	}
}
