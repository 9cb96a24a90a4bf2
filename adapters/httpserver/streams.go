package httpserver

import (
	"cmp"
	"net/http"
	"net/netip"
	"time"
)

// streams are the HTTP/2 requests of a connection. They count until they have ended for both sides:
// the handler has returned, and the response was written as a whole or the stream was reset. A
// handler returns while net/http still has the end of its response, for which a client may open no
// window. So frames tell when a stream ends.
type streams struct {
	last     uint32              // the highest number of a stream
	open     map[uint32]struct{} // the streams that have not ended, by their numbers
	handlers int                 // at work, also for streams that the client has reset
	counted  int                 // in the counts of the peer and of the listener
	handled  int                 // all that have had a handler
	answered int                 // all that the server has ended, without those that answerStreams has returned
}

// count returns how many requests a connection has. Those above the limit of a connection are
// refused by net/http.
func (s *streams) count(most int) int { return max(min(len(s.open), most), s.handlers) }

// beginStream notes the header of a request, or of the trailers of one. It returns false if the
// connection has too many streams that net/http has refused and that it does not read about.
func (l *listener) beginStream(c *conn, number uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &c.streams
	if _, open := l.open[c]; !open || number <= s.last || number%2 == 0 {
		return true
	}
	if s.last = number; s.open == nil {
		s.open = make(map[uint32]struct{})
	}
	s.open[number] = struct{}{}
	l.recount(c)
	return len(s.open) <= l.perConn+MaxIdleFrames
}

// endStreams notes that streams have ended. They may have ended before.
func (l *listener) endStreams(c *conn, numbers ...uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range numbers {
		delete(c.streams.open, n)
	}
	l.recount(c)
}

// answerStreams notes that the server has ended streams. They may have ended before. It returns how many of them had no handler: net/http
// itself rejects a malformed request.
func (l *listener) answerStreams(c *conn, numbers ...uint32) (unhandled int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &c.streams
	for _, n := range numbers {
		if _, open := s.open[n]; open {
			delete(s.open, n)
			s.answered++
		}
	}
	l.recount(c)
	unhandled = max(0, s.answered-s.handled)
	s.answered -= unhandled
	return unhandled
}

// recount brings the counts up to date with the requests of a connection. The caller holds l.mu.
func (l *listener) recount(c *conn) {
	by := c.streams.count(l.perConn) - c.streams.counted
	if by == 0 {
		return
	}
	c.streams.counted += by
	if of := c.holder; of != nil {
		l.streams -= l.within(of)
		of.streams += by
		l.streams += l.within(of)
		if delete(l.large, of); of.streams >= l.many() {
			l.large[of] = struct{}{}
		}
		l.leaves(c.peer, of)
	} else {
		l.streams += by
	}
	if l.hooks.Stream != nil {
		l.hooks.Stream(by)
	}
}

// leaves removes a peer that has nothing any more. The caller holds l.mu.
func (l *listener) leaves(at netip.Addr, of *peer) {
	if of.open == 0 && of.streams == 0 && l.peers[at] == of {
		delete(l.peers, at)
	}
}

// streamShare returns how many requests of HTTP/2 a peer may have: as many as connections, and
// always those of one connection; 0: there is no limit.
func (l *listener) streamShare(of *peer) int {
	if of.share == 0 {
		return 0
	}
	return max(of.share, l.perConn)
}

// within returns how many requests of a peer are within its share. Only they count in the total:
// those above are refused, and take no place of another peer until they have ended.
func (l *listener) within(of *peer) int {
	if share := l.streamShare(of); share > 0 {
		return min(of.streams, share)
	}
	return of.streams
}

// beginHandler counts the handler of an HTTP/2 request. It returns false if the request must be
// refused: it is above a limit, or its connection is closed.
func (l *listener) beginHandler(c *conn) bool {
	gone, by, ok := l.makeStreamRoom(c)
	closed := 0
	switch {
	case gone != nil:
		_ = gone.Close()
		if closed = 1; l.hooks.IdleClosed != nil {
			l.hooks.IdleClosed(by)
		}
	case ok || by == NumConnLimits:
		return ok
	case by == ConnLimitPeer:
		c.refused.Add(1)
		callHook(l.hooks.PeerRefused)
	default:
		c.refused.Add(1)
		callHook(l.hooks.Refused)
	}
	l.crowdOfStreams.note(time.Now(), c.peer, "listen."+by.String(), closed)
	return ok
}

// endHandler notes that the handler of a request has returned.
func (l *listener) endHandler(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.streams.handlers--
	l.recount(c)
}

// makeStreamRoom counts the handler of one more request of a connection, unless it must be refused.
// It returns the connection to be closed for it, if any, and the limit that was reached;
// NumConnLimits: none.
func (l *listener) makeStreamRoom(c *conn) (gone *conn, by ConnLimit, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.open[c]; !open {
		return nil, NumConnLimits, false
	}
	c.streams.handled++
	c.streams.handlers++
	l.recount(c)
	if by = l.fullFor(c.holder); by == ConnLimitTotal {
		gone = l.crowdedStreams(c.holder)
	}
	if gone != nil {
		l.forget(gone) // its requests end soon: it is closed for one of them only
	}
	if ok = gone != nil || by == NumConnLimits; !ok {
		c.streams.handlers--
		l.recount(c)
	}
	return gone, by, ok
}

// fullFor returns the limit that a request which is counted is above; NumConnLimits: none. The
// caller holds l.mu.
func (l *listener) fullFor(of *peer) ConnLimit {
	switch {
	case of != nil && of.streams > l.within(of):
		return ConnLimitPeer
	case l.streams > l.most:
		return ConnLimitTotal
	}
	return NumConnLimits
}

// crowdedStreams returns the connection to close for one more request of a peer, or nil: with
// keyedFirst, the one accepted first of those that give way during a request, else one of the peer
// with the most requests, if this peer has not many. The caller holds l.mu.
func (l *listener) crowdedStreams(of *peer) *conn {
	switch {
	case l.keyedFirst:
		return l.firstWithStream()
	case of == nil || of.streams < l.many():
		return l.fullest()
	}
	return nil
}

// firstWithStream returns the connection accepted first of those that give way during a request and have one. The caller holds l.mu.
func (l *listener) firstWithStream() *conn {
	for c := l.rest[rankFresh].first; c != nil; c = c.links[ConnLimitTotal].next {
		if c.yields && c.streams.counted > 0 {
			return c
		}
	}
	return nil
}

// fullest returns a connection of the peer that has the most requests, if those are many: the one
// with the most of those that never had an authenticated request, and of these the one accepted
// first; nil: there is none. So a few peers cannot hold all requests with responses that they do
// not read. Peers without a limit are spared. The caller holds l.mu.
func (l *listener) fullest() (first *conn) {
	most := 0
	for of := range l.large {
		if of.share > 0 {
			most = max(most, of.streams)
		}
	}
	if most == 0 {
		return nil
	}
	for c := range l.open {
		of := c.holder
		if of == nil || of.share == 0 || of.streams < most || c.streams.counted == 0 || c.isAuthenticated.Load() {
			continue
		}
		if first == nil || cmp.Or(cmp.Compare(first.streams.counted, c.streams.counted), cmp.Compare(c.accepted, first.accepted)) < 0 {
			first = c
		}
	}
	return first
}

// limitEnd gives the client http.write_timeout to take the end of a response of HTTP/2. The deadline
// that the handler has set is for more than what net/http still has of it, at most 4 KiB.
func (s *Server) limitEnd(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.config.Write)) // HTTP/2 has deadlines
}
