package quota_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"macronode/ci/transcript"
	"macronode/core/gateway/quota"
	"macronode/core/types"
)

func TestRuleTranscript(t *testing.T)          { play(t, "testdata/rules") }
func TestDebtIsPaidBack(t *testing.T)          { play(t, "testdata/debt") }
func TestInstancePacesTheQueue(t *testing.T)   { play(t, "testdata/pace") }
func TestKong12003(t *testing.T)               { play(t, "testdata/kong-12003") }
func TestChangeTranscript(t *testing.T)        { play(t, "testdata/change") }
func TestRouteTranscript(t *testing.T)         { play(t, "testdata/routes") }
func TestK8s134196(t *testing.T)               { play(t, "testdata/k8s-134196") }
func TestRonGateForgedPeer(t *testing.T)       { play(t, "testdata/ron-gate-forged-peer") }
func TestInvalidRulesAreRejected(t *testing.T) { play(t, "testdata/sense") }

// player runs the lines of a transcript:
//
//	new rows=2 RULE | RULE      a quota with a number of rows of each scope, by default 8. A rule:
//	                            scope, rate/every+burst (B after the rate: of bytes), classes, perhaps shadow
//	at 1.5s                     set the time since the start
//	anon p1                     a request of a peer without a key
//	authed p1 k3 t2 100B        a request with key 3, of tenant 2, that declares 100 bytes; 5x repeats it
//	charge authed p1 k3 t2 9B   charge 9 more bytes
//	flood anon 1000             1000 requests, each of another peer
//	shared 1, rows              print how often the shared counter of a rule was used; the number of rows
//	next, next 10B              print when the instance admits a request; spend charges it
//	                            r2 after the caller, and at the end of a rule of a route: route 2
//	sense RULE                  check a rule
//	change RULE | RULE          apply other rules; none: an empty place, fresh: the previous rule is a different one
type player struct {
	t          *testing.T
	quota      quota.Quota
	now        types.Instant
	floodPeers int // number of flooding peers
}

func play(t *testing.T, path string) {
	s := &player{t: t}
	transcript.Play(t, path, func(line []string) string {
		answer := s.run(line)
		if err := s.quota.Check(); err != nil {
			t.Fatalf("%v: %v", line, err)
		}
		return answer
	})
}

func (s *player) run(line []string) string {
	switch line[0] {
	case "new":
		s.open(line[1:])
	case "at":
		s.now = types.Instant(s.span(line[1]))
	case "charge":
		caller, bytes, _ := s.subject(line[1:])
		s.quota.Charge(s.now, caller, bytes)
	case "flood":
		return s.flood(s.class(line[1]), s.number(line[2]))
	case "shared":
		return fmt.Sprintf("%d times", s.quota.Shared(s.number(line[1])))
	case "rows":
		return fmt.Sprintf("%d peers, %d keys, %d tenants", s.quota.Subjects(types.ScopePeer), s.quota.Subjects(types.ScopeKey), s.quota.Subjects(types.ScopeTenant))
	case "next":
		_, bytes, _ := s.subject(append([]string{"internal"}, line[1:]...))
		at, rule := s.quota.NextAdmit(s.now, bytes)
		switch {
		case at == quota.Never:
			return fmt.Sprintf("never, by rule %d", rule)
		case rule > 0:
			return fmt.Sprintf("in %v, by rule %d", time.Duration(at-s.now), rule)
		}
		return "now"
	case "spend":
		_, bytes, times := s.subject(append([]string{"internal"}, line[1:]...))
		shadow := uint16(0)
		for range times {
			shadow |= s.quota.Spend(s.now, bytes)
		}
		return shadowed("", shadow)
	case "change":
		line, fresh := line[1:], uint16(0)
		if last := len(line) - 1; line[last] == "fresh" {
			line, fresh = line[:last], 1<<strings.Count(strings.Join(line, ""), "|")
		}
		s.quota.ApplyPolicy(s.now, s.rules(line), fresh)
	case "sense":
		if err := s.rule(line[1:]).Check(); err != nil {
			return err.Error()
		}
		return "makes sense"
	default:
		caller, bytes, times := s.subject(line)
		answer := ""
		for range times {
			answer += s.describe(s.quota.Take(s.now, caller, bytes)) + "\n"
		}
		return answer
	}
	return ""
}

