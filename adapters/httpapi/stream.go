package httpapi

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"macronode/core/types"
)

// errCut means that a stream cannot continue. Its connection is ended, so that the stream does not look complete.
var errCut = errors.New("httpapi: a stream was cut")

// endPollInterval is how often a stream checks whether it must end.
const endPollInterval = 250 * time.Millisecond

// A stream is a response that is sent in parts.
type stream struct {
	k   *call
	out *http.ResponseController
}

// stream begins a response. It has a permit of the facet streams until it ends.
func (k *call) stream(kind []string) *stream {
	s := &stream{k: k, out: http.NewResponseController(k)}
	k.identify()
	k.begin(http.StatusOK, kind)
	return s
}

// read calls f when the stream may read its next part. It returns false if the stream must end before.
func (s *stream) read(f func()) bool {
	for !s.awaitTurn() {
		if s.endReason() != "" {
			return false
		}
	}
	defer s.k.historyReads.give(s.k.key.Tenant)
	f()
	return true
}

func (s *stream) awaitTurn() bool {
	ctx, cancel := s.k.waiting(endPollInterval)
	defer cancel()
	return s.k.historyReads.await(ctx, s.k.key.Tenant)
}

// send sends a part. If the client does not read it in time, the stream is cut; nothing is buffered for it.
func (s *stream) send(part []byte) error {
	_ = s.out.SetWriteDeadline(time.Now().Add(s.k.StreamWriteTimeout)) // without a deadline of its own, the connection has one
	if _, err := s.k.Write(part); err != nil {
		return errCut
	}
	if err := s.out.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return errCut
	}
	return nil
}

// endReason returns why the stream must end; empty: it need not.
func (s *stream) endReason() string {
	status := s.k.Node.Status()
	switch {
	case status.Phase >= types.Draining || !status.Reads:
		return "draining"
	case s.k.noteLoss(): // the core takes the permit when the key ends
		return "unauthorized"
	case s.k.r.Context().Err() != nil:
		return "left"
	default:
		return ""
	}
}

// streamChanges sends the movements after a seq until the stream must end.
func (k *call) streamChanges(after types.Seq) error {
	s := k.stream(eventsType)
	k.endpoint = k.API.stream
	if err := s.send([]byte(":\n\n")); err != nil { // sends the header
		return err
	}
	lastSent := time.Now()
	for {
		if why := s.endReason(); why != "" {
			return s.send([]byte("event: end\ndata: {\"reason\":\"" + why + "\"}\n\n"))
		}
		n, err := s.changes(&after)
		switch {
		case err != nil:
			return err
		case n > 0:
			lastSent = time.Now()
			continue
		case time.Since(lastSent) >= k.HeartbeatInterval:
			lastSent = time.Now()
			if err := s.send([]byte(":\n\n")); err != nil {
				return err
			}
		}
		s.wait(after+1, min(endPollInterval, k.HeartbeatInterval))
	}
}

// changes sends the movements after a seq, one event each, and advances it.
func (s *stream) changes(after *types.Seq) (sent int, err error) {
	out := takeBuffer()
	defer giveBuffer(out)
	*out = (*out)[:0]
	if !s.read(func() { sent, err = s.renderChanges(out, after) }) || sent == 0 {
		return 0, err
	}
	return sent, cmp.Or(s.send(*out), err)
}

// renderChanges appends the events of a page. With an error, it has appended those before.
func (s *stream) renderChanges(out *[]byte, after *types.Seq) (n int, err error) {
	found, _, err := s.k.Index.Changes(s.k.key.Tenant, *after, defaultPage)
	if err != nil {
		return 0, err
	}
	for _, c := range found {
		part := jsonObject(append(*out, "id: "...))
		part = appendSigned(part, types.MinorUnits(uint64(c.Seq)), false)
		part = append(part, "\nevent: change\ndata: "...)
		if part, err = s.k.change(part, c); err != nil {
			return n, err
		}
		*out = append(part, '\n', '\n')
		*after = c.Seq
		n++
	}
	return n, nil
}

// wait waits for a movement, at most for d.
func (s *stream) wait(seq types.Seq, d time.Duration) {
	ctx, cancel := s.k.waiting(d)
	defer cancel()
	if !s.k.Index.Await(ctx, s.k.key.Tenant, seq) {
		<-ctx.Done() // Await returns at once if too many requests wait
	}
}
