// Package export delivers items, such as sealed slices of usage, to systems outside of the node.
//
//	Item ─► Sink.Deliver ─► ok, duplicate │ retryable │ permanent │ stopped
//	          file, http, webhook, cloudevents, postgres, nats, kafka
//
// A sink decides nothing about order and repetition: the caller delivers the items of a lane one after the other, and repeats an
// item until the outcome is ok or duplicate. Each attempt has the same ID, so that a receiver can drop what it has.
package export

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Names of streams.
const (
	Usage  = "usage"  // sealed slices of a dimension
	Wallet = "wallet" // movements of money of a tenant
)

// An Item is one position of a lane.
type Item struct {
	Source    string // the node, as a URI reference
	ID        string // the same at each attempt, and of no other item; without a full stop
	Stream    string // Usage or Wallet
	Tenant    string
	Dimension string    // of Usage; empty for Wallet
	Seq       uint64    // position in the lane, from 1 without a gap
	Time      time.Time // when it was sealed or moved
	Body      []byte    // a JSON object on one line

	// HasPrior reports whether the lane has passed earlier items to this sink. Nil: that is not known.
	HasPrior func() (bool, error)
}

// An Outcome says what became of an attempt.
type Outcome uint8

const (
	OK        Outcome = iota + 1 // the receiver has the item, durably as far as it says
	Duplicate                    // the receiver had the item before
	Retryable                    // the receiver may take the same item later
	Permanent                    // the receiver takes other items, but never this one
	Stopped                      // the receiver wants no items any more
)

var outcomes = [...]string{"", "ok", "duplicate", "retryable", "permanent", "stopped"}

func (o Outcome) String() string { return outcomes[o] }

// A Result is the outcome of an attempt.
type Result struct {
	Outcome    Outcome
	Status     int           // of HTTP; 0: there was no response
	TooLarge   bool          // Permanent: the item has more bytes than the receiver takes
	Reason     string        // of Retryable, Permanent and Stopped, for people: at most maxReason printable ASCII bytes
	RetryAfter time.Duration // of Retryable: the receiver asks for this pause, at most MaxRetryAfter; 0: it does not
}

// A Sink delivers items. It is safe for concurrent use.
type Sink interface {
	// Deliver attempts to deliver an item once. It ends with ctx at the latest, or when the operating system returns from a call.
	Deliver(ctx context.Context, item *Item) Result
	// Close frees what the sink has open. No Deliver is in progress.
	Close() error
}

// Kinds of sinks.
const (
	KindFile        = "file"
	KindHTTP        = "http"
	KindWebhook     = "webhook"
	KindCloudEvents = "cloudevents"
	KindPostgres    = "postgres"
	KindNATS        = "nats"
	KindKafka       = "kafka"
)

// A Config says where a sink delivers. The configuration of the node has checked it.
type Config struct {
	Name       string
	Kind       string
	URL        string // of http, webhook, cloudevents and postgres
	Dir        string // of kind file
	SecretFile string // of webhook: the keys of signatures; of http and cloudevents: a bearer token; of postgres: the password; of nats: what natsSecret reads; of kafka: a user and a password. Empty: there is none
	Inflight   int    // attempts at once, which limits connections

	Reserved []Reserved // of kind file: directories that it may not use

	// Of kinds nats and kafka.
	Servers []string // URLs of the servers of one cluster
	CAFile  string   // certificates of authorities; empty: those of the system

	Stream  string // of nats: name of the stream
	Subject string // of nats: first tokens of all subjects
	Topic   string // of kafka: name of the topic
	SASL    string // of kafka: how a user is authenticated: plain, scram-sha-256, or scram-sha-512 if it is empty
}

// New returns a sink. It opens nothing before the first Deliver.
func New(c Config) (Sink, error) {
	switch c.Kind {
	case KindFile:
		return newFile(&c, fileBytes, disk{}), nil
	case KindHTTP:
		return &putSink{newReceiver(c)}, nil
	case KindWebhook:
		return &webhook{receiver: newReceiver(c)}, nil
	case KindPostgres:
		return newPostgres(c)
	case KindNATS:
		return newNATS(c), nil
	case KindKafka:
		return newKafka(c, kafkaMetadata), nil
	case KindCloudEvents:
		return &cloudEvents{newReceiver(c)}, nil
	}
	return nil, fmt.Errorf("export: %q is no kind of sink", c.Kind)
}

// maxReason is the length of a reason.
const maxReason = 240

// printable returns at most maxReason bytes of a text, without line breaks and control characters. The text may come from a receiver.
func printable(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text[:min(len(text), maxReason)])
}

func retryable(format string, args ...any) Result {
	return Result{Outcome: Retryable, Reason: printable(fmt.Sprintf(format, args...))}
}