func shadowed(line string, shadow uint16) string {
	for i := range quota.MaxRules {
		if shadow>>i&1 == 1 {
			line += fmt.Sprintf("; rule %d, a shadow, would not", i+1)
		}
	}
	return strings.TrimPrefix(line, "; ")
}

func (s *player) describe(v quota.Result) string {
	line := "go"
	if v.Refused {
		line = fmt.Sprintf("refused by rule %d, come in %v", v.Rule, v.RetryAfter)
		if v.RetryAfter == 0 {
			line = fmt.Sprintf("refused by rule %d, for ever", v.Rule)
		}
	}
	if v.Rule > 0 {
		line += fmt.Sprintf("; rule %d has %d left, all in %v", v.Rule, v.Left, v.Reset)
	}
	return shadowed(line, v.Shadow)
}

func (s *player) flood(c types.Class, many int) string {
	admitted := 0
	for range many {
		s.floodPeers++
		if v := s.quota.Take(s.now, quota.Subject{Class: c, Peer: peer(1_000_000 + s.floodPeers)}, 0); !v.Refused {
			admitted++
		}
	}
	return fmt.Sprintf("%d admitted, %d refused", admitted, many-admitted)
}

func (s *player) open(line []string) {
	rows := 8
	if text, ok := strings.CutPrefix(line[0], "rows="); ok {
		rows, line = s.number(text), line[1:]
	}
	s.quota, s.now, s.floodPeers = quota.New(s.rules(line), quota.Limits{Peers: rows, Keys: rows, Tenants: rows}, 1), 0, 0
}

func (s *player) rules(line []string) (rules []quota.Rule) {
	for rule := range strings.SplitSeq(strings.Join(line, " "), "|") {
		if w := strings.Fields(rule); w[0] == "none" {
			rules = append(rules, quota.Rule{})
		} else {
			rules = append(rules, s.rule(w))
		}
	}
	if err := quota.CheckRules(rules); err != nil {
		s.t.Fatal(err)
	}
	return rules
}

func (s *player) rule(line []string) (r quota.Rule) {
	for r.Scope < types.NumQuotaScopes && r.Scope.String() != line[0] {
		r.Scope++
	}
	rate, rest, _ := strings.Cut(line[1], "/")
	if each, ok := strings.CutSuffix(rate, "B"); ok {
		rate, r.Unit = each, types.UnitBytes
	}
	every, burst, _ := strings.Cut(rest, "+")
	r.Rate, r.Every, r.Burst = uint64(s.number(rate)), s.span(every), uint64(s.number(burst))
	for _, word := range line[2:] {
		switch word {
		case "shadow":
			r.Shadow = true
		case "all":
			r.Classes = quota.AllClasses
		case "r1", "r2":
			r.Route = uint16(s.number(word[1:]))
		default:
			r.Classes |= quota.ClassSetOf(s.class(word))
		}
	}
	return r
}

func (s *player) class(name string) types.Class {
	for c := range types.NumClasses {
		if c.String() == name {
			return c
		}
	}
	s.t.Fatalf("no class is called %s", name)
	return 0
}

func (s *player) subject(line []string) (caller quota.Subject, bytes uint64, times int) {
	caller.Class, times = s.class(line[0]), 1
	for _, word := range line[1:] {
		switch {
		case word[0] == 'p':
			caller.Peer = peer(s.number(word[1:]))
		case word[0] == 'k':
			caller.Key = types.KeyID(s.number(word[1:]))
		case word[0] == 't':
			caller.Tenant = types.Tenant(s.number(word[1:]))
		case word[0] == 'r':
			caller.Route = uint16(s.number(word[1:]))
		case strings.HasSuffix(word, "B"):
			bytes = uint64(s.number(strings.TrimSuffix(word, "B")))
		case strings.HasSuffix(word, "x"):
			times = s.number(strings.TrimSuffix(word, "x"))
		default:
			s.t.Fatalf("unknown word %s", word)
		}
	}
	return caller, bytes, times
}

func peer(n int) types.NameHash {
	return types.NameHash{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24), 15: 9}
}

func (s *player) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *player) span(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}
