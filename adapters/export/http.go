package export

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"macronode/adapters/httpcheck"
)

// Limits of a request to a receiver.
const (
	connectTimeout = 5 * time.Second  // to connect, and for the handshake of TLS
	writeTimeout   = 5 * time.Second  // of one write
	totalTimeout   = 60 * time.Second // of an attempt
	bodyTimeout    = time.Second      // for the body after the header of a response
	idleTimeout    = 30 * time.Second // of a connection between two attempts

	responseHeader = 16 << 10 // bytes of the header of a response
	responseBody   = 4 << 10  // bytes of its body that are read; a longer one costs the connection

	// MaxRetryAfter is the longest pause that a receiver can ask for.
	MaxRetryAfter = 5 * time.Minute
)

// receiver is an HTTP server that takes items.
type receiver struct {
	url    string
	secret secretFile
	client *http.Client
}

func newReceiver(c Config) *receiver {
	dial := net.Dialer{Timeout: connectTimeout}
	return &receiver{url: c.URL, secret: secretFile(c.SecretFile), client: &http.Client{
		Transport: httpcheck.Unswitched(&http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dial.DialContext(ctx, network, address)
				if err != nil {
					return nil, err
				}
				return limitedConn{conn}, nil
			},
			TLSHandshakeTimeout:    connectTimeout,
			MaxIdleConnsPerHost:    c.Inflight,
			MaxConnsPerHost:        c.Inflight,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: responseHeader,
			DisableCompression:     true,
		}),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes the idle connections.
func (r *receiver) Close() error {
	r.client.CloseIdleConnections()
	return nil
}

// send sends a request with a body, and returns what the response means.
func (r *receiver) send(ctx context.Context, method, to string, header http.Header, body []byte) Result {
	ctx, cancel := context.WithTimeout(ctx, totalTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return retryable("the URL is invalid: %v", err)
	}
	header.Set("User-Agent", "macronode")
	req.Header, req.GetBody = header, nil // without GetBody the transport repeats nothing: one attempt is one request
	resp, err := r.client.Do(req)
	if err != nil {
		return retryable("%s", failure(err))
	}
	late := time.AfterFunc(bodyTimeout, cancel) // the status decides; the body is for people
	defer late.Stop()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, responseBody))
	_ = resp.Body.Close() // an error costs the connection only
	return classify(resp, text)
}

// failure returns why there is no response, without the URL.
func failure(err error) string {
	if at := new(url.Error); errors.As(err, &at) {
		err = at.Err
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no response within " + totalTimeout.String()
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return err.Error()
}

// classify returns what a response means:
//
//	2xx                 ok, whatever the body is; 208 is a duplicate
//	400 409 413 422     permanent: the same item would be rejected again
//	410                 stopped
//	all others          retryable: the receiver, its configuration or the way to it is at fault, not the item
func classify(resp *http.Response, body []byte) Result {
	r := Result{Outcome: Retryable, Status: resp.StatusCode}
	switch s := resp.StatusCode; {
	case s == http.StatusAlreadyReported:
		r.Outcome = Duplicate
		return r
	case s >= 200 && s < 300:
		r.Outcome = OK
		return r
	case s == http.StatusGone:
		r.Outcome = Stopped
	case s == http.StatusBadRequest, s == http.StatusConflict, s == http.StatusRequestEntityTooLarge, s == http.StatusUnprocessableEntity:
		r.Outcome, r.TooLarge = Permanent, s == http.StatusRequestEntityTooLarge
	default:
		r.RetryAfter = retryAfter(resp.Header.Get("Retry-After"))
	}
	reason := "status " + strconv.Itoa(resp.StatusCode)
	if to := resp.Header.Get("Location"); to != "" && resp.StatusCode/100 == 3 {
		reason += ": redirects are not followed; set the URL to the target"
	} else if len(body) > 0 {
		reason += ": " + string(body)
	}
	r.Reason = printable(reason)
	return r
}

// retryAfter reads a header of seconds. A date is not supported, because it needs the clocks of both sides.
func retryAfter(text string) time.Duration {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 31)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return MaxRetryAfter
	case err != nil:
		return 0
	}
	return min(time.Duration(n)*time.Second, MaxRetryAfter)
}

// limitedConn limits the time of each write.
type limitedConn struct{ net.Conn }

func (c limitedConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// putSink puts each item at a URL of its own, so that a repeated PUT changes nothing.
type putSink struct{ *receiver }

func (p *putSink) Deliver(ctx context.Context, item *Item) Result {
	header, err := p.secret.bearer()
	if err != nil {
		return retryable("%v", err)
	}
	header.Set("Content-Type", "application/json")
	header.Set("Idempotency-Key", item.ID)
	return p.send(ctx, http.MethodPut, p.url+itemPath(item), header, item.Body)
}

// itemPath is the path of an item below the URL of a receiver. Other items have other paths.
func itemPath(item *Item) string {
	seq := strconv.FormatUint(item.Seq, 10)
	if item.Stream == Usage {
		return "/slices/" + pathSegment(item.Tenant) + "/" + pathSegment(item.Dimension) + "/" + seq
	}
	return "/movements/" + pathSegment(item.Tenant) + "/" + seq
}

// pathSegment returns a name as one segment of a path. Each byte other than a letter, a digit, or one of . _ - : is ~ and two
// hexadecimal digits, and so is each full stop of a name of full stops only. The callers of the node choose names, and some
// receivers decode %2F before they remove the segments . and .. from a path: the segment has neither.
func pathSegment(name string) string {
	const digits = "0123456789ABCDEF"
	dots := strings.Trim(name, ".") == ""
	b := make([]byte, 0, len(name))
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == ':', c == '.' && !dots:
			b = append(b, c)
		default:
			b = append(b, '~', digits[c>>4], digits[c&15])
		}
	}
	return string(b)
}
