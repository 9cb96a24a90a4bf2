package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"macronode/adapters/adminapi"
	"macronode/adapters/nodedir"
	"macronode/core/types"
)

const look = 100 * time.Millisecond // between two looks whether a node is gone

// Run says how the node is; it fails where the node is not ready.
func (v *statusCmd) Run(c *console) error {
	_, is, err := c.found()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	got, err := c.admin(ctx, is, http.MethodGet, "/readyz?verbose", oneAttempt)
	if err != nil {
		return err
	}
	if c.tree.JSON {
		err = c.printStatus(is, got)
	} else {
		err = c.sayStatus(is, got)
	}
	if err == nil && !got.ok() {
		err = errors.New("the node is not ready")
	}
	return err
}

// readyz is what a person is told of the node's own view.
type readyz struct {
	Phase   string   `json:"phase"`
	Reads   bool     `json:"reads"`
	Writes  bool     `json:"writes"`
	Unmet   []string `json:"waiting_for"`
	Ailing  []string `json:"degraded_by"`
	LSN     uint64   `json:"lsn"`
	Durable uint64   `json:"durable_lsn"`
	Fault   string   `json:"journal_fault"`
	Awaited []string `json:"awaited_upstreams"`
	Broken  []string `json:"broken_upstreams"`
	Down    []string `json:"unhealthy_upstreams"`

	Certificate adminapi.Proof `json:"certificate"`
}

// closer are the names of conditions, each with what is known of it more closely.
func (s *readyz) closer(names []string) string {
	var all []string
	for _, name := range names {
		more := ""
		switch name {
		case types.DependencyUpstreams.String():
			more = strings.Join(s.Awaited, ", ")
		case types.CircuitOpen.String():
			more = strings.Join(s.Broken, ", ")
		case types.NoEndpoint.String():
			more = strings.Join(s.Down, ", ")
		case types.JournalFailed.String():
			more = s.Fault
		}
		if more != "" {
			name += " (" + more + ")"
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}

// expiry is a line of a certificate that is over, or soon will be.
func (s *readyz) expiry() string {
	ends := s.Certificate.Ends.Format(time.RFC3339)
	switch s.Certificate.Age {
	case over.String():
		return "\nthe certificate expired at " + ends + ": clients reject it"
	case old.String():
		return "\nthe certificate expires at " + ends
	}
	return ""
}

func (c *console) sayStatus(is nodedir.Run, got told) error {
	var s readyz
	if err := json.Unmarshal(got.body, &s); err != nil || s.Phase == "" {
		return got.why()
	}
	text := s.Phase
	for _, more := range [...]struct {
		word  string
		names []string
	}{{"waiting for", s.Unmet}, {"degraded by", s.Ailing}} {
		if len(more.names) > 0 {
			text += ", " + more.word + " " + s.closer(more.names)
		}
	}
	does := map[bool]string{true: "yes", false: "no"}
	return c.say("%s: reads %s, writes %s, durable to %d of %d\nprocess %d, %s, http %s, admin %s%s", text, does[s.Reads], does[s.Writes],
		s.Durable, s.LSN, is.PID, is.Version, is.Listen.HTTP, is.Listen.Admin, s.expiry())
}

func (c *console) printStatus(is nodedir.Run, got told) error {
	said := jsontext.Value(got.body)
	if !said.IsValid() {
		quoted, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(string(got.body), "?"))
		if err != nil {
			return fmt.Errorf("print: %w", err)
		}
		said = quoted
	}
	return c.print(struct {
		Ready   bool           `json:"ready"`
		PID     int            `json:"pid"`
		Version string         `json:"version"`
		Listen  nodedir.Listen `json:"listen"`
		Readyz  jsontext.Value `json:"readyz"`
	}{got.ok(), is.PID, is.Version, is.Listen, said})
}

// Run ends the node and waits until it is gone.
func (v *drainCmd) Run(c *console) error {
	dir, is, err := c.found()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	path := "/drain"
	if v.Abort {
		path += "?abort"
	}
	began, attempt := c.now(), oneAttempt
	if v.Timeout > 0 {
		attempt = min(attempt, v.Timeout)
	}
	got, err := c.admin(ctx, is, http.MethodPost, path, attempt)
	if err == nil && !got.ok() {
		err = got.why()
	}
	if err != nil {
		return err
	}
	timeout := v.Timeout
	if timeout == 0 {
		timeout = drainTimeout(got.body)
	}
	for until := began.Add(timeout); c.now().Before(until); {
		switch gone, err := leftBy(dir, is); {
		case err != nil:
			return err
		case gone && c.tree.JSON:
			return c.print(struct {
				Drained bool `json:"drained"`
			}{true})
		case gone:
			return c.say("the node has ended")
		}
		if err := c.sleep(ctx, look); err != nil {
			return fmt.Errorf("the node continues to shut down: %w", err)
		}
	}
	return fmt.Errorf("the node has not ended after %v; --abort aborts the remaining requests", timeout)
}

// drainTimeout is how long to wait for a node that answered a drain so.
func drainTimeout(answer []byte) time.Duration {
	var said struct {
		Longest int64 `json:"longest_ms"`
	}
	_ = json.Unmarshal(answer, &said) // one that does not say takes the least
	return max(30*time.Second, time.Duration(said.Longest)*time.Millisecond+10*time.Second)
}

// leftBy reports that the node has left its directory, cleanly, and its process has
// ended, so that the directory is free.
func leftBy(dir string, was nodedir.Run) (gone bool, err error) {
	is, err := nodedir.Read(dir)
	switch {
	case errors.Is(err, nodedir.ErrNobody) || err == nil && is.Token != was.Token:
		return !nodedir.Alive(was.PID), nil
	case errors.Is(err, nodedir.ErrStale):
		return false, fmt.Errorf("the node (process %d) has ended without cleaning up: see its log", was.PID)
	}
	return false, err
}
