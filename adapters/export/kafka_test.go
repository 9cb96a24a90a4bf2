package export

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"macronode/adapters/kafkatest"
	"macronode/adapters/nettest"
)

// kafkaTarget is a topic of a broker whose connections have faults.
type kafkaTarget struct {
	*kafkatest.Server
	t     testing.TB
	topic string

	faulty
	ended chan struct{} // closed when it has ended
	conns map[net.Conn]bool
}

// sharedKafka is the broker of the tests of the contract: each has a topic of its own.
var sharedKafka struct {
	target *kafkaTarget
	uses   int
}

func newKafkaTarget(t testing.TB) *kafkaTarget {
	if sharedKafka.target == nil || sharedKafka.target.t.Name() != t.Name() {
		sharedKafka.target = newKafkaBroker(t)
		t.Cleanup(func() { sharedKafka.target = nil })
	}
	sharedKafka.uses++
	sharedKafka.target.topic = "s" + strconv.Itoa(sharedKafka.uses)
	sharedKafka.target.Create(sharedKafka.target.topic, 3, nil)
	return sharedKafka.target
}

// newKafkaBroker starts a broker with the topic test.
func newKafkaBroker(t testing.TB, options ...kfake.Opt) *kafkaTarget {
	k := &kafkaTarget{t: t, topic: "test", conns: map[net.Conn]bool{}}
	k.Server = kafkatest.New(t, append(options, kfake.ListenFn(func(network, address string) (net.Listener, error) {
		l, err := net.Listen(network, address)
		return faultyListener{l, k}, err
	}))...)
	k.Create("test", 3, nil)
	return k
}

func (k *kafkaTarget) config() Config {
	return Config{Name: "test", Kind: KindKafka, Servers: []string{"kafka://" + k.Address()}, Topic: k.topic, Inflight: 1}
}

func (k *kafkaTarget) sink() Sink {
	return cancelledKafka{newKafka(k.config(), 10*time.Millisecond), k}
}

// cancelledKafka is a sink whose attempt is cancelled when its target meets a fault. Otherwise the client would often repeat the request
// before the attempt ends. No clock is waited for.
type cancelledKafka struct {
	*kafkaSink
	of *kafkaTarget
}

func (c cancelledKafka) Deliver(ctx context.Context, item *Item) Result {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	c.of.mu.Lock()
	c.of.end, c.of.ended = cancel, ended
	c.of.mu.Unlock()
	r := c.kafkaSink.Deliver(ctx, item)
	close(ended)
	c.of.met("refuse") // the client may connect more than once in an attempt
	if r.Reason == "cancelled" {
		c.of.cut()
	}
	return r
}

// arm: the connection is refused; it is cut before the broker gets the record, or before the sink gets the acknowledgement; there is
// no acknowledgement, or one that is no answer; the broker is restarted before it gets the record, or after it has it; too few replicas
// are in sync.
func (k *kafkaTarget) arm(fault string, _ uint64) {
	if fault == "few replicas" {
		k.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: kafkaRetries + 1})
		return
	}
	k.set(fault)
	if fault == "refuse" {
		k.cut()
	}
}

// endAndWait cancels the attempt that is made, and waits for its end.
func (k *kafkaTarget) endAndWait() {
	k.mu.Lock()
	end, ended := k.end, k.ended
	k.mu.Unlock()
	end()
	<-ended
}

func (k *kafkaTarget) cut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for c := range k.conns {
		_ = c.Close()
	}
}

// faultyListener accepts connections with faults.
type faultyListener struct {
	net.Listener
	of *kafkaTarget
}

func (l faultyListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		l.of.mu.Lock()
		refused := l.of.fault == "refuse"
		if !refused {
			l.of.conns[c] = true
		}
		l.of.mu.Unlock()
		if refused {
			_ = c.Close()
			continue
		}
		return &faultyConn{Conn: c, of: l.of}, nil
	}
}

// faultyConn is a connection as the broker sees it: it reads requests and writes answers.
type faultyConn struct {
	net.Conn
	of      *kafkaTarget
	unread  []byte
	produce atomic.Bool // the last request is to produce
}

