package export

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A natsSession is a connection to a server of NATS. It does not reconnect: after an error the next attempt opens another session.
// So nothing is kept for a server that is down, and the secret is read again.
type natsSession struct {
	conn   *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream

	attempts atomic.Uint64 // that have begun

	mu      sync.Mutex                         // guards what follows
	waiting map[string]context.CancelCauseFunc // attempts by subject; at most Inflight, and one while it is opened
}

// Limits of a session.
const (
	natsReconnectBuffer = -1               // bytes that the client keeps while there is no connection: none
	natsPing            = 20 * time.Second // between two checks of an idle connection
	natsPings           = 1                // checks without an answer, after which the connection is closed
)

var errNoAck = errors.New("the stream acknowledges nothing: set no_ack to false")

// openNATS connects to one of the servers, and checks the stream. It ends with ctx.
func openNATS(ctx context.Context, c *Config) (*natsSession, error) {
	s := &natsSession{waiting: map[string]context.CancelCauseFunc{}}
	ctx, done := s.await(ctx, "")
	defer done()
	options, secure, err := natsOptions(c)
	if err != nil {
		return nil, err
	}
	var dialed []func() bool // each ends the rule that ctx closes a connection
	options = append(options, nats.ErrorHandler(s.failed), nats.SetCustomDialer(natsDialer(func(address string) (net.Conn, error) {
		conn, err := dialNATS(ctx, address, secure, &s.attempts, s.cancelAll)
		if err != nil {
			return nil, err
		}
		dialed = append(dialed, context.AfterFunc(ctx, func() { _ = conn.Close() }))
		return conn, nil
	})))
	s.conn, err = nats.Connect(strings.Join(c.Servers, ","), options...)
	if err != nil {
		return nil, because(ctx, err)
	}
	if err = s.checkStream(ctx, c.Stream); err == nil && !dialed[len(dialed)-1]() {
		err = context.Cause(ctx)
	}
	if err != nil {
		s.conn.Close()
		return nil, because(ctx, err)
	}
	return s, nil
}

// natsDialer opens a connection to an address, with TLS if it is to be encrypted.
type natsDialer func(address string) (net.Conn, error)

// Dial calls d.
func (d natsDialer) Dial(_, address string) (net.Conn, error) { return d(address) }

// SkipTLSHandshake tells nats.go to make no handshake of its own.
func (natsDialer) SkipTLSHandshake() bool { return true }

// checkStream checks that the stream exists, and acknowledges messages.
func (s *natsSession) checkStream(ctx context.Context, name string) (err error) {
	if s.js, err = jetstream.New(s.conn); err != nil {
		return err
	}
	if s.stream, err = s.js.Stream(ctx, name); err != nil {
		return err
	}
	if s.stream.CachedInfo().Config.NoAck {
		return errNoAck
	}
	return nil
}

// await returns a context for an attempt, which ends when the server reports that it may not use a subject.
func (s *natsSession) await(ctx context.Context, subject string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.attempts.Add(1)
	s.mu.Lock()
	s.waiting[subject] = cancel
	s.mu.Unlock()
	return ctx, func() {
		cancel(nil)
		s.mu.Lock()
		delete(s.waiting, subject)
		s.mu.Unlock()
	}
}

// failed ends the attempt whose subject the server does not permit. If it is none of theirs, it is one that all attempts use.
func (s *natsSession) failed(_ *nats.Conn, _ *nats.Subscription, err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	if !s.cancelOne(err) {
		s.cancelAll(err)
	}
}

// cancelOne ends the attempt whose subject an error names, if there is one.
func (s *natsSession) cancelOne(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for subject, cancel := range s.waiting {
		if subject != "" && strings.Contains(err.Error(), `"`+subject+`"`) {
			cancel(err)
			return true
		}
	}
	return false
}

// cancelAll ends all attempts.
func (s *natsSession) cancelAll(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cancel := range s.waiting {
		cancel(err)
	}
}

// natsOptions returns the options of a connection: names, times, TLS and the secret; and the settings of TLS, nil if only the server
// decides about it.
func natsOptions(c *Config) (all []nats.Option, is *tls.Config, err error) {
	all = []nats.Option{nats.Name("macronode"), nats.NoReconnect(), nats.ReconnectBufSize(natsReconnectBuffer), nats.IgnoreDiscoveredServers(), nats.SkipHostLookup(),
		nats.Timeout(connectTimeout), nats.PingInterval(natsPing), nats.MaxPingsOutstanding(natsPings)}
	secure := c.CAFile != ""
	for _, server := range c.Servers {
		secure = secure || strings.HasPrefix(server, "tls://")
	}
	if secure {
		if is, err = tlsWith(c.CAFile); err != nil {
			return nil, nil, err
		}
		all = append(all, nats.Secure())
	}
	secret, err := secretFile(c.SecretFile).natsSecret()
	if err != nil {
		return nil, nil, err
	}
	return append(all, secret), is, nil
}

// authoritiesFile is the limit of a file of authorities, in bytes.
const authoritiesFile = 1 << 20

// tlsWith returns settings of TLS with the authorities of a file; empty: those of the system.
func tlsWith(authorities string) (*tls.Config, error) {
	is := &tls.Config{MinVersion: tls.VersionTLS12}
	if authorities == "" {
		return is, nil
	}
	text, err := readFile(authorities, authoritiesFile)
	if err != nil {
		return nil, fmt.Errorf("the file of authorities %w", err)
	}
	if is.RootCAs = x509.NewCertPool(); !is.RootCAs.AppendCertsFromPEM(text) {
		return nil, errors.New("the file of authorities has no certificate")
	}
	return is, nil
}

// beginsCredentials is in each file of credentials of NATS.
const beginsCredentials = "-----BEGIN NATS USER JWT-----"

var errNATSSecret = errors.New("the secret file must have one line with a token, two lines with a user and a password, or credentials of NATS")

// natsSecret returns the option that authenticates a connection. It changes nothing if there is no file.
func (f secretFile) natsSecret() (nats.Option, error) {
	if f == "" {
		return func(*nats.Options) error { return nil }, nil
	}
	lines, err := f.lines()
	switch {
	case err != nil:
		return nil, err
	case len(lines) > 0 && lines[0] == beginsCredentials:
		return nats.UserCredentialBytes([]byte(strings.Join(lines, "\n"))), nil
	case len(lines) == 1:
		return nats.Token(lines[0]), nil
	case len(lines) == 2:
		return nats.UserInfo(lines[0], lines[1]), nil
	}
	return nil, errNATSSecret
}
