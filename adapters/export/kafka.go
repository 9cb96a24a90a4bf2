package export

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// kafkaSink produces each item to a topic of Kafka, as a structured CloudEvent whose key is its lane. So a lane stays in one partition,
// in its order, for as long as the topic has the same number of partitions.
//
// The producer is idempotent: the client repeats a request after a lost connection, and the broker drops what it has. A record whose
// attempt has ended stays with the client, and the next attempt with its item waits for the same record. Records of an earlier
// process are found in the tail of the topic: the last records of each partition, which are read before the first item.
type kafkaSink struct {
	config  Config
	leaders time.Duration // kafkaMetadata
	turn    chan struct{} // the right to open the client and to read the tail

	mu      sync.Mutex             // guards what follows
	client  *kgo.Client            // nil: not opened yet
	ready   bool                   // the client has its ID as a producer
	refused bool                   // the client may not produce, and is to be replaced
	records map[string]kafkaRecord // that the client has, by the IDs of their items; at most KafkaRecords
	tail    map[string]kafkaValue  // that the topic has, by the same; at most kafkaTail
	read    []tailState            // of each partition; none: their number is not known
	lost    chan struct{}          // closed when a connection is lost, and replaced
	cause   error                  // of that
}

// kafkaValue is the hash of the value of a record.
type kafkaValue [sha256.Size]byte

// tailState is whether the tail has the last records of a partition.
type tailState uint8

const (
	tailUnread tailState = iota
	tailReading
	tailRead
)

// A kafkaRecord is a record that the client has.
type kafkaRecord struct {
	value kafkaValue
	ended chan error // has room for the outcome
}

// Limits of a sink of Kafka.
const (
	kafkaTimeout    = 10 * time.Second      // of an attempt, and of a broker for the acknowledgement of all replicas
	KafkaRecords    = 64                    // that the client has, also those whose attempts have ended
	kafkaTail       = 16 << 10              // IDs in the tail: each partition has an equal part of it
	kafkaPartitions = 1024                  // of a topic
	kafkaRetries    = 2                     // of a record after a negative answer; a lost connection does not count
	kafkaFirstPause = 10 * time.Millisecond // of the client, after a failure; each further one doubles it
	kafkaMostPause  = time.Second
	kafkaMetadata   = 250 * time.Millisecond // between two reads of the leaders of partitions, after a failure
	kafkaFetch      = 1 << 20                // bytes of records that are asked for at once
	kafkaRead       = 8 << 20                // bytes of any answer
	kafkaInflated   = 8 << 20                // bytes of a compressed batch of records in the tail
)

// KafkaBytes is the memory of a sink of Kafka without its records: the IDs of the tail, and what is read of it at once.
const KafkaBytes = 256*kafkaTail + 2*kafkaRead + kafkaInflated

func newKafka(c Config, leaders time.Duration) *kafkaSink {
	return &kafkaSink{config: c, leaders: leaders, turn: make(chan struct{}, 1), records: map[string]kafkaRecord{}, tail: map[string]kafkaValue{}, lost: make(chan struct{})}
}

// Close ends the client. Records that it has may be in the topic.
func (k *kafkaSink) Close() error {
	if client := k.current(); client != nil {
		client.Close()
	}
	return nil
}

// Deliver produces an item, or waits for the record of an earlier attempt, until all replicas have it that are in sync.
func (k *kafkaSink) Deliver(ctx context.Context, item *Item) Result {
	ctx, cancel := context.WithTimeout(ctx, kafkaTimeout)
	defer cancel()
	partition, err := k.open(ctx, laneOf(item))
	if err != nil {
		return kafkaResult(err)
	}
	body := cloudEvent(item)
	value := kafkaValue(sha256.Sum256(body))
	k.mu.Lock()
	lost := k.lost
	has, found := k.tail[item.ID]
	record, waiting := k.records[item.ID]
	k.mu.Unlock()
	switch {
	case found && has != value, waiting && record.value != value:
		return Result{Outcome: Permanent, Reason: "the topic has another record with the id of this item"}
	case found:
		return Result{Outcome: Duplicate}
	case !waiting:
		if err := k.initProducer(ctx); err != nil {
			return kafkaResult(err)
		}
		record = k.produce(item, partition, body, value)
	}
	select {
	case err := <-record.ended:
		if err == nil {
			return Result{Outcome: OK}
		}
		return kafkaResult(err)
	case <-lost:
		k.mu.Lock()
		defer k.mu.Unlock()
		return kafkaResult(fmt.Errorf("connection lost: %w", k.cause))
	case <-ctx.Done():
		return kafkaResult(ctx.Err())
	}
}

// produce gives an item to the client.
func (k *kafkaSink) produce(item *Item, partition int32, body []byte, value kafkaValue) kafkaRecord {
	record := kafkaRecord{value: value, ended: make(chan error, 1)}
	k.mu.Lock()
	k.records[item.ID] = record
	k.mu.Unlock()
	k.current().TryProduce(context.Background(), &kgo.Record{Topic: k.config.Topic, Partition: partition, Key: []byte(laneOf(item)), Value: body, Headers: []kgo.RecordHeader{
		{Key: "content-type", Value: []byte("application/cloudevents+json; charset=UTF-8")}, {Key: kafkaID, Value: []byte(item.ID)}, {Key: "ce_source", Value: []byte(item.Source)},
	}}, func(_ *kgo.Record, err error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.records, item.ID)
		if err == nil {
			k.note(item.ID, value) // the attempt may have ended
		} else {
			k.forget(partition, err)
		}
		record.ended <- err
	})
	return record
}

// forget notes that the topic may have a record that has failed, or that it has other partitions. The caller holds mu.
func (k *kafkaSink) forget(partition int32, err error) {
	switch {
	case errors.Is(err, kgo.ErrMaxBuffered) || kafkaResult(err).Outcome == Permanent:
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		k.read = nil
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		k.refused, k.read = true, nil
	case int(partition) < len(k.read):
		k.read[partition] = tailUnread
	}
}

// note adds a record to the tail, and makes room for it. The caller holds mu.
func (k *kafkaSink) note(id string, value kafkaValue) {
	if len(k.tail) >= kafkaTail {
		for other := range k.tail {
			delete(k.tail, other)
			break
		}
	}
	k.tail[id] = value
}

// Reasons of errors of Kafka that a person can change.
var kafkaReasons = map[error]string{
	kerr.UnknownTopicOrPartition:    "the topic does not exist",
	kerr.TopicAuthorizationFailed:   "the user may not describe, read and write the topic",
	kerr.ClusterAuthorizationFailed: "the user may not write idempotently to the cluster",
	kerr.SaslAuthenticationFailed:   "the user or the password is wrong",
	kgo.ErrMaxBuffered:              "too many records wait for the brokers",
	context.Canceled:                "cancelled",
	context.DeadlineExceeded:        "timed out",
}

// kafkaResult returns what an error means. No error of the client has the secret.
func kafkaResult(err error) Result {
	switch {
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge):
		return Result{Outcome: Permanent, TooLarge: true, Reason: "the record is too large for the topic"}
	case errors.Is(err, kerr.InvalidRecord):
		return Result{Outcome: Permanent, Reason: "the topic rejects the record as invalid"}
	}
	for is, reason := range kafkaReasons {
		if errors.Is(err, is) {
			return retryable("%s", reason)
		}
	}
	return retryable("%v", err)
}
