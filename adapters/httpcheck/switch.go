package httpcheck

import (
	"errors"
	"net/http"
)

// ErrSwitched reports a response that switches to another protocol, although the request did not ask for one.
var ErrSwitched = errors.New("the server has switched to another protocol, which was not requested")

// Unswitched returns a transport that fails with ErrSwitched, and closes the connection, if the response is 101. Without it, such a
// body has no end, and does not end with the context of its request.
func Unswitched(by http.RoundTripper) http.RoundTripper { return unswitched{by} }

type unswitched struct{ http.RoundTripper }

// RoundTrip sends a request.
func (u unswitched) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := u.RoundTripper.RoundTrip(r)
	if err == nil && res.StatusCode == http.StatusSwitchingProtocols {
		_ = res.Body.Close() // the connection is lost in any case
		return nil, ErrSwitched
	}
	return res, err
}

// CloseIdleConnections closes those of the transport.
func (u unswitched) CloseIdleConnections() {
	if c, ok := u.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