func (c *faultyConn) Read(b []byte) (int, error) {
	if len(c.unread) == 0 {
		size := make([]byte, 4)
		if _, err := io.ReadFull(c.Conn, size); err != nil {
			return 0, err
		}
		request := make([]byte, binary.BigEndian.Uint32(size))
		if _, err := io.ReadFull(c.Conn, request); err != nil {
			return 0, err
		}
		c.unread = append(size, request...)
		c.produce.Store(binary.BigEndian.Uint16(request) == uint16(kmsg.Produce))
		if c.produce.Load() {
			switch c.of.met("drop", "restart") {
			case "drop":
				c.of.endAndWait()
				return 0, c.Close()
			case "restart":
				c.of.endAndWait()
				c.of.Restart()
				return 0, c.Close()
			}
		}
	}
	n := copy(b, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

func (c *faultyConn) Write(b []byte) (int, error) {
	if c.produce.Load() {
		fault := c.of.met("take and drop", "silence", "garbage", "take and restart")
		if fault != "" {
			c.of.endAndWait()
		}
		switch fault {
		case "take and drop":
			return 0, c.Close()
		case "silence":
			return len(b), nil
		case "garbage":
			return c.Conn.Write(append(slices.Clone(b[:8]), bytes.Repeat([]byte{0xff}, len(b)-8)...))
		case "take and restart":
			c.of.Restart()
			return 0, c.Close()
		}
	}
	return c.Conn.Write(b)
}

func (c *faultyConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c.Conn)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// seqs reads the topic, and checks that each record is the event of its item, in the partition of its lane.
func (k *kafkaTarget) seqs() (all []uint64) {
	k.Records(k.topic, func(r *kgo.Record) {
		var event struct{ Data struct{ Seq uint64 } }
		if err := json.Unmarshal(r.Value, &event); err != nil {
			k.t.Fatal(err)
		}
		want := item(event.Data.Seq)
		headers := map[string]string{}
		for _, h := range r.Headers {
			headers[h.Key] = string(h.Value)
		}
		if string(r.Key) != "usage/default/custom:a/b" || !bytes.Equal(r.Value, cloudEvent(want)) || r.Partition != kafkaPartition(string(r.Key), 3) ||
			headers["ce_id"] != want.ID || headers["ce_source"] != want.Source || !strings.HasPrefix(headers["content-type"], "application/cloudevents+json") {
			k.t.Errorf("partition %d, %s: %s, %v", r.Partition, r.Key, r.Value, headers)
		}
		all = append(all, event.Data.Seq)
	})
	return all
}

// TestTopicKeepsOneRecord: an item that is repeated is in the topic once, also after a restart of the node; another one with its id is
// rejected for ever. The client repeats the request by itself: it may have ended before the next attempt, which is then a duplicate.
func TestTopicKeepsOneRecord(t *testing.T) {
	k := newKafkaBroker(t)
	fault := func(err *kerr.Error) { k.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: err}) }
	other := item(1)
	other.Body = []byte(`{"tenant":"2"}`)
	first, second := k.sink(), k.sink()
	defer second.Close()
	for _, c := range []struct {
		name string
		arm  func()
		sink Sink
		item *Item
		want []Outcome
	}{
		{"new", nil, first, item(1), []Outcome{OK}},
		{"the broker says that it has too few replicas, and has it", func() { fault(kerr.NotEnoughReplicasAfterAppend) }, first, item(2), []Outcome{OK}},
		{"the broker says that it timed out, and has it", func() { fault(kerr.RequestTimedOut) }, first, item(3), []Outcome{OK}},
		{"the acknowledgement is lost", func() { k.arm("take and drop", 0) }, first, item(4), []Outcome{Retryable}},
		{"the same client repeats it", nil, first, item(4), []Outcome{OK, Duplicate}},
		{"the acknowledgement is lost again", func() { k.arm("take and drop", 0) }, first, item(5), []Outcome{Retryable}},
		{"after a restart", func() { k.awaitRecords(5); _ = first.Close() }, second, item(5), []Outcome{Duplicate}},
		{"after a restart, an older one", nil, second, item(1), []Outcome{Duplicate}},
		{"another with its id", nil, second, other, []Outcome{Permanent}},
		{"the next", nil, second, item(6), []Outcome{OK}},
	} {
		if c.arm != nil {
			c.arm()
		}
		got := c.sink.Deliver(t.Context(), c.item)
		for got.Outcome == Retryable && !slices.Contains(c.want, Retryable) { // the connection that was cut
			got = c.sink.Deliver(t.Context(), c.item)
		}
		if !slices.Contains(c.want, got.Outcome) || (got.Outcome == OK || got.Outcome == Duplicate) != (got.Reason == "") {
			t.Errorf("%s: %+v, want %v", c.name, got, c.want)
		}
	}
	if got := k.seqs(); !slices.Equal(got, []uint64{1, 2, 3, 4, 5, 6}) {
		t.Errorf("the topic has %v", got)
	}
}

