package export

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
)

// Limits of what a server of NATS sends.
const (
	natsLine    = 64 << 10 // bytes of a line: that of INFO names the servers of a cluster
	natsMessage = 1 << 20  // bytes of a message: a server permits no more by default
	natsReplies = 4        // messages for each attempt, which has at most two requests
)

// NATSBytes is the memory of a connection to NATS: a message that is read, one that is handled, and the lines before them.
const NATSBytes = 2 * (natsMessage + natsLine)

var (
	errNATSLine     = fmt.Errorf("the server has sent a line of more than %d bytes", natsLine)
	errNATSMessage  = fmt.Errorf("the server has announced a message of more than %d bytes", natsMessage)
	errNATSReplies  = errors.New("the server has sent more messages than were requested")
	errNATSProtocol = errors.New("the server does not follow the protocol of NATS")
)

// A natsConn is a connection to a server of NATS, without trust in the server: nats.go reads lines of any length, and makes room for a
// message of any length that is announced. So what does not follow natsProtocol does not reach it. What is encrypted cannot be
// checked, so the handshake of TLS is made here, and not by nats.go.
type natsConn struct {
	net.Conn
	greeting []byte // what is left of the line that was read before the handshake of TLS
	protocol natsProtocol
	rejects  func(error) // gets the reason for which the connection is closed
}

// dialNATS connects to a server, within connectTimeout. It uses TLS if the server requires it, or if secure is not nil.
func dialNATS(ctx context.Context, address string, secure *tls.Config, attempts *atomic.Uint64, rejects func(error)) (*natsConn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	n := &natsConn{Conn: limitedConn{conn}, protocol: natsProtocol{attempts: attempts}, rejects: rejects}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := n.greet(ctx, address, secure); err != nil {
		return nil, errors.Join(because(ctx, err), conn.Close())
	}
	return n, nil
}

// greet reads the first line of the server, and makes the handshake of TLS.
func (n *natsConn) greet(ctx context.Context, address string, secure *tls.Config) error {
	for b := make([]byte, 1); !bytes.HasSuffix(n.greeting, []byte("\n")); { // no byte of the handshake
		if _, err := n.Conn.Read(b); err != nil {
			return err
		}
		if err := n.protocol.follow(b); err != nil {
			return err
		}
		n.greeting = append(n.greeting, b...)
	}
	var server struct {
		Required  bool `json:"tls_required"`
		Available bool `json:"tls_available"`
	}
	info, ok := bytes.CutPrefix(n.greeting, []byte("INFO "))
	if !ok || json.Unmarshal(info, &server) != nil {
		return errNATSProtocol
	}
	if !server.Required && (secure == nil || !server.Available) {
		return nil // if TLS is required, nats.go rejects the server
	}
	if secure == nil {
		secure, _ = tlsWith("") // without a file it does not fail
	}
	is := secure.Clone()
	is.ServerName, _, _ = net.SplitHostPort(address)
	conn := tls.Client(n.Conn, is)
	n.Conn = conn
	return conn.HandshakeContext(ctx)
}

// Read reads what follows the protocol. Otherwise it closes the connection.
func (n *natsConn) Read(b []byte) (int, error) {
	if len(n.greeting) > 0 {
		read := copy(b, n.greeting)
		n.greeting = n.greeting[read:]
		return read, nil
	}
	read, err := n.Conn.Read(b)
	if wrong := n.protocol.follow(b[:read]); wrong != nil {
		n.rejects(wrong)
		return 0, errors.Join(wrong, n.Close())
	}
	return read, err
}

// A natsProtocol follows what a server sends. It accepts the lines of a server as they are specified and nothing else, so that nats.go
// cannot see another line or another message in it.
type natsProtocol struct {
	attempts *atomic.Uint64
	messages uint64
	line     []byte // what has come of a line
	left     int    // bytes of a message that have not come
	inside   bool   // a message has begun, whose end of line has not come
}

// follow checks what has come next.
func (n *natsProtocol) follow(b []byte) error {
	for len(b) > 0 {
		if n.left > 0 {
			part := min(n.left, len(b))
			n.left -= part
			b = b[part:]
			continue
		}
		line, rest, ended := bytes.Cut(b, []byte("\n"))
		if len(n.line)+len(line) > natsLine {
			return errNATSLine
		}
		n.line = append(n.line, line...)
		if !ended {
			return nil
		}
		if err := n.endLine(); err != nil {
			return err
		}
		n.line, b = n.line[:0], rest
	}
	return nil
}

// endLine checks a line.
func (n *natsProtocol) endLine() error {
	line, ended := bytes.CutSuffix(n.line, []byte("\r"))
	if !ended || bytes.IndexByte(line, '\r') >= 0 {
		return errNATSProtocol
	}
	if n.inside {
		n.inside = false
		if len(line) > 0 {
			return errNATSProtocol
		}
		return nil
	}
	fields := bytes.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
	word, _, _ := bytes.Cut(line, []byte(" "))
	switch args := len(fields) - 1; string(word) {
	case "PING", "PONG", "+OK":
		if len(line) == len(word) {
			return nil
		}
	case "INFO", "-ERR":
		if args > 0 {
			return nil
		}
	case "MSG":
		if args == 3 || args == 4 {
			return n.begin(fields[args])
		}
	case "HMSG":
		if args == 4 || args == 5 {
			return n.begin(fields[args])
		}
	}
	return errNATSProtocol
}

// begin begins a message of a size.
func (n *natsProtocol) begin(size []byte) error {
	bytes, err := strconv.ParseUint(string(size), 10, 64)
	if err != nil {
		return errNATSProtocol
	}
	if bytes > natsMessage {
		return errNATSMessage
	}
	if n.messages++; n.messages > natsReplies*n.attempts.Load() {
		return errNATSReplies
	}
	n.left, n.inside = int(bytes), true
	return nil
}
