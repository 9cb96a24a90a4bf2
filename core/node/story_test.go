package node_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"macronode/ci/story"
	"macronode/core/event"
	"macronode/core/node"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/words"
)

// stage is a node that a story speaks to.
type stage struct {
	t      *testing.T
	node   *node.Node
	config node.Config
	now    words.Now
	ticket words.Ticket
	out    event.Effects
	said   strings.Builder
	sizes  []event.Frame // emitted, not durable
}

func newStage(t *testing.T) *stage {
	l := limits(8, 4)
	c := config(l)
	c.Held, c.Waiters = 3, 1
	return &stage{t: t, config: c, node: node.New(c, state.New(l, 1), 0, words.NewDice(1)), now: words.Now{Wall: 1_700_000_000_000, Synced: true}}
}

// with is another node on the same stage, of a configuration with one value changed.
func (s *stage) with(key, value string) {
	c := s.config
	d, err := time.ParseDuration(value)
	switch key {
	case "abort":
		c.Drain.Abort = d
	case "backlog":
		c.Backlog, err = strconv.ParseUint(value, 10, 64)
	default:
		s.t.Fatalf("no such key: %s", key)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.node = node.New(c, state.New(c.State, 1), 0, words.NewDice(1))
}

// step says what the node does about an event.
func (s *stage) step(e event.Event) string {
	s.said.Reset()
	s.out.Reset()
	s.node.Step(s.now, e, &s.out)
	if err := s.node.Check(); err != nil {
		s.t.Fatal(err)
	}
	for _, f := range s.out.Frames {
		s.sizes = append(s.sizes, f)
		h, rest, err := record.Open(s.out.Body(f))
		if err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintf(&s.said, "frame %v:", h.LSN)
		for range h.Count {
			var r record.Record
			if rest, err = record.Next(rest, &r); err != nil {
				s.t.Fatal(err)
			}
			fmt.Fprintf(&s.said, " %v", r.Kind)
		}
		s.said.WriteString("\n")
	}
	for _, r := range s.out.Replies {
		what := r.Problem.Code()
		if r.Problem == event.None {
			what = "see " + r.Place.String()
		}
		if r.Replayed {
			what += ", replayed"
		}
		if r.Nonce > 0 {
			what += fmt.Sprintf(", expected nonce %d", r.Nonce)
		}
		fmt.Fprintf(&s.said, "reply %d after %v: %s\n", r.Ticket, r.After, what)
	}
	for _, op := range s.out.Childs {
		fmt.Fprintf(&s.said, "%v %v\n", op.What, op.Child)
	}
	return s.said.String()
}

func (s *stage) say(w []string) string {
	number := func(i int) uint64 {
		n, err := strconv.ParseUint(w[i], 10, 64)
		if err != nil {
			s.t.Fatalf("%q: %v", w, err)
		}
		return n
	}
	switch w[0] {
	case "with":
		s.with(w[1], w[2])
		return ""
	case "wall":
		off, err := time.ParseDuration(w[1])
		if err != nil {
			s.t.Fatal(err)
		}
		s.now.Wall, s.now.Synced = s.now.Wall.Plus(off), len(w) < 3
		return ""
	case "ready":
		for _, line := range []string{"boot 0", "enrol 7", "up http", "up admin", "up sampler", "durable 2", "folded 2"} {
			s.say(strings.Fields(line))
		}
		return ""
	case "boot":
		return s.step(event.Boot{Found: event.Recovery{Journal: 9, Cut: number(1)}})
	case "damaged":
		st := state.New(limits(8, 4), 1)
		st.Keys.Add(event.Key{ID: boss, Tenant: 1, Scopes: event.AllScopes, Boot: true})
		s.node = node.New(config(limits(8, 4)), st, 0, words.NewDice(1))
		return s.step(event.Boot{Found: event.Recovery{Journal: 9, Damaged: true}})
	case "enrol":
		s.ticket++
		return s.step(&event.Enrol{Ticket: s.ticket, Key: event.Key{ID: words.KeyID(number(1)), Tenant: 1, Scopes: event.AllScopes, Boot: true}})
	case "issue", "transfer", "burn":
		return s.step(s.request(w, number))
	case "cancel":
		return s.step(event.Cancel{Ticket: words.Ticket(number(1))})
	case "durable":
		return s.step(s.durable(words.LSN(number(1))))
	case "folded":
		return s.step(event.Folded{Upto: words.LSN(number(1))})
	case "refused":
		return s.step(event.Refused{From: words.LSN(number(1)), Why: event.SyncFailed})
	case "up", "down":
		for c := range words.Children {
			if c.String() == w[1] && w[0] == "up" {
				return s.step(event.ChildUp{Child: c})
			} else if c.String() == w[1] {
				return s.step(event.ChildDown{Child: c})
			}
		}
	case "room":
		return s.step(event.Room{Free: number(1)})
	case "drain":
		return s.step(event.Signal{What: event.Drain})
	case "after":
		gone, err := time.ParseDuration(w[1])
		if err != nil {
			s.t.Fatal(err)
		}
		s.now.Mono, s.now.Wall = s.now.Mono.Plus(gone), s.now.Wall.Plus(gone)
		return s.step(event.Tick{})
	case "due":
		due, any := s.node.Due()
		return fmt.Sprintf("in %v: %v", time.Duration(due-s.now.Mono), any)
	case "status":
		return s.status()
	}
	s.t.Fatalf("no such line: %q", w)
	return ""
}

func (s *stage) request(w []string, number func(int) uint64) *event.Request {
	s.ticket++
	r := &event.Request{Ticket: s.ticket, Caller: boss, Tenant: 1, Key: words.Name{Text: []byte(w[1])}, Asset: words.Name{Text: []byte("EUR/2")}}
	switch w[0] {
	case "issue":
		r.Op, r.To.Text, r.Amount = event.Issue, []byte(w[2]), words.Units(number(3))
	case "transfer":
		r.Op, r.From.Text, r.To.Text, r.Amount, r.Nonce = event.Transfer, []byte(w[2]), []byte(w[3]), words.Units(number(4)), words.Nonce(number(5))
	case "burn":
		r.Op, r.From.Text, r.Amount, r.Nonce = event.Burn, []byte(w[2]), words.Units(number(3)), words.Nonce(number(4))
	}
	r.Seal(nil)
	return r
}

func (s *stage) durable(upto words.LSN) event.Durable {
	d := event.Durable{Upto: upto}
	for len(s.sizes) > 0 && s.sizes[0].LSN <= upto {
		d.Bytes += uint64(s.sizes[0].Len)
		s.sizes = s.sizes[1:]
	}
	return d
}

func (s *stage) status() string {
	var st event.Status
	s.node.Status(&st)
	var why []string
	for c := range st.Unmet.Each {
		why = append(why, "needs "+c.String())
	}
	for c := range st.Ailing.Each {
		why = append(why, "has "+c.String())
	}
	yes := map[bool]string{true: "yes", false: "no"}
	return fmt.Sprintf("%v: ready %s, for read %s, reads %s, writes %s %v\nfinished %d, refused %d, aborted %d", st.Phase, yes[st.Ready], yes[st.ForRead],
		yes[st.Reads], yes[st.Writes], why, st.Report.Finished, st.Report.Refused, st.Report.Aborted)
}

// TestStories plays every scene on a stage of its own.
func TestStories(t *testing.T) {
	scenes, err := filepath.Glob("testdata/*.story")
	if err != nil || len(scenes) == 0 {
		t.Fatal("no story", err)
	}
	for _, scene := range scenes {
		t.Run(strings.TrimSuffix(filepath.Base(scene), ".story"), func(t *testing.T) {
			story.Play(t, scene, newStage(t).say)
		})
	}
}