// awaitRecords waits until the topic has a number of records.
func (k *kafkaTarget) awaitRecords(count int64) {
	for {
		has := int64(0)
		for _, p := range k.Cluster().PartitionInfos(k.topic) {
			has += p.HighWatermark
		}
		if has >= count {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// TestNothingIsProducedBeforeTheTail: while the tail of a partition is read, no lane of it is ready.
func TestNothingIsProducedBeforeTheTail(t *testing.T) {
	k := newKafkaBroker(t)
	sink := newKafka(k.config(), kafkaMetadata)
	defer sink.Close()
	ready, asked := 0, 0
	k.Cluster().ControlKey(int16(kmsg.ListOffsets), func(kmsg.Request) (kmsg.Response, error, bool) { //nolint:revive // the type of a control
		if _, known := sink.partition("usage/default/custom:a/b"); known {
			ready++
		}
		asked++
		return nil, nil, false
	})
	deliver(t, sink, item(1))
	if ready > 0 || asked != 2 {
		t.Errorf("%d of %d times a lane is ready", ready, asked)
	}
	sink.mu.Lock()
	sink.forget(sink.mustPartition(), kerr.RequestTimedOut)
	sink.mu.Unlock()
	if _, known := sink.partition("usage/default/custom:a/b"); known {
		t.Error("after a failure the tail is not read again")
	}
	if got := sink.Deliver(t.Context(), item(1)); got.Outcome != Duplicate {
		t.Errorf("%+v", got)
	}
}

func (k *kafkaSink) mustPartition() int32 {
	return kafkaPartition("usage/default/custom:a/b", len(k.read))
}

// TestTailOfPartition: only the last records of a partition are read. What others have written there does no harm.
func TestTailOfPartition(t *testing.T) {
	k := newKafkaBroker(t)
	first := newKafka(k.config(), kafkaMetadata)
	defer first.Close()
	for seq := range uint64(5) {
		deliver(t, first, item(seq+1))
	}
	partition, _ := first.partition("usage/default/custom:a/b")
	foreign := &kgo.Record{Topic: "test", Partition: partition, Value: []byte("x"), Headers: []kgo.RecordHeader{{Key: "ce_id"}, {Key: "x"}}}
	if err := first.client.ProduceSync(t.Context(), foreign).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := k.Cluster().DeleteRecords("test", partition, 1); err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int64]int{1: 1, 3: 3, 100: 5} {
		tail := newKafka(k.config(), kafkaMetadata)
		if _, err := tail.open(t.Context(), "wallet/none"); err != nil {
			t.Fatal(err)
		}
		clear(tail.tail)
		if err := tail.readTail(t.Context(), partition, most); err != nil || len(tail.tail) != want {
			t.Errorf("%d of %d: %v", len(tail.tail), most, err)
		}
		_ = tail.Close()
	}
	for i := range 2 * kafkaTail {
		first.note(strconv.Itoa(i), kafkaValue{})
	}
	if len(first.tail) != kafkaTail {
		t.Errorf("the tail has %d records", len(first.tail))
	}
}

// TestLanesHaveTheirPartition: all items of a lane are in one partition, and lanes are spread over partitions as other clients do it.
func TestLanesHaveTheirPartition(t *testing.T) {
	for lane, want := range map[string]int32{"usage/default/requests": 2, "usage/default/bytes_in": 11, "wallet/default": 1, "wallet/2": 7} { // of murmur2
		if got := kafkaPartition(lane, 12); got != want {
			t.Errorf("%s is in partition %d, not %d", lane, got, want)
		}
	}
}

// TestPermissionIsAskedForAgain: a permission that is given takes effect at the next attempt, without a restart of the node.
func TestPermissionIsAskedForAgain(t *testing.T) {
	k := newKafkaBroker(t)
	k.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: kerr.ClusterAuthorizationFailed, Count: 2})
	s, err := New(k.config())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, want := range []Outcome{Retryable, Retryable, OK, Duplicate} {
		if got := s.Deliver(t.Context(), item(1)); got.Outcome != want {
			t.Errorf("%+v, want %v", got, want)
		}
	}
}

