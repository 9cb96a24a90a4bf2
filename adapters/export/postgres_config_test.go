package export

import (
	"crypto/tls"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// reached is what a secureDatabase answers when the handshake of TLS was made.
const reached = "no role of this name"

// A secureDatabase is a server of PostgreSQL that makes the handshake of TLS, and then refuses the user.
type secureDatabase struct {
	address string
	cert    atomic.Pointer[tls.Certificate]
}

func newSecureDatabase(t *testing.T) *secureDatabase {
	d := new(secureDatabase)
	is := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return d.cert.Load(), nil }, ClientAuth: tls.RequestClientCert}
	d.address = serveEach(t, func(conn net.Conn) {
		if _, err := pgproto3.NewBackend(conn, conn).ReceiveStartupMessage(); err != nil {
			return
		}
		_, _ = conn.Write([]byte("S"))
		secure := tls.Server(conn, is)
		b := pgproto3.NewBackend(secure, secure)
		if _, err := b.ReceiveStartupMessage(); err != nil {
			return
		}
		b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "28000", Message: reached})
		_ = b.Flush()
	})
	return d
}

// replaceCertificate gives a server a new certificate, and writes the authority of it to a file.
func replaceCertificate(t *testing.T, cert *atomic.Pointer[tls.Certificate], authority string) {
	t.Helper()
	is := certificate(t, "127.0.0.1")
	cert.Store(&is)
	if authority != "" {
		write(t, authority, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: is.Certificate[0]})))
	}
}

