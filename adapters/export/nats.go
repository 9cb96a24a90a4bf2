package export

import (
	"bytes"
	"context"
	"errors"
	"path"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsSink publishes each item as a structured CloudEvent to a stream of NATS JetStream. Each item has a subject of its own:
//
//	{subject}.{journal}.usage.{tenant}.{dimension}.{seq}
//	{subject}.{journal}.wallet.{tenant}.{seq}
//
// The server takes a message only if the stream has none with its subject. So an item is there once, however late it is repeated:
// the window in which a server drops a repeated id of a message is finite. This holds for as long as the stream keeps the message.
type natsSink struct {
	config  Config
	turn    chan struct{} // the right to use session
	session *natsSession  // nil: none was opened yet
}

func newNATS(c Config) *natsSink {
	return &natsSink{config: c, turn: make(chan struct{}, 1)}
}

// Close closes the connection.
func (n *natsSink) Close() error {
	if n.session != nil {
		n.session.conn.Close()
	}
	return nil
}

// Deliver publishes an item, and waits for the acknowledgement of the stream.
func (n *natsSink) Deliver(ctx context.Context, item *Item) Result {
	ctx, cancel := context.WithTimeout(ctx, totalTimeout)
	defer cancel()
	s, err := n.open(ctx)
	if err != nil {
		return natsResult(err)
	}
	subject, body := natsSubject(n.config.Subject, item), cloudEvent(item)
	ctx, done := s.await(ctx, subject)
	defer done()
	ack, err := s.js.Publish(ctx, subject, body, jetstream.WithMsgID(item.ID), jetstream.WithExpectStream(n.config.Stream),
		jetstream.WithExpectLastSequencePerSubject(0), jetstream.WithRetryAttempts(0)) // one attempt is one request
	switch {
	case isCode(err, codeSubjectTaken):
		has, err := s.stream.GetLastMsgForSubject(ctx, subject)
		return compared(ctx, has, err, body, retryable("the stream has removed the message"))
	case err != nil:
		return natsResult(because(ctx, err))
	case ack.Stream != n.config.Stream || ack.Sequence == 0:
		return natsResult(jetstream.ErrInvalidJSAck)
	case ack.Duplicate:
		has, err := s.stream.GetMsg(ctx, ack.Sequence)
		return compared(ctx, has, err, body, Result{Outcome: Duplicate}) // it was there, and was consumed
	}
	return Result{Outcome: OK}
}

// open returns the session. If there is none, or it has ended, it opens one.
func (n *natsSink) open(ctx context.Context) (*natsSession, error) {
	select {
	case n.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-n.turn }()
	if n.session != nil && !n.session.conn.IsClosed() {
		return n.session, nil
	}
	s, err := openNATS(ctx, &n.config)
	if err == nil {
		n.session = s
	}
	return s, err
}

// natsSubject returns the subject of an item. Dots separate the tokens of a subject, so they are tildes in a dimension: it has none.
func natsSubject(prefix string, item *Item) string {
	of := []string{prefix, path.Base(item.Source), item.Stream, item.Tenant}
	if item.Stream == Usage {
		of = append(of, strings.ReplaceAll(item.Dimension, ".", "~"))
	}
	return strings.Join(append(of, strconv.FormatUint(item.Seq, 10)), ".")
}

// compared returns what a message in the place of an item means. A stream that has removed it has the outcome missing.
func compared(ctx context.Context, has *jetstream.RawStreamMsg, err error, body []byte, missing Result) Result {
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return missing
	case err != nil:
		return natsResult(because(ctx, err))
	case !bytes.Equal(has.Data, body):
		return Result{Outcome: Permanent, Reason: "the stream has another message in the place of this item"}
	}
	return Result{Outcome: Duplicate}
}

// Codes of errors of JetStream.
const (
	codeTooLarge     jetstream.ErrorCode = 10054 // more bytes than a message of the stream may have
	codeSubjectTaken jetstream.ErrorCode = 10071 // the last message of the subject is another one than was expected
)

func isCode(err error, code jetstream.ErrorCode) bool {
	at := new(jetstream.APIError)
	return errors.As(err, &at) && at.ErrorCode == code
}

// because returns the cause for which an attempt was cancelled, or else its error.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// natsResult returns what an error means. No error of the client has the secret.
func natsResult(err error) Result {
	switch at := new(jetstream.APIError); {
	case isCode(err, codeTooLarge), errors.Is(err, nats.ErrMaxPayload):
		return Result{Outcome: Permanent, TooLarge: true, Reason: "the message is too large for the stream or the server"}
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return retryable("no stream takes the subject: add it to the subjects of the stream")
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return retryable("the stream does not exist")
	case errors.Is(err, jetstream.ErrInvalidJSAck):
		return retryable("the answer is not an acknowledgement of the stream")
	case errors.As(err, &at):
		return retryable("%s (%d)", at.Description, at.ErrorCode)
	case errors.Is(err, context.Canceled):
		return retryable("cancelled")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return retryable("timed out")
	}
	return retryable("%v", err)
}