// TestTopicsAreChecked: what is missing or wrong on the side of the broker is named.
func TestTopicsAreChecked(t *testing.T) {
	for _, c := range []struct {
		topic, want string
		outcome     Outcome
		fault       kfake.Fault
	}{
		{"other", "the topic does not exist", Retryable, kfake.Fault{}},
		{"small", "the record is too large for the topic", Permanent, kfake.Fault{}},
		{"test", "rejects the record as invalid", Permanent, kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.InvalidRecord}},
		{"test", "may not describe, read and write the topic", Retryable, kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.TopicAuthorizationFailed}},
		{"test", "may not describe, read and write the topic", Retryable, kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.TopicAuthorizationFailed}},
		{"test", "may not write idempotently", Retryable, kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: kerr.ClusterAuthorizationFailed, Count: -1}},
		{"test", "LEADER_NOT_AVAILABLE", Retryable, kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.LeaderNotAvailable, Count: -1}},
	} {
		t.Run(c.want, func(t *testing.T) {
			k := newKafkaBroker(t)
			k.Create("small", 1, map[string]string{"max.message.bytes": "64"})
			if c.fault.Err != nil {
				k.Cluster().Fault(c.fault)
			}
			of := k.config()
			of.Topic = c.topic
			if got := deliverOnce(t, of, item(1)); got.Outcome != c.outcome || got.TooLarge != (c.topic == "small") || !strings.Contains(got.Reason, c.want) {
				t.Errorf("%+v, want %s", got, c.want)
			}
		})
	}
}

// TestFewPartitions: a topic with more partitions than the sink has room for is refused.
func TestFewPartitions(t *testing.T) {
	k := newKafkaBroker(t)
	k.Create("wide", kafkaPartitions+1, nil)
	of := k.config()
	of.Topic = "wide"
	if got := deliverOnce(t, of, item(1)); got.Outcome != Retryable || !strings.Contains(got.Reason, "it must have 1 to 1024") {
		t.Errorf("%+v", got)
	}
}

// TestSecretsOfKafka checks each way to authenticate, that a file is read again after a failure, and that no reason has a secret.
func TestSecretsOfKafka(t *testing.T) {
	cert, authority := authorityOf(t, "127.0.0.1")
	for _, mechanism := range []string{"SCRAM-SHA-512", "SCRAM-SHA-512 without TLS", "SCRAM-SHA-256", "PLAIN"} {
		t.Run(mechanism, func(t *testing.T) {
			name, plainText := strings.CutSuffix(mechanism, " without TLS")
			options := []kfake.Opt{kfake.EnableSASL(), kfake.Superuser(name, "node", "hidden-word")}
			if !plainText {
				options = append(options, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{cert}}))
			}
			server := kafkatest.New(t, options...)
			server.Create("test", 3, nil)
			c := Config{Name: "test", Kind: KindKafka, SASL: strings.ToLower(name), Servers: []string{"tls://" + server.Address()}, Topic: "test", CAFile: authority, SecretFile: filepath.Join(t.TempDir(), "secret")}
			if plainText {
				c.Servers, c.CAFile = []string{"kafka://" + server.Address()}, ""
			}
			sink := newKafka(c, kafkaMetadata)
			defer sink.Close()
			const right = "node\nhidden-word\n"
			for _, text := range []string{"", "a\nhidden-b\nc\n", "hidden-other\n", "node\nhidden-other\n", right} {
				if err := os.WriteFile(c.SecretFile, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				got := sink.Deliver(t.Context(), item(1))
				if want := text == right; (got.Outcome == OK) != want || !want && got.Outcome != Retryable || strings.Contains(got.Reason, "hidden") {
					t.Errorf("%q: %+v", text, got)
				}
				if err := c.CheckSecrets(); (err == nil) != strings.HasPrefix(text, "node\n") {
					t.Errorf("%q: %v", text, err)
				}
			}
		})
	}
}

// authorityOf returns a certificate of localhost and an address, and the file with its authority.
func authorityOf(t *testing.T, address ...string) (tls.Certificate, string) {
	cert, file := certificate(t, address...), filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}), 0o600); err != nil {
		t.Fatal(err)
	}
	return cert, file
}

// TestBrokerIsVerified: with TLS the sink uses a broker only if an authority has signed its name, and never without TLS.
func TestBrokerIsVerified(t *testing.T) {
	cert, authority := authorityOf(t, "127.0.0.1")
	server := func(is tls.Certificate) *kafkatest.Server {
		s := kafkatest.New(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{is}}))
		s.Create("test", 3, nil)
		return s
	}
	right, wrong, plainText := server(cert), server(certificate(t)), newKafkaBroker(t)
	for _, c := range []struct {
		server, authority string
		want              string // in the reason; empty: it is delivered
	}{
		{"tls://" + right.Address(), authority, ""},
		{"tls://" + right.Address(), "", "certificate"},
		{"tls://" + wrong.Address(), authority, "certificate"},
		{"tls://" + right.Address(), filepath.Join(t.TempDir(), "none.pem"), "file of authorities cannot be read"},
		{"tls://" + plainText.Address(), authority, ""},
		{"kafka://" + right.Address(), "", "TLS"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		sink := newKafka(Config{Name: "test", Servers: []string{c.server}, Topic: "test", CAFile: c.authority}, kafkaMetadata)
		if strings.Contains(c.server, plainText.Address()) { // the broker waits for the rest of a request
			c.want = "cancelled"
			time.AfterFunc(10*time.Millisecond, cancel)
		}
		got := sink.Deliver(ctx, item(1))
		if c.want == "" && got.Outcome != OK || c.want != "" && (got.Outcome != Retryable || !strings.Contains(got.Reason, c.want)) {
			t.Errorf("%s: %+v, want %q", c.server, got, c.want)
		}
		_ = sink.Close()
		cancel()
	}
}

