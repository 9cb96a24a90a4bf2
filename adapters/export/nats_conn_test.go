package export

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

const natsGreeting = `INFO {"server_id":"x","version":"2.10.0","proto":1,"headers":true,"max_payload":1048576,"jetstream":true} ` + "\r\n"

// serveEach starts a server that serves one connection after the other, and then closes it.
func serveEach(t *testing.T, serve func(net.Conn)) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String()
}

// hostile starts a server of NATS that greets, and then sends text on each connection, as a reply to the first request. It takes the connection to its end.
func hostile(t *testing.T, greeting, reply string) (address string) {
	return serveEach(t, func(conn net.Conn) { serveHostile(conn, greeting, reply) })
}

func serveHostile(conn net.Conn, greeting, reply string) {
	if _, err := io.WriteString(conn, greeting); err != nil {
		return
	}
	for r := bufio.NewReader(conn); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		answer := ""
		switch word, _, _ := strings.Cut(line, " "); strings.TrimSpace(word) {
		case "PING":
			answer = "PONG\r\n"
		case "PUB":
			answer = reply
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

// TestHostileServerOfNATS: what a server sends can neither end the process nor take its memory. The attempt fails, and says why.
func TestHostileServerOfNATS(t *testing.T) {
	many := strings.Repeat("MSG a 1 1\r\nx\r\n", 100)
	for _, c := range []struct {
		name, greeting, reply string
		want                  error
	}{
		{"a message of 9 EB", natsGreeting, "MSG a 1 9000000000000000000\r\nxxxx", errNATSMessage},
		{"a message of 20 GB with a header", natsGreeting, "HMSG a 1 12 20000000000\r\nNATS/1.0\r\n\r\n", errNATSMessage},
		{"a size that overflows", natsGreeting, "MSG a 1 18446744073709551617\r\nx", errNATSProtocol},
		{"a message behind an empty error", natsGreeting, "-ERR \nMSG a 1 5\r\nMSG a 1 9000000000000000000\r\n", errNATSProtocol},
		{"a line without an end", natsGreeting, "MSG a " + strings.Repeat("1", 1<<20), errNATSLine},
		{"a greeting without an end", "INFO {" + strings.Repeat(" ", 1<<20), "", errNATSLine},
		{"another greeting", "220 mail\r\n", "", errNATSProtocol},
		{"a greeting that is no JSON", "INFO {\r\n", "", errNATSProtocol},
		{"no greeting", "PONG\r\n", "", errNATSProtocol},
		{"messages without a request", natsGreeting, many, errNATSReplies},
	} {
		got := deliverOnce(t, Config{Name: "test", Kind: KindNATS, Servers: []string{"nats://" + hostile(t, c.greeting, c.reply)}, Stream: "test", Subject: "test", Inflight: 1}, item(1))
		if got.Outcome != Retryable || !strings.Contains(got.Reason, c.want.Error()) {
			t.Errorf("%s: %+v, want %v", c.name, got, c.want)
		}
	}
}

// TestProtocolOfNATS: what a server may send is accepted in parts of any size, and what follows is checked likewise.
func TestProtocolOfNATS(t *testing.T) {
	lines := []string{natsGreeting, "PING\r\n", "PONG\r\n", "+OK\r\n", "-ERR 'Authorization Violation'\r\n", "MSG a 1 0\r\n\r\n", "MSG a.b 12 c.d 5\r\nPING\n\r\n",
		"HMSG a 1 12 14\r\nNATS/1.0\r\n\r\nxx\r\n", "HMSG a 1 b 12 12\r\nNATS/1.0\r\n\r\n\r\n", "MSG a 1  2\r\nab\r\n"}
	wrong := []string{"PING\n", "PONG x\r\n", "ping\r\n", "+OK \r\n", "-ERR\r\n", "INFO\r\n", "PUB a 1\r\nx\r\n", "MSG a 1\r\n", "MSG a 1 b 1 1\r\nx\r\n", "HMSG a 1 1\r\nx\r\n",
		"MSG a 1 -1\r\n", "MSG a 1 1x\r\nx\r\n", "MSG a 1 5\r7\r\n", "MSG a 1 1048577\r\n", "MSG a 1 1\r\nxy\r\n", "MSG a 1 1\r\nx\n", "\r\n"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(lines), 0, natsReplies).Draw(t, "lines"), "")
		isWrong := rapid.Bool().Draw(t, "wrong")
		if isWrong {
			text += rapid.SampledFrom(wrong).Draw(t, "line")
		}
		attempts := new(atomic.Uint64)
		attempts.Store(2)
		n := natsProtocol{attempts: attempts}
		size := rapid.IntRange(1, len(text)+1).Draw(t, "size")
		var err error
		for part := range slices.Chunk([]byte(text), size) {
			if err = errors.Join(err, n.follow(part)); err != nil {
				break
			}
		}
		if (err != nil) != isWrong {
			t.Fatalf("%q: %v", text, err)
		}
		if !isWrong && (n.left > 0 || n.inside || !bytes.Equal(n.line, nil)) {
			t.Fatalf("%q: %+v", text, n)
		}
	})
}
