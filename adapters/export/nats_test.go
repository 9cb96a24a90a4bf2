package export

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"macronode/adapters/natstest"
	"macronode/adapters/nettest"
)

// broker is a real server of NATS.
type broker struct {
	*natstest.Server
	t testing.TB
}

func newBroker(t testing.TB, change func(*natsd.Options)) *broker {
	return &broker{natstest.New(t, change), t}
}

// create creates the stream test.
func (b *broker) create(change func(*jetstream.StreamConfig), options ...nats.Option) {
	b.Create("test", change, options...)
}

func (b *broker) config() Config {
	return Config{Name: "test", Kind: KindNATS, Servers: []string{"nats://" + b.Address()}, Stream: "test", Subject: "test", Inflight: 1}
}

// shared is the server of the tests of the contract: each has a stream of its own.
var shared struct {
	broker *broker
	uses   atomic.Uint64
}

// natsTarget is a stream of a server, behind a proxy with faults.
type natsTarget struct {
	*broker
	stream string
	proxy  net.Listener

	limited bool // the stream has no room

	faulty
	conns map[net.Conn]bool
}

func newNATSTarget(t testing.TB) *natsTarget {
	if shared.broker == nil || shared.broker.t.Name() != t.Name() {
		shared.broker = newBroker(t, nil)
	}
	n := &natsTarget{broker: shared.broker, stream: "s" + strconv.FormatUint(shared.uses.Add(1), 10), conns: map[net.Conn]bool{}}
	n.Create(n.stream, nil)
	var err error
	if n.proxy, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go n.serve(served)
	t.Cleanup(func() {
		_ = n.proxy.Close()
		n.cut()
		<-served
	})
	return n
}

func (n *natsTarget) sink() Sink {
	c := n.config()
	c.Servers, c.Stream, c.Subject = []string{"nats://" + n.proxy.Addr().String()}, n.stream, n.stream
	s, err := New(c)
	if err != nil {
		n.t.Fatal(err)
	}
	return attempts{s, &n.faulty, func() {
		if n.limited {
			n.limit(-1)
			n.limited = false
		}
	}}
}

// arm: the connection is refused; it is cut before the server gets the item, or before the sink gets the acknowledgement; there
// is no acknowledgement, or one of another stream or without a place in it; the stream has no room; the server is restarted before it
// gets the item, or after it has it; the item reaches the server twice, and then nothing reaches the sink.
func (n *natsTarget) arm(fault string, _ uint64) {
	switch fault {
	case "refuse":
		n.cut()
	case "stream full":
		n.limit(1)
		n.limited = true
		return
	}
	n.set(fault)
}

// limit sets the bytes of the stream, to all messages; a message for which there is no room is rejected.
func (n *natsTarget) limit(most int64) {
	n.Use(func(js jetstream.JetStream) error {
		of, err := js.Stream(context.Background(), n.stream)
		if err != nil {
			return err
		}
		c := of.CachedInfo().Config
		c.MaxBytes, c.Discard = most, jetstream.DiscardNew
		_, err = js.UpdateStream(context.Background(), c)
		return err
	})
}

func (n *natsTarget) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		_ = c.Close()
	}
}

func (n *natsTarget) serve(done chan struct{}) {
	defer close(done)
	var all sync.WaitGroup
	defer all.Wait()
	for {
		c, err := n.proxy.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("tcp", n.Address())
		if err != nil || n.met("refuse") != "" {
			_ = c.Close()
			if err == nil {
				_ = s.Close()
			}
			continue
		}
		n.mu.Lock()
		n.conns[c], n.conns[s] = true, true
		n.mu.Unlock()
		var twice atomic.Bool
		all.Go(func() { n.pump(s, c, func(b []byte) []byte { return n.toServer(b, &twice) }) })
		all.Go(func() { n.pump(c, s, func(b []byte) []byte { return n.toSink(b, &twice) }) })
	}
}

// toServer returns what the server gets; nil: the connection is cut.
func (n *natsTarget) toServer(b []byte, twice *atomic.Bool) []byte {
	if !bytes.HasPrefix(b, []byte("HPUB "+n.stream)) {
		return b
	}
	switch n.met("drop", "restart", "twice") {
	case "drop":
		return nil
	case "restart":
		n.Restart()
		return nil
	case "twice":
		twice.Store(true)
		return append(b, b...)
	}
	return b
}