// TestClientUsesTheServersThatAreUp: of several servers, one that is up is used.
func TestClientUsesTheServersThatAreUp(t *testing.T) {
	k := newKafkaBroker(t)
	c := k.config()
	down := "kafka://" + strings.TrimPrefix(nettest.RefusingAddress(t), "http://")
	c.Servers = []string{down, c.Servers[0], down}
	sink := newKafka(c, kafkaMetadata)
	defer sink.Close()
	deliver(t, sink, item(1))
}

// TestSilentBroker: a broker that does not answer holds no attempt beyond its context.
func TestSilentBroker(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithCancel(t.Context())
	sink := newKafka(Config{Servers: []string{"kafka://" + silent.Addr().String()}, Topic: "test"}, kafkaMetadata)
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
}

// TestRecordsOfClientAreLimited: a client without an acknowledgement takes a limited number of records, and delivers each once.
func TestRecordsOfClientAreLimited(t *testing.T) {
	k := newKafkaBroker(t)
	sink := newKafka(k.config(), kafkaMetadata)
	defer sink.Close()
	deliver(t, sink, item(1))
	k.Cluster().ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) { //nolint:revive // the type of a control
		k.Cluster().KeepControl()
		return nil, errFault, true
	})
	if got := sink.Deliver(t.Context(), item(2)); got.Outcome != Retryable || !strings.HasPrefix(got.Reason, "connection lost: ") {
		t.Errorf("%+v", got)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for seq := uint64(2); seq < KafkaRecords+2; seq++ {
		if got := sink.Deliver(ended, item(seq)); got.Outcome != Retryable {
			t.Fatalf("%d: %+v", seq, got)
		}
	}
	for reason := ""; reason != kafkaReasons[kgo.ErrMaxBuffered]; { // until no lost connection comes first
		got := sink.Deliver(t.Context(), item(KafkaRecords+2))
		if got.Outcome != Retryable {
			t.Fatalf("%+v", got)
		}
		reason = got.Reason
	}
	sink.mu.Lock()
	waiting := len(sink.records)
	sink.mu.Unlock()
	if waiting != KafkaRecords {
		t.Fatalf("%d wait", waiting)
	}
	k.Restart() // without the control
	want := []uint64{1}
	for seq := uint64(2); seq < KafkaRecords+3; seq++ {
		deliver(t, sink, item(seq))
		want = append(want, seq)
	}
	if got := k.seqs(); !slices.Equal(got, want) {
		t.Errorf("the topic has %v", got)
	}
}

// TestClientOfKafkaIsLimited checks the options of the client that no broker of a test reaches.
func TestClientOfKafkaIsLimited(t *testing.T) {
	sink := newKafka(Config{Servers: []string{"kafka://127.0.0.1:1"}, Topic: "test"}, kafkaMetadata)
	client, err := kgo.NewClient(sink.options()...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, c := range []struct{ option, want any }{
		{kgo.RequiredAcks, kgo.AllISRAcks()}, {kgo.DisableIdempotentWrite, false}, {kgo.MaxBufferedRecords, int64(KafkaRecords)}, {kgo.RecordRetries, int64(kafkaRetries)},
		{kgo.ProduceRequestTimeout, kafkaTimeout}, {kgo.MetadataMinAge, kafkaMetadata}, {kgo.FetchMaxBytes, int32(kafkaFetch)},
		{kgo.BrokerMaxReadBytes, int32(kafkaRead)}, {kgo.MaxDecompressBatchBytes, kafkaInflated}, {kgo.AllowIdempotentProduceCancellation, false},
	} {
		if got := client.OptValue(c.option); got != c.want {
			t.Errorf("%T %v, not %v", c.option, got, c.want)
		}
	}
	if kafkaPause(0) != kafkaFirstPause || kafkaPause(1) != 2*kafkaFirstPause || kafkaPause(1000) != kafkaMostPause {
		t.Error("pauses", kafkaPause(0), kafkaPause(1), kafkaPause(1000))
	}
}
