package cli

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"macronode/adapters/adminapi"
	"macronode/adapters/nodedir"
	"macronode/cmd/macronode/internal/settings"
	"macronode/core/types"
)

const drainPollInterval = 100 * time.Millisecond // between two checks whether a node has ended

// nodeReport prints the state and the configuration of a node.
type nodeReport struct{ *Console }

// Run shows the state of the node. It fails if the node is not ready.
func (v *statusCmd) Run(c *Console) error {
	_, is, err := c.node().findNode()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	got, err := c.node().callAdmin(ctx, is, http.MethodGet, "/readyz?verbose", attemptTimeout)
	if err != nil {
		return err
	}
	if c.tree.JSON {
		err = nodeReport{c}.printStatusJSON(is, got)
	} else {
		err = nodeReport{c}.printStatus(is, got)
	}
	if err == nil && !got.ok() {
		err = errors.New("the node is not ready")
	}
	return err
}

// readyz is the part of /readyz?verbose that is shown.
type readyz struct {
	Phase              string   `json:"phase"`
	Reads              bool     `json:"reads"`
	Writes             bool     `json:"writes"`
	WaitingFor         []string `json:"waiting_for"`
	DegradedBy         []string `json:"degraded_by"`
	LSN                uint64   `json:"lsn"`
	Durable            uint64   `json:"durable_lsn"`
	Fault              string   `json:"journal_fault"`
	Awaited            []string `json:"awaited_upstreams"`
	Broken             []string `json:"broken_upstreams"`
	BrokenForAnonymous []string `json:"broken_upstreams_anonymous"`
	Down               []string `json:"unhealthy_upstreams"`
	Failed             []string `json:"failed_providers"`
	Lost               int      `json:"lost_objects"`

	Certificate adminapi.Proof `json:"certificate"`
}

// withDetails returns the names of conditions with what is known about them.
func (s *readyz) withDetails(names []string) string {
	var all []string
	for _, name := range names {
		more := ""
		switch name {
		case types.DependencyUpstreams.String():
			more = strings.Join(s.Awaited, ", ")
		case types.CircuitOpen.String():
			more = strings.Join(s.openCircuits(), ", ")
		case types.NoEndpoint.String():
			more = strings.Join(s.Down, ", ")
		case types.ProviderFailed.String():
			more = strings.Join(s.Failed, ", ")
		case types.ObjectsLost.String():
			more = fmt.Sprintf("%d: macronode storage status lists them", s.Lost)
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

// openCircuits returns the upstreams with an open circuit, and says where it is open for anonymous
// callers only.
func (s *readyz) openCircuits() []string {
	all := slices.Clone(s.Broken)
	for _, name := range s.BrokenForAnonymous {
		if !slices.Contains(s.Broken, name) {
			all = append(all, name+" for anonymous callers")
		}
	}
	return all
}

// expiry returns a line if the certificate has expired or expires soon; otherwise nothing.
func (s *readyz) expiry() string {
	ends := s.Certificate.Ends.Format(time.RFC3339)
	switch s.Certificate.Age {
	case settings.CertificateOver.String():
		return "\nthe certificate expired at " + ends + ": clients reject it"
	case settings.CertificateOld.String():
		return "\nthe certificate expires at " + ends
	}
	return ""
}

func (c nodeReport) printStatus(is nodedir.Run, got adminResponse) error {
	var s readyz
	if err := json.Unmarshal(got.body, &s); err != nil || s.Phase == "" {
		return got.problem()
	}
	text := s.Phase
	for _, more := range [...]struct {
		word  string
		names []string
	}{{"waiting for", s.WaitingFor}, {"degraded by", s.DegradedBy}} {
		if len(more.names) > 0 {
			text += ", " + more.word + " " + s.withDetails(more.names)
		}
	}
	does := map[bool]string{true: "yes", false: "no"}
	return c.printLine("%s: reads %s, writes %s, durable to %d of %d\nprocess %d, %s, http %s, admin %s%s", text, does[s.Reads], does[s.Writes],
		s.Durable, s.LSN, is.PID, is.Version, is.Listen.HTTP, is.Listen.Admin, s.expiry())
}

func (c nodeReport) printStatusJSON(is nodedir.Run, got adminResponse) error {
	body := jsontext.Value(got.body)
	if !body.IsValid() {
		quoted, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(string(got.body), "?"))
		if err != nil {
			return fmt.Errorf("print: %w", err)
		}
		body = quoted
	}
	return c.printJSON(struct {
		Ready   bool           `json:"ready"`
		PID     int            `json:"pid"`
		Version string         `json:"version"`
		Listen  nodedir.Listen `json:"listen"`
		Readyz  jsontext.Value `json:"readyz"`
	}{got.ok(), is.PID, is.Version, is.Listen, body})
}

// Run drains the node and waits until its process has ended.
func (v *drainCmd) Run(c *Console) error {
	dir, is, err := c.node().findNode()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	path := "/drain"
	if v.Abort {
		path += "?abort"
	}
	began, attempt := c.now(), attemptTimeout
	if v.Timeout > 0 {
		attempt = min(attempt, v.Timeout)
	}
	got, err := c.node().callAdmin(ctx, is, http.MethodPost, path, attempt)
	if err == nil && !got.ok() {
		err = got.problem()
	}
	if err != nil {
		return err
	}
	timeout := v.Timeout
	if timeout == 0 {
		timeout = drainTimeout(got.body)
	}
	for until := began.Add(timeout); c.now().Before(until); {
		switch gone, err := hasEnded(dir, is); {
		case err != nil:
			return err
		case gone && c.tree.JSON:
			return c.printJSON(struct {
				Drained bool `json:"drained"`
			}{true})
		case gone:
			return c.printLine("the node has ended")
		}
		if err := c.sleep(ctx, drainPollInterval); err != nil {
			return fmt.Errorf("the node continues to shut down: %w", err)
		}
	}
	return fmt.Errorf("the node has not ended after %v; --abort aborts the remaining requests", timeout)
}

// drainTimeout returns how long to wait after a response to a drain.
func drainTimeout(answer []byte) time.Duration {
	var body struct {
		Longest int64 `json:"longest_ms"`
	}
	_ = json.Unmarshal(answer, &body) // a response without the member uses the minimum
	return max(30*time.Second, time.Duration(body.Longest)*time.Millisecond+10*time.Second)
}

// hasEnded reports whether the node has left its directory cleanly and its process has ended, so that the
// directory is free.
func hasEnded(dir string, was nodedir.Run) (gone bool, err error) {
	is, err := nodedir.Read(dir)
	switch {
	case errors.Is(err, nodedir.ErrNotRunning) || err == nil && is.Token != was.Token:
		return !nodedir.Alive(was.PID), nil
	case errors.Is(err, nodedir.ErrStale):
		return false, fmt.Errorf("the node (process %d) has ended without cleaning up: see its log", was.PID)
	}
	return false, err
}