// toSink returns what the sink gets; nil: the connection is cut.
func (n *natsTarget) toSink(b []byte, twice *atomic.Bool) []byte {
	if !bytes.Contains(b, []byte(`{"stream":`)) {
		return b
	}
	if twice.Load() {
		return nil
	}
	switch n.met("take and drop", "silence", "another stream", "no sequence", "not JSON", "take and restart") {
	case "take and drop":
		return nil
	case "silence":
		n.endAttempt()
		return []byte{}
	case "another stream":
		return bytes.ReplaceAll(b, []byte(`"`+n.stream+`"`), []byte(`"`+strings.Repeat("x", len(n.stream))+`"`))
	case "no sequence":
		return bytes.ReplaceAll(b, []byte(`"seq"`), []byte(`"SXQ"`))
	case "not JSON":
		return bytes.ReplaceAll(b, []byte(`{"stream"`), []byte(`<"stream"`))
	case "take and restart":
		n.Restart()
		return nil
	}
	return b
}

// pump passes on what change returns.
func (n *natsTarget) pump(to, from net.Conn, change func([]byte) []byte) {
	defer func() {
		_, _ = to.Close(), from.Close()
		n.mu.Lock()
		delete(n.conns, from)
		n.mu.Unlock()
	}()
	b := make([]byte, 64<<10)
	for {
		read, err := from.Read(b)
		pass := change(b[:read:read])
		if pass == nil {
			return
		}
		if _, failed := to.Write(pass); err != nil || failed != nil {
			return
		}
	}
}

// seqs reads the stream, and checks that each message is the event of its item.
func (n *natsTarget) seqs() (all []uint64) {
	n.Messages(n.stream, func(m *jetstream.RawStreamMsg) {
		var event struct{ Data struct{ Seq uint64 } }
		if err := json.Unmarshal(m.Data, &event); err != nil {
			n.t.Fatal(err)
		}
		seq := event.Data.Seq
		if want := n.stream + ".1.usage.default.custom:a/b." + strconv.FormatUint(seq, 10); m.Subject != want || !bytes.Equal(m.Data, cloudEvent(item(seq))) || m.Header.Get(nats.MsgIdHdr) != item(seq).ID {
			n.t.Errorf("%s: %s, want %s", m.Subject, m.Data, want)
		}
		if slices.Contains(all, seq) {
			n.t.Errorf("the stream has seq %d twice", seq)
		}
		all = append(all, seq)
	})
	return all
}

// deliverOnce delivers with a new sink, and closes it.
func deliverOnce(t *testing.T, c Config, i *Item) Result {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return s.Deliver(t.Context(), i)
}

// TestStreamKeepsOneItem: a repeated item is a duplicate, also when the server has forgotten its id; another one in its place is
// rejected for ever.
func TestStreamKeepsOneItem(t *testing.T) {
	b := newBroker(t, nil)
	b.create(nil)
	sink := newNATS(b.config())
	defer sink.Close()
	other, reused := item(1), item(3)
	other.ID, other.Body, reused.ID = "usage_x", []byte(`{"tenant":"2"}`), item(1).ID
	old := item(2) // its message has no id: the window of the server has passed
	b.Use(func(js jetstream.JetStream) error {
		_, err := js.Publish(t.Context(), natsSubject("test", old), cloudEvent(old))
		return err
	})
	for _, c := range []struct {
		name string
		item *Item
		want Outcome
	}{
		{"new", item(1), OK}, {"within the window", item(1), Duplicate}, {"after the window", old, Duplicate},
		{"another in its place", other, Permanent}, {"another with its id", reused, Permanent}, {"the next", item(3), OK},
	} {
		if got := sink.Deliver(t.Context(), c.item); got.Outcome != c.want || (got.Outcome == Permanent) != (got.Reason != "") {
			t.Errorf("%s: %+v, want %v", c.name, got, c.want)
		}
	}
	b.Use(func(js jetstream.JetStream) error {
		s, err := js.Stream(t.Context(), "test")
		if err == nil && s.CachedInfo().State.Msgs != 3 {
			t.Errorf("the stream has %d messages, not 3", s.CachedInfo().State.Msgs)
		}
		if err != nil {
			return err
		}
		return s.DeleteMsg(t.Context(), 2)
	})
	if got := sink.Deliver(t.Context(), item(1)); got.Outcome != Duplicate { // consumed, but its id is known
		t.Errorf("a message that the stream has removed: %+v", got)
	}
}

