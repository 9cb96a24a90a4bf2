package httpserver

import (
	"bufio"
	"crypto/tls"
	"io"
	"strings"
	"testing"
)

// greets connects, and says what was agreed on.
func (r *running) greets(t *testing.T, c *tls.Config) (*tls.Conn, error) {
	t.Helper()
	if c.ServerName == "" && !c.InsecureSkipVerify {
		c = c.Clone()
		c.ServerName = "127.0.0.1"
	}
	conn := tls.Client(r.dial(t), c)
	return conn, conn.Handshake()
}

func TestVersionAndKeyExchange(t *testing.T) {
	quantum := []tls.CurveID{tls.X25519MLKEM768}
	classic := []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384}
	for _, c := range []struct {
		name     string
		required bool
		most     uint16
		knows    []tls.CurveID
		agreed   tls.CurveID // 0: refused
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
		r := start(t, config, saying("here"), nil)
		client.MaxVersion, client.CurvePreferences = c.most, c.knows
		conn, err := r.greets(t, client)
		if is := conn.ConnectionState(); (err == nil) != (c.agreed != 0) || is.CurveID != c.agreed || err == nil && is.Version != tls.VersionTLS13 {
			t.Errorf("%s: %v, version %x, %v", c.name, is.CurveID, is.Version, err)
		}
	}
}

// TestAnotherCertificate: who comes behind Show is shown the new one; who was there goes on.
func TestAnotherCertificate(t *testing.T) {
	first, client := shows(t, false)
	second, other := shows(t, false)
	config := local()
	config.TLS = first
	r := start(t, config, saying("here"), nil)
	client.ClientSessionCache = tls.NewLRUClientSessionCache(4) // it would resume, if it could
	before, err := r.greets(t, client)
	if err != nil {
		t.Fatal(err)
	}
	from := bufio.NewReader(before)
	if _, _, body, err := ask(before, from); body != "here" || err != nil {
		t.Fatalf("before: %q, %v", body, err)
	}
	first.Show(second.Shown())
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
	conn := start(t, config, saying("here"), nil).dial(t)
	if _, _, body, err := ask(conn, bufio.NewReader(conn)); body != "here" || err != nil {
		t.Fatalf("%q, %v", body, err)
	}
}

// TestWhoSpeaksNoTLS is told so.
func TestWhoSpeaksNoTLS(t *testing.T) {
	config := local()
	config.TLS, _ = shows(t, false)
	conn := start(t, config, saying("here"), nil).dial(t)
	if _, err := io.WriteString(conn, hello); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(b), "HTTP/1.0 400 Bad Request\r\n") {
		t.Fatalf("%q, %v", b, err)
	}
}
