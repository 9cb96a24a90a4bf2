package server

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"macronode/adapters/nodedir"
	"macronode/adapters/services"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/event"
	"macronode/core/types"
)

// TestListenerThatDiedIsStartedAgain closes the socket of the public listener. The listener fails, and a restart
// serves on the same address again.
func TestListenerThatDiedIsStartedAgain(t *testing.T) {
	m := newMetered(t, "listen.http=127.0.0.1:0")
	events := make(chan event.Event, 8)
	hears := func(want event.Event) {
		t.Helper()
		select {
		case got := <-events:
			if got != want {
				t.Fatalf("it says %#v, want %#v", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("it has not said %#v for a minute", want)
		}
	}
	set := services.New(m.log, func(e event.Event) { events <- e })
	made := 0
	handler := func() http.Handler {
		made++ // the real one declares its metrics: a second one panics
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	}
	set.Add(types.ServiceHTTP, m.listeners.service(m.listeners.public(), m.gauges.publicListener(), handler,
		func(r *nodedir.Run) *string { return &r.Listen.HTTP }, func(context.Context) {}))
	up, down := event.ServiceUp{Service: types.ServiceHTTP}, event.ServiceDown{Service: types.ServiceHTTP}
	first := ""
	for range 3 {
		set.Do(event.ServiceCommand{Service: types.ServiceHTTP, Verb: event.StartService})
		hears(up)
		address := m.addressOfHTTP()
		if first == "" {
			first = address
		}
		if address != first {
			t.Fatalf("it listens on %s, and before on %s", address, first)
		}
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + address + "/openapi.json")
		testkit.Must(t, err)
		testkit.Must(t, resp.Body.Close())
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("it answers %d", resp.StatusCode)
		}
		shutListener(t, address)
		hears(down)
	}
	if made != 1 {
		t.Errorf("%d handlers were made, want one for all starts", made)
	}
	if n := set.Counts(types.ServiceHTTP); n.Died != 3 || n.Started != 3 {
		t.Errorf("%+v", n)
	}
}

func (m *metered) addressOfHTTP() string {
	return m.runFile.contents().Listen.HTTP
}

// shutListener closes the listening socket of this process at an address, like a failure of the network stack.
func shutListener(t *testing.T, address string) {
	t.Helper()
	at, err := net.ResolveTCPAddr("tcp", address)
	testkit.Must(t, err)
	for fd := range 4096 {
		listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
		if err != nil || listens == 0 {
			continue
		}
		if name, err := unix.Getsockname(fd); err == nil {
			if in, is := name.(*unix.SockaddrInet4); is && in.Port == at.Port {
				testkit.Must(t, unix.Shutdown(fd, unix.SHUT_RDWR))
				return
			}
		}
	}
	t.Fatalf("no socket listens on %s", address)
}
