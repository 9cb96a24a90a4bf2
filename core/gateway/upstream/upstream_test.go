package upstream_test

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"testing"
	"time"

	"macronode/ci/transcript"
	"macronode/core/event"
	"macronode/core/gateway/upstream"
	"macronode/core/types"
)

// A scene is an upstream with endpoints a, b, c …, and requests by name.
type scene struct {
	t       *testing.T
	m       upstream.Upstreams
	now     types.Instant
	rules   upstream.Rules
	tickets map[string]types.Ticket
	by      event.Callers  // of the requests from here on
	caller  event.CallerID // the same
}

func TestTranscripts(t *testing.T) {
	for _, name := range []string{"balance", "retries", "ejection", "breaker", "callers", "one_caller", "health"} {
		t.Run(name, func(t *testing.T) {
			s := scene{t: t}
			transcript.Play(t, "testdata/"+name, s.run)
		})
	}
}

func (s *scene) run(w []string) string {
	answer := s.do(w)
	if err := s.m.Check(); err != nil {
		s.t.Fatal(err)
	}
	return answer
}

func (s *scene) do(w []string) string {
	switch w[0] {
	case "new": // rows endpoints, then rules and their numbers
		s.rules = upstream.Default(uint8(s.number(w[2])))
		for _, r := range w[3:] {
			name, n, _ := strings.Cut(r, "=")
			*map[string]*uint32{"eject": &s.rules.EjectAfter, "least": &s.rules.BreakerMinAttempts, "floor": &s.rules.HalfOpenInFlight,
				"trials": &s.rules.HalfOpenSuccesses, "share": &s.rules.RetryPercent, "spare": &s.rules.RetryPerSecond}[name] = uint32(s.number(n))
		}
		s.now, s.tickets, s.by = types.Instant(time.Hour), map[string]types.Ticket{}, event.Authenticated
		s.caller = 0
		s.m = upstream.New(s.number(w[1]), types.NewRand(4), s.rules)
		return ""
	case "by": // group of callers
		s.by = map[string]event.Callers{"authenticated": event.Authenticated, "anonymous": event.Anonymous}[w[1]]
	case "caller": // number
		s.caller = event.CallerID(s.number(w[1]))
		return ""
	case "pick", "post": // names
		var parts []string
		for _, name := range w[1:] {
			got := s.m.Pick(s.now, event.Pick{Idempotent: w[0] == "pick", Callers: s.by, Caller: s.caller})
			s.tickets[name] = got.Ticket
			parts = append(parts, s.where(got))
		}
		return strings.Join(parts, ", ")
	case "retry":
		return s.where(s.m.Retry(s.now, event.Retry{Ticket: s.tickets[w[1]]}))
	case "answered", "answered_5xx", "unsent", "failed", "timed_out", "abandoned", "completed", "truncated": // names, or spent and a name
		return s.report(w[0], w[1:])
	case "serve": // a number of requests, one after the other
		for range s.number(w[1]) {
			s.tickets["x"] = s.m.Pick(s.now, event.Pick{Callers: s.by, Caller: s.caller}).Ticket
			s.report("answered", []string{"x"})
			s.report("completed", []string{"x"})
		}
		return ""
	case "fail": // a number of requests, one after the other
		for range s.number(w[1]) {
			s.tickets["x"] = s.m.Pick(s.now, event.Pick{Callers: s.by, Caller: s.caller}).Ticket
			s.report("failed", []string{"x"})
		}
	case "well", "ill": // endpoint
		s.m.HealthChecked(s.now, event.HealthChecked{Endpoint: w[1][0] - 'a', Healthy: w[0] == "well"})
	case "after":
		d, err := time.ParseDuration(w[1])
		if err != nil {
			s.t.Fatal(err)
		}
		s.now = s.now.Add(d)
		s.m.Tick(s.now)
	case "due":
		due, any := s.m.Due()
		if !any {
			return "never"
		}
		was := s.now
		s.now = due
		s.m.Tick(s.now)
		return fmt.Sprintf("%v later, %s", time.Duration(due-was), s.look())
	}
	return s.look()
}

func (s *scene) report(ending string, names []string) string {
	in := event.AttemptResult{TimeLeft: time.Second}
	for e := range event.NumAttemptOutcomes {
		if e.String() == ending {
			in.Outcome = e
		}
	}
	var parts []string
	for _, name := range names {
		switch name {
		case "spent":
			in.BodyConsumed = true
			continue
		case "said":
			in.ResponseStarted = true
			continue
		case "hurried":
			in.TimeLeft = 100 * time.Millisecond
			continue
		}
		in.Ticket = s.tickets[name]
		if on := s.m.Report(s.now, in); on.Retry {
			parts = append(parts, fmt.Sprintf("again in %v", on.Wait))
		} else if on.NoRetry != event.RetryAllowed {
			parts = append(parts, "no more for "+on.NoRetry.String())
		}
	}
	return strings.Join(append(parts, s.look()), ", ")
}

func (s *scene) where(p event.Picked) string {
	switch {
	case p.NoEndpoint == event.EndpointPicked && p.Ejected:
		return string('a'+rune(p.Endpoint)) + ", though out"
	case p.NoEndpoint == event.EndpointPicked:
		return string('a' + rune(p.Endpoint))
	case p.RetryAfter > 0:
		return fmt.Sprintf("%v %v for %v", p.NoEndpoint, p.NoEndpoint.Problem(), p.RetryAfter)
	}
	return fmt.Sprintf("%v %v", p.NoEndpoint, p.NoEndpoint.Problem())
}

func (s *scene) look() string {
	v := s.m.Stats(0)
	var parts []string
	for i := range uint8(bits.Len16(s.rules.Endpoints)) {
		calls, out, sick := s.m.Endpoint(0, i, s.by)
		one := fmt.Sprintf("%c %d", 'a'+rune(i), calls)
		if out {
			one += " out"
		}
		if sick {
			one += " sick"
		}
		parts = append(parts, one)
	}
	if c := v.Circuits[s.by].State; c != event.CircuitClosed {
		parts = append(parts, c.String())
	}
	if v.RetriesDenied > 0 {
		parts = append(parts, fmt.Sprintf("%d dry", v.RetriesDenied))
	}
	if v.SeenHealthy {
		parts = append(parts, "proven")
	}
	return strings.Join(parts, ", ")
}

func (s *scene) number(w string) int {
	n, err := strconv.Atoi(w)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}
