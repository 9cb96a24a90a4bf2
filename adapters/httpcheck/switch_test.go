package httpcheck_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"macronode/adapters/httpcheck"
)

// TestUnrequestedSwitchFails: a server that answers 101 gets no connection that goes on for ever. Other responses are those of the server.
func TestUnrequestedSwitchFails(t *testing.T) {
	ended := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/plain" {
			_, _ = io.WriteString(w, "plain")
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"); err != nil {
			t.Error(err)
		}
		_, err = io.Copy(io.Discard, conn)
		ended <- err
	}))
	defer server.Close()
	client := http.Client{Transport: httpcheck.Unswitched(&http.Transport{})}
	defer client.CloseIdleConnections()
	res, err := client.Get(server.URL + "/other")
	if !errors.Is(err, httpcheck.ErrSwitched) {
		t.Fatal(res, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	res, err = client.Get(server.URL + "/plain")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); err != nil || string(text) != "plain" {
		t.Fatal(string(text), err)
	}
}
