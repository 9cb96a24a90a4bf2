package export

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	saslplain "github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// kafkaID is the header with the ID of an item.
const kafkaID = "ce_id"

// open makes the client if there is none, and reads the tail of the partition of a lane if it is not known. It ends with ctx.
func (k *kafkaSink) open(ctx context.Context, lane string) (partition int32, err error) {
	if partition, known := k.partition(lane); known {
		return partition, nil
	}
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-k.turn }()
	if err := k.openClient(); err != nil {
		return 0, err
	}
	if partition, known := k.partition(lane); known { // meanwhile
		return partition, nil
	}
	count, err := k.partitions(ctx)
	if err != nil {
		return 0, err
	}
	partition = kafkaPartition(lane, count)
	k.setRead(partition, tailUnread, tailReading)
	if err = k.readTail(ctx, partition, max(1, int64(kafkaTail/count))); err != nil {
		return 0, err
	}
	if !k.setRead(partition, tailReading, tailRead) { // a record has failed meanwhile
		return 0, errAgain
	}
	return partition, nil
}

// openClient makes the client if there is none, and replaces one that may not produce: it would not ask the broker again. Records that
// it has may be in the topic, so it is kept with them. The caller has the turn.
func (k *kafkaSink) openClient() error {
	k.mu.Lock()
	client := k.client
	replaced := k.refused && len(k.records) == 0
	k.mu.Unlock()
	if client != nil && !replaced {
		return nil
	}
	options := append(k.options(), kgo.WithHooks(kafkaHook{k}), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	opened, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.client, k.ready, k.refused = opened, false, false
	k.mu.Unlock()
	if client != nil {
		client.Close()
	}
	return nil
}

// current returns the client; nil: not opened yet.
func (k *kafkaSink) current() *kgo.Client {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.client
}

// initProducer has the broker give the client its ID as a producer, before the client gets a record: a client that is refused may keep a
// record without an end.
func (k *kafkaSink) initProducer(ctx context.Context) error {
	k.mu.Lock()
	client, ready := k.client, k.ready
	k.mu.Unlock()
	if ready {
		return nil
	}
	_, _, err := client.ProducerID(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ready = err == nil && k.client == client; errors.As(err, new(*kerr.Error)) {
		k.refused, k.read = true, nil
	}
	return err
}

var errAgain = errors.New("the topic has changed while it was read: it is read again")

// partition returns the partition of a lane, and whether its tail is known.
func (k *kafkaSink) partition(lane string) (partition int32, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.read) == 0 {
		return 0, false
	}
	partition = kafkaPartition(lane, len(k.read))
	return partition, k.read[partition] == tailRead
}

// kafkaPartition returns the partition of a lane: the one that other clients of Kafka choose for the same key.
func kafkaPartition(lane string, count int) int32 {
	return int32(kgo.StickyKeyPartitioner(nil).ForTopic("").Partition(&kgo.Record{Key: []byte(lane)}, count))
}

// setRead sets the state of the tail of a partition if it has another one.
func (k *kafkaSink) setRead(partition int32, was, is tailState) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if int(partition) >= len(k.read) || k.read[partition] != was {
		return false
	}
	k.read[partition] = is
	return true
}

// options returns the options of a client: limits, times, TLS and the secret.
func (k *kafkaSink) options() []kgo.Opt {
	c := &k.config
	all := []kgo.Opt{kgo.ClientID("macronode"), kgo.DisableClientMetrics(), kgo.SeedBrokers(kafkaHosts(c)...), kgo.Dialer(c.dialKafka),
		kgo.RetryBackoffFn(kafkaPause), kgo.MetadataMinAge(k.leaders),
		kgo.RequestRetries(1), kgo.RetryTimeout(kafkaTimeout), kgo.RequestTimeoutOverhead(connectTimeout), kgo.ConnIdleTimeout(idleTimeout),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(0), kgo.MaxBufferedRecords(KafkaRecords),
		kgo.ProduceRequestTimeout(kafkaTimeout), kgo.RecordRetries(kafkaRetries), kgo.UnknownTopicRetries(0),
		kgo.FetchMaxBytes(kafkaFetch), kgo.FetchMaxPartitionBytes(kafkaFetch), kgo.MaxConcurrentFetches(1), kgo.BrokerMaxReadBytes(kafkaRead), kgo.MaxDecompressBatchBytes(kafkaInflated)}
	if c.SecretFile == "" {
		return all
	}
	file := secretFile(c.SecretFile) // read for each connection
	hashed := func(context.Context) (is scram.Auth, err error) {
		is.User, is.Pass, err = file.userPassword()
		return is, err
	}
	switch c.SASL {
	case "plain":
		return append(all, kgo.SASL(saslplain.Plain(func(context.Context) (is saslplain.Auth, err error) {
			is.User, is.Pass, err = file.userPassword()
			return is, err
		})))
	case "scram-sha-256":
		return append(all, kgo.SASL(scram.Sha256(hashed)))
	}
	return append(all, kgo.SASL(scram.Sha512(hashed)))
}

