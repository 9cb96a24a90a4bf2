package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"macronode/core/types"
)

// errCut says that a stream cannot go on: its connection ends, so that it does not look
// whole.
var errCut = errors.New("httpapi: a stream was cut")

// glance is how often a stream looks whether it is to end.
const glance = 250 * time.Millisecond

// A stream is an answer that goes out in parts.
type stream struct {
	k   *call
	out *http.ResponseController
}

// stream begins one. It has a permit of the facet streams until it ends.
func (k *call) stream(kind []string) *stream {
	s := &stream{k: k, out: http.NewResponseController(k)}
	k.identify()
	k.begin(http.StatusOK, kind)
	return s
}

// send sends a part. A reader that does not take it in time is left: nothing waits
// for him in memory.
func (s *stream) send(part []byte) error {
	_ = s.out.SetWriteDeadline(time.Now().Add(s.k.Patience)) // where there is none, the connection bounds it
	if _, err := s.k.Write(part); err != nil {
		return errCut
	}
	if err := s.out.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return errCut
	}
	return nil
}

// over is why a stream must end; empty: it need not.
func (s *stream) over() string {
	status := s.k.Node.Status()
	key, known := s.k.Books.Find(s.k.key.ID)
	switch {
	case status.Phase >= types.Draining || !status.Reads:
		return "draining"
	case !known || expired(&key, status.At):
		return "unauthorized"
	case s.k.r.Context().Err() != nil:
		return "left"
	default:
		return ""
	}
}

// follow sends the movements behind after for as long as it may.
func (k *call) follow(after types.Seq) error {
	s := k.stream(eventsType)
	k.door = k.API.stream
	if err := s.send([]byte(":\n\n")); err != nil { // so that the header leaves
		return err
	}
	said := time.Now()
	for {
		if why := s.over(); why != "" {
			return s.send([]byte("event: end\ndata: {\"reason\":\"" + why + "\"}\n\n"))
		}
		n, err := s.changes(&after)
		switch {
		case err != nil:
			return err
		case n > 0:
			said = time.Now()
			continue
		case time.Since(said) >= k.Beat:
			said = time.Now()
			if err := s.send([]byte(":\n\n")); err != nil {
				return err
			}
		}
		s.wait(after+1, min(glance, k.Beat))
	}
}

// changes sends what there is behind after, one event each, and moves after on.
func (s *stream) changes(after *types.Seq) (sent int, err error) {
	found, _, err := s.k.Views.Changes(s.k.key.Tenant, *after, page)
	if err != nil {
		return 0, err
	}
	out := takeBuffer()
	defer giveBuffer(out)
	for _, c := range found {
		part := object(append((*out)[:0], "id: "...))
		part = appendSigned(part, types.MinorUnits(uint64(c.Seq)), false)
		part = append(part, "\nevent: change\ndata: "...)
		if part, err = s.k.change(part, c); err != nil {
			return sent, err
		}
		*out = append(part, '\n', '\n')
		if err := s.send(*out); err != nil {
			return sent, err
		}
		*after = c.Seq
		sent++
	}
	return sent, nil
}

// wait lets d pass, or less when there is something new.
func (s *stream) wait(seq types.Seq, d time.Duration) {
	ctx, cancel := context.WithTimeout(s.k.r.Context(), d)
	defer cancel()
	if !s.k.Views.Await(ctx, s.k.key.Tenant, seq) {
		<-ctx.Done() // where too many wait, it came back at once
	}
}