// TestStreamsAreChecked: what is missing or wrong on the side of the server is named, and repeated.
func TestStreamsAreChecked(t *testing.T) {
	for want, change := range map[string]func(*Config, *jetstream.StreamConfig){
		"the stream does not exist":             func(c *Config, _ *jetstream.StreamConfig) { c.Stream = "other" },
		"the stream acknowledges nothing":       func(_ *Config, s *jetstream.StreamConfig) { s.NoAck = true },
		"no stream takes the subject":           func(c *Config, _ *jetstream.StreamConfig) { c.Subject = "elsewhere" },
		"maximum messages exceeded (10077)":     func(_ *Config, s *jetstream.StreamConfig) { s.MaxMsgs, s.Discard = 1, jetstream.DiscardNew },
		"message is too large for the stream":   func(_ *Config, s *jetstream.StreamConfig) { s.MaxMsgSize = 32 },
		"expected stream does not match (10060": func(c *Config, _ *jetstream.StreamConfig) { c.Subject = "second" },
	} {
		t.Run(want, func(t *testing.T) {
			b := newBroker(t, nil)
			c := b.config()
			b.create(func(s *jetstream.StreamConfig) { change(&c, s) })
			b.Create("second", nil)
			if strings.HasPrefix(want, "maximum") {
				b.Use(func(js jetstream.JetStream) error {
					_, err := js.Publish(t.Context(), "test.x", nil)
					return err
				})
			}
			got := deliverOnce(t, c, item(1))
			if too := strings.Contains(want, "too large"); got.TooLarge != too || (got.Outcome == Permanent) != too || !strings.Contains(got.Reason, want) || !too && got.Outcome != Retryable {
				t.Errorf("%+v, want %s", got, want)
			}
		})
	}
}

// TestLargeItemsAreRejected: an item with more bytes than a message may have is rejected for ever.
func TestLargeItemsAreRejected(t *testing.T) {
	b := newBroker(t, func(o *natsd.Options) { o.MaxPayload = 1024 })
	b.create(nil)
	large := item(1)
	large.Body = fmtBody(2048)
	if got := deliverOnce(t, b.config(), large); got.Outcome != Permanent || !got.TooLarge {
		t.Errorf("%+v", got)
	}
}

func fmtBody(size int) []byte { return []byte(`"` + strings.Repeat("x", size) + `"`) }

// TestSecretsOfNATS checks each way to authenticate, that a file is read again after a failure, and that no reason has a secret.
func TestSecretsOfNATS(t *testing.T) {
	for name, server := range map[string]func(*testing.T) (of *broker, right string){
		"token": func(t *testing.T) (*broker, string) {
			b := newBroker(t, func(o *natsd.Options) { o.Authorization = "hidden-token" })
			b.create(nil, nats.Token("hidden-token"))
			return b, "hidden-token\n"
		},
		"user and password": func(t *testing.T) (*broker, string) {
			b := newBroker(t, func(o *natsd.Options) { o.Username, o.Password = "node", "hidden-word" })
			b.create(nil, nats.UserInfo("node", "hidden-word"))
			return b, "node\nhidden-word\n"
		},
		"credentials": brokerWithAccounts,
	} {
		t.Run(name, func(t *testing.T) {
			b, right := server(t)
			c := b.config()
			c.SecretFile = filepath.Join(t.TempDir(), "secret")
			sink := newNATS(c)
			defer sink.Close()
			for _, text := range []string{"", "a\nhidden-b\nc\n", "hidden-other\n", "node\nhidden-other\n", beginsCredentials + "\nhidden\n------END NATS USER JWT------\n", right} {
				if err := os.WriteFile(c.SecretFile, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				got := sink.Deliver(t.Context(), item(1))
				if want := text == right; (got.Outcome == OK) != want || !want && got.Outcome != Retryable || strings.Contains(got.Reason, "hidden") {
					t.Errorf("%q: %+v", text, got)
				}
				if err := c.CheckSecrets(); (err != nil) != (text == "" || strings.HasPrefix(text, "a\n")) {
					t.Errorf("%q: %v", text, err)
				}
			}
		})
	}
}

// brokerWithAccounts is a server that knows users by signed credentials.
func brokerWithAccounts(t *testing.T) (*broker, string) {
	fail := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	operator, err := nkeys.CreateOperator()
	fail(err)
	account, err := nkeys.CreateAccount()
	fail(err)
	system, err := nkeys.CreateAccount()
	fail(err)
	user, err := nkeys.CreateUser()
	fail(err)
	name := func(k nkeys.KeyPair) string {
		key, err := k.PublicKey()
		fail(err)
		return key
	}
	accounts := &natsd.MemAccResolver{}
	for _, k := range []nkeys.KeyPair{account, system} {
		claims := jwt.NewAccountClaims(name(k))
		if k == account {
			claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
		}
		text, err := claims.Encode(operator)
		fail(err)
		fail(accounts.Store(name(k), text))
	}
	claims := jwt.NewUserClaims(name(user))
	token, err := claims.Encode(account)
	fail(err)
	seed, err := user.Seed()
	fail(err)
	credentials, err := jwt.FormatUserConfig(token, seed)
	fail(err)
	b := newBroker(t, func(o *natsd.Options) {
		o.TrustedKeys, o.AccountResolver, o.SystemAccount = []string{name(operator)}, accounts, name(system)
	})
	b.create(nil, nats.UserCredentialBytes(credentials))
	return b, string(credentials)
}

// TestMissingPermissionsAreNamed: the server reports them beside the answers, and answers nothing.
func TestMissingPermissionsAreNamed(t *testing.T) {
	for want, denied := range map[string][]string{
		`"test.1.usage.default.custom:a/b.1"`: {"test.>"},
		`"$JS.API.STREAM.INFO.test"`:          {"$JS.API.STREAM.>"},
	} {
		b := newBroker(t, func(o *natsd.Options) {
			o.Users = []*natsd.User{{Username: "all", Password: "x"}, {Username: "node", Password: "y", Permissions: &natsd.Permissions{Publish: &natsd.SubjectPermission{Deny: denied}}}}
		})
		b.create(nil, nats.UserInfo("all", "x"))
		c := b.config()
		c.SecretFile = filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(c.SecretFile, []byte("node\ny\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := deliverOnce(t, c, item(1)); got.Outcome != Retryable || !strings.Contains(got.Reason, want) {
			t.Errorf("%+v, want %s", got, want)
		}
	}
}

// TestConnectionIsVerified: with TLS the sink uses a server only if an authority has signed its name, and never without TLS.
func TestConnectionIsVerified(t *testing.T) {
	dir := t.TempDir()
	cert, authority := authorityOf(t)
	b := newBroker(t, func(o *natsd.Options) { o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}} })
	b.create(nil, nats.RootCAs(authority), func(o *nats.Options) error { o.TLSConfig.ServerName = "localhost"; return nil })
	plainText := newBroker(t, nil)
	plainText.create(nil)
	_, port, _ := net.SplitHostPort(b.Address())
	for _, c := range []struct {
		server, authority string
		want              string // in the reason; empty: it is delivered
	}{
		{"tls://localhost:" + port, authority, ""},
		{"nats://localhost:" + port, authority, ""}, // the server requires TLS
		{"tls://localhost:" + port, "", "certificate"},
		{"nats://localhost:" + port, "", "certificate"},
		{"tls://127.0.0.1:" + port, authority, "certificate"}, // not its name
		{"tls://localhost:" + port, filepath.Join(dir, "none.pem"), "file of authorities cannot be read"},
		{"tls://" + plainText.Address(), "", "secure connection not available"},
		{"nats://" + plainText.Address(), authority, "secure connection not available"},
	} {
		of := b.config()
		of.Servers, of.CAFile = []string{c.server}, c.authority
		got := deliverOnce(t, of, item(1))
		if c.want == "" && got.Outcome != OK && got.Outcome != Duplicate || c.want != "" && (got.Outcome != Retryable || !strings.Contains(got.Reason, c.want)) {
			t.Errorf("%s: %+v, want %q", c.server, got, c.want)
		}
	}
}