// write replaces a file in place.
func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFilesOfDatabaseAreReadForEachConnection: while a file that the URL names cannot be used, the sink fails and names the option. When it
// can, also after the certificates were replaced, the next attempt uses it.
func TestFilesOfDatabaseAreReadForEachConnection(t *testing.T) {
	d, file := newSecureDatabase(t), filepath.Join(t.TempDir(), "file")
	replaceCertificate(t, &d.cert, "")
	for option, garbage := range map[string]string{
		"sslrootcert": "the file of sslrootcert has no certificate", "sslcert": "the file of sslcert has no certificate", "sslkey": `both "sslcert" and "sslkey" are required`,
		"passfile": reached, "servicefile": reached,
	} {
		_ = os.Remove(file)
		s, err := New(Config{Name: "test", Kind: KindPostgres, URL: "postgres://a@" + d.address + "/db?sslmode=require&" + option + "=" + file, Inflight: 1})
		if err != nil {
			t.Fatal(err)
		}
		expect := func(want string) {
			t.Helper()
			if got := s.Deliver(t.Context(), item(1)); got.Outcome != Retryable || !strings.Contains(got.Reason, want) || strings.Contains(got.Reason, file) {
				t.Errorf("%s: %+v, want %s", option, got, want)
			}
		}
		expect("the file of " + option + " cannot be read: no such file or directory")
		if err := syscall.Mkfifo(file, 0o600); err != nil {
			t.Fatal(err)
		}
		expect("the file of " + option + " must be a regular file")
		_ = os.Remove(file)
		write(t, file, "garbage\n")
		expect(garbage)
		if option == "sslrootcert" {
			replaceCertificate(t, &d.cert, file)
			expect(reached)
			replaceCertificate(t, &d.cert, "")
			expect("x509: ")
			replaceCertificate(t, &d.cert, file)
			expect(reached)
			_ = os.Remove(file)
			expect("the file of sslrootcert cannot be read")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestServiceOfDatabaseIsReadForEachConnection: the options of a service are not known before there is a connection.
func TestServiceOfDatabaseIsReadForEachConnection(t *testing.T) {
	d, file := newSecureDatabase(t), filepath.Join(t.TempDir(), "file")
	replaceCertificate(t, &d.cert, "")
	write(t, file, "[other]\nhost=x\n")
	s, err := New(Config{Name: "test", Kind: KindPostgres, URL: "postgres://a@" + d.address + "/db?service=macronode&servicefile=" + file, Inflight: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, c := range []struct{ text, want string }{
		{"[other]\nhost=x\n", "unable to find service: macronode"},
		{"garbage\n", "failed to read service file"},
		{"[macronode]\nconnect_timeout=5s\n", "invalid syntax"},
		{"[macronode]\ntarget_session_attrs=x\n", "an option of the environment or of the service is invalid"},
		{"[macronode]\nsslmode=require\n", reached},
	} {
		write(t, file, c.text)
		if got := s.Deliver(t.Context(), item(1)); got.Outcome != Retryable || !strings.Contains(got.Reason, c.want) {
			t.Errorf("%s: %+v, want %s", c.text, got, c.want)
		}
	}
}

// TestOptionsOfDatabaseAreChecked: an option that the client cannot parse is named, whatever the files of the URL have.
func TestOptionsOfDatabaseAreChecked(t *testing.T) {
	const files = "&sslrootcert=/nowhere&sslcert=/nowhere&sslkey=/nowhere&passfile=/nowhere&servicefile=/nowhere&service=x"
	for options, want := range map[string]string{
		"sslmode=verify-full": "", "sslrootcert=system": "", "search_path=usage": "", "host=/tmp": "", "host=a,b&port=1,2": "", "port=1,2&host=a,b": "",
		"connect_timeout=5s":                                "the option connect_timeout with the value \"5s\": must be a number of seconds",
		"connect_timeout=abc&sslmode=require":               "the option connect_timeout",
		"sslmode=full":                                      "the option sslmode with the value \"full\": must be disable",
		"statement_cache_capacity=x":                        "the option statement_cache_capacity",
		"target_session_attrs=best":                         "the option target_session_attrs",
		"pool_max_conns=many":                               "the option pool_max_conns with the value \"many\": must be a value that",
		"port=1,2":                                          "must have a port",
		"port=70000&sslmode=disable":                        "must have a port",
		"min_protocol_version=3.2&max_protocol_version=3.0": "contradict each other",
	} {
		url := "postgres://a@127.0.0.1/db?" + options + files
		s, err := New(Config{Name: "test", Kind: KindPostgres, URL: url, Inflight: 1})
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "sink test")) {
			t.Errorf("%s: %v, want %q", options, err, want)
		}
		if err == nil {
			_ = s.Close()
		}
	}
}

// TestEnvironmentOfDatabaseIsReadForEachConnection: the environment can name files too. A sink is made with any of them.
func TestEnvironmentOfDatabaseIsReadForEachConnection(t *testing.T) {
	d := newSecureDatabase(t)
	replaceCertificate(t, &d.cert, "")
	t.Setenv("PGSSLMODE", "require")
	for name, want := range map[string]string{"PGSSLROOTCERT": "unable to read CA file", "PGSERVICE": "failed to read service file", "PGCONNECT_TIMEOUT": "invalid syntax"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PGSERVICEFILE", "/nowhere/service")
			t.Setenv(name, "/nowhere/file")
			if got := deliverOnce(t, Config{Name: "test", Kind: KindPostgres, URL: "postgres://a@" + d.address + "/db", Inflight: 1}, item(1)); got.Outcome != Retryable || !strings.Contains(got.Reason, want) {
				t.Errorf("%+v, want %s", got, want)
			}
		})
	}
}

// TestAuthoritiesAreReadForEachConnection: after the certificate of a server of NATS or a broker of Kafka was replaced, and the file of
// authorities with it, the next connection uses both.
func TestAuthoritiesAreReadForEachConnection(t *testing.T) {
	var cert atomic.Pointer[tls.Certificate]
	file := filepath.Join(t.TempDir(), "ca.pem")
	replaceCertificate(t, &cert, file)
	is := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cert.Load(), nil }}
	b := newBroker(t, func(o *natsd.Options) { o.TLSConfig = is })
	b.create(nil, nats.RootCAs(file))
	bus := b.config()
	bus.CAFile = file
	sink := newNATS(bus)
	defer sink.Close()
	topic := Config{Servers: []string{"tls://" + serveEach(t, func(conn net.Conn) { _ = tls.Server(conn, is).HandshakeContext(t.Context()) })}, CAFile: file}
	for seq := range uint64(3) {
		if seq > 0 {
			replaceCertificate(t, &cert, file)
			sink.session.conn.Close()
		}
		deliver(t, sink, item(seq+1))
		conn, err := topic.dialKafka(t.Context(), "tcp", strings.TrimPrefix(topic.Servers[0], "tls://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
	replaceCertificate(t, &cert, "")
	if _, err := topic.dialKafka(t.Context(), "tcp", strings.TrimPrefix(topic.Servers[0], "tls://")); err == nil {
		t.Error("the broker is not verified")
	}
}