// kafkaPause returns the pause before another try of the client, after a number of failures.
func kafkaPause(failures int) time.Duration {
	return min(kafkaFirstPause<<min(failures, 10), kafkaMostPause)
}

const kafkaSecure = "tls://"

// kafkaTLS reports whether connections use TLS.
func (c *Config) kafkaTLS() bool { return strings.HasPrefix(c.Servers[0], kafkaSecure) }

// kafkaHosts returns the hosts and ports of the servers.
func kafkaHosts(c *Config) (all []string) {
	for _, server := range c.Servers {
		_, host, _ := strings.Cut(server, "://")
		all = append(all, host)
	}
	return all
}

// dialKafka connects to a broker. With TLS, it reads the file of authorities and verifies the name of the broker.
func (c *Config) dialKafka(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if !c.kafkaTLS() {
		return limitedConn{conn}, nil
	}
	is, err := tlsWith(c.CAFile)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	is.ServerName, _, _ = net.SplitHostPort(address)
	secure := tls.Client(limitedConn{conn}, is)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}

// kafkaHook ends the attempts that wait when a connection is lost. Their records stay with the client.
type kafkaHook struct{ of *kafkaSink }

func (h kafkaHook) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	h.of.lose(err)
}

func (h kafkaHook) OnBrokerRead(_ kgo.BrokerMetadata, _ int16, _ int, _, _ time.Duration, err error) {
	h.of.lose(err)
}

func (k *kafkaSink) lose(err error) {
	if err == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.lost)
	k.lost, k.cause = make(chan struct{}), err
}

// partitions returns the number of partitions. It fails if the topic does not exist.
func (k *kafkaSink) partitions(ctx context.Context) (int, error) {
	k.mu.Lock()
	count := len(k.read)
	k.mu.Unlock()
	if count > 0 {
		return count, nil
	}
	ask, topic := kmsg.NewPtrMetadataRequest(), kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr(k.config.Topic)
	ask.Topics = append(ask.Topics, topic)
	got, err := ask.RequestWith(ctx, k.current())
	if err != nil {
		return 0, err
	}
	if len(got.Topics) != 1 {
		return 0, kerr.UnknownTopicOrPartition
	}
	if err := kerr.ErrorForCode(got.Topics[0].ErrorCode); err != nil {
		return 0, err
	}
	count = len(got.Topics[0].Partitions)
	if count == 0 || count > kafkaPartitions {
		return 0, fmt.Errorf("the topic has %d partitions: it must have 1 to %d", count, kafkaPartitions)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.read = make([]tailState, count)
	return count, nil
}

// readTail reads the last records of a partition.
func (k *kafkaSink) readTail(ctx context.Context, partition int32, most int64) error {
	first, err := k.offset(ctx, partition, kafkaFirst)
	if err != nil {
		return err
	}
	next, err := k.offset(ctx, partition, kafkaNext)
	if err != nil {
		return err
	}
	at := max(first, next-most)
	if at >= next {
		return nil
	}
	reader, err := kgo.NewClient(append(k.options(), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{k.config.Topic: {partition: kgo.NewOffset().At(at)}}))...)
	if err != nil {
		return err
	}
	defer reader.Close()
	for at < next {
		read := reader.PollFetches(ctx)
		if err := read.Err(); err != nil {
			return err
		}
		k.mu.Lock()
		read.EachRecord(func(r *kgo.Record) {
			for _, h := range r.Headers {
				if h.Key == kafkaID {
					k.note(string(h.Value), sha256.Sum256(r.Value))
				}
			}
			at = r.Offset + 1
		})
		k.mu.Unlock()
	}
	return nil
}

// Times that stand for offsets of a partition.
const (
	kafkaFirst = -2 // of the first record
	kafkaNext  = -1 // after the last record
)

func (k *kafkaSink) offset(ctx context.Context, partition int32, at int64) (int64, error) {
	ask, topic, of := kmsg.NewPtrListOffsetsRequest(), kmsg.NewListOffsetsRequestTopic(), kmsg.NewListOffsetsRequestTopicPartition()
	of.Partition, of.Timestamp = partition, at
	topic.Topic, topic.Partitions = k.config.Topic, append(topic.Partitions, of)
	ask.ReplicaID, ask.Topics = -1, append(ask.Topics, topic)
	got, err := ask.RequestWith(ctx, k.current())
	if err != nil {
		return 0, err
	}
	if len(got.Topics) != 1 || len(got.Topics[0].Partitions) != 1 {
		return 0, kerr.UnknownTopicOrPartition
	}
	is := got.Topics[0].Partitions[0]
	return is.Offset, kerr.ErrorForCode(is.ErrorCode)
}