// certificate returns a certificate of localhost and of addresses, which signs itself.
func certificate(t *testing.T, addresses ...string) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	for _, a := range addresses {
		of.IPAddresses = append(of.IPAddresses, net.ParseIP(a))
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestSessionUsesTheServersThatAreUp: of several servers, one that is up is used.
func TestSessionUsesTheServersThatAreUp(t *testing.T) {
	b := newBroker(t, nil)
	b.create(nil)
	c := b.config()
	c.Servers = []string{"nats://" + strings.TrimPrefix(nettest.RefusingAddress(t), "http://"), "nats://" + b.Address()}
	if got := deliverOnce(t, c, item(1)); got.Outcome != OK {
		t.Errorf("%+v", got)
	}
}

// TestOpeningEndsWithItsContext: a server that does not greet holds no attempt beyond its context.
func TestOpeningEndsWithItsContext(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithCancel(t.Context())
	sink := newNATS(Config{Servers: []string{"nats://" + silent.Addr().String()}, Stream: "test", Subject: "test", Inflight: 2})
	defer sink.Close()
	results := make(chan Result)
	for range 2 { // the second one waits for the first one
		go func() { results <- sink.Deliver(ctx, item(1)) }()
	}
	conn, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cancel()
	for range 2 {
		if got := <-results; got.Outcome != Retryable || got.Reason != "cancelled" {
			t.Errorf("%+v", got)
		}
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection is open")
	}
}

// TestNothingIsKeptForAServerThatIsDown: the client of NATS has no buffer, opens no connection by itself, and notices a server that
// is gone.
func TestNothingIsKeptForAServerThatIsDown(t *testing.T) {
	options, _, err := natsOptions(&Config{Servers: []string{"nats://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	of := nats.GetDefaultOptions()
	for _, set := range options {
		if err := set(&of); err != nil {
			t.Fatal(err)
		}
	}
	if of.AllowReconnect || of.ReconnectBufSize >= 0 || of.RetryOnFailedConnect || of.PingInterval != natsPing || of.MaxPingsOut != natsPings || of.Timeout != connectTimeout {
		t.Errorf("%+v", of)
	}
}
