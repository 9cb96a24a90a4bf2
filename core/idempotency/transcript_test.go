package idempotency_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"macronode/ci/transcript"
	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/idempotency"
	"macronode/core/types"
	model "macronode/models/idempotency"
)

func TestWindowTranscript(t *testing.T) { play(t, "testdata/window") }
func TestTenantLimits(t *testing.T)     { play(t, "testdata/shares") }
func TestLowPriority(t *testing.T)      { play(t, "testdata/low_priority") }
func TestIndexTranscript(t *testing.T)  { play(t, "testdata/index") }

// player runs the lines of a transcript:
//
//	window keys=4 share=2      a new window; by default 8 keys, 8 per tenant, 8 tenants; the TTL is 24 hours
//	ask order-1 pay 5          look up a key of tenant 1; #2 at the end is tenant 2. A new key is stored in its own frame
//	                           *ref at the end uses a ref as well; <@3 uses an index read at frame 3
//	events 3                   store 3 refs of low priority in a frame; #2 at the end is tenant 2
//	at 00:10                   hours and minutes since the start
//	index @5                   the index has all frames up to 5; it starts with none
//	sweep 2                    visit the 2 oldest keys, and evict what is evictable
//	evict @2
//	undo pay x                 store a key and undo that
type player struct {
	t      *testing.T
	window idempotency.Window
	at     types.Time
	last   types.LSN
	mark   types.LSN // of the index
	all    []model.Seen
}

func play(t *testing.T, path string) {
	s := &player{t: t}
	s.open(nil)
	transcript.Play(t, path, func(line []string) string {
		answer := s.run(line)
		if err := s.window.Check(); err != nil {
			t.Fatalf("%v: %v", line, err)
		}
		return answer
	})
}

func (s *player) open(limits []string) {
	l := idempotency.Limits{Keys: 8, PerTenant: 8, Tenants: 8, TTL: 24 * time.Hour, MinRetention: time.Minute}
	for _, limit := range limits {
		switch name, value, _ := strings.Cut(limit, "="); name {
		case "keys":
			l.Keys = s.number(value)
		case "share":
			l.PerTenant = s.number(value)
		case "tenants":
			l.Tenants = s.number(value)
		default:
			s.t.Fatalf("no limit is called %s", name)
		}
	}
	s.window, s.at, s.last, s.mark, s.all = idempotency.New(l, 1), 0, 0, 0, nil
}

func (s *player) run(line []string) string {
	switch line[0] {
	case "window":
		s.open(line[1:])
	case "at":
		var h, m int
		if _, err := fmt.Sscanf(line[1], "%d:%d", &h, &m); err != nil {
			s.t.Fatalf("%s: %v", line[1], err)
		}
		s.at = types.Time(h*60+m) * 60_000
	case "ask":
		return s.ask(line[1], line[2:])
	case "events":
		return s.events(line[1:])
	case "index":
		s.mark = types.LSN(s.number(line[1][1:]))
	case "undo":
		was, m := s.window.Hash(), s.window.Savepoint()
		s.window.Remember(key(9, line[1]), command.PriorOutcome{ID: types.NewTxID(1, types.Position{LSN: s.last + 1}), At: s.at})
		if s.window.Undo(m); s.window.Hash() != was {
			s.t.Fatal("it is not taken back")
		}
		return fmt.Sprintf("%d in the window", s.window.Len())
	case "sweep":
		upto, any := s.window.Evictable(s.at, s.mark, s.number(line[1]))
		if !any {
			return "nothing is evicted"
		}
		s.window.Forget(upto)
		return fmt.Sprintf("evicted to %v, %d left", upto, s.window.Len())
	case "evict":
		s.window.Forget(types.LSN(s.number(line[1][1:])))
		return fmt.Sprintf("%d in the window", s.window.Len())
	default:
		s.t.Fatalf("unknown command %s", line[0])
	}
	return ""
}

func (s *player) ask(name string, line []string) string {
	tenant, ref, mark := types.Tenant(1), "", s.mark
	for len(line) > 0 {
		last := line[len(line)-1]
		switch last[0] {
		case '#':
			tenant = types.Tenant(s.number(last[1:]))
		case '*':
			ref = last[1:]
		case '<':
			mark = types.LSN(s.number(last[2:]))
		default:
			return s.look(tenant, name, strings.Join(line, " "), ref, mark)
		}
		line = line[:len(line)-1]
	}
	s.t.Fatalf("%s has no request", name)
	return ""
}

func (s *player) events(line []string) string {
	tenant, rows := types.Tenant(1), s.number(line[0])
	if len(line) > 1 {
		tenant = types.Tenant(s.number(line[1][1:]))
	}
	if err := s.window.AdmitLowPriority(tenant, rows); err != nil {
		return err.Error()
	}
	s.last++
	for n := range rows {
		ref := key(tenant, fmt.Sprintf("event %d of %v", n, s.last))
		ref.Ref = true
		s.window.Remember(ref, command.PriorOutcome{ID: types.NewTxID(1, types.Position{LSN: s.last}), At: s.at})
	}
	return fmt.Sprintf("new, its outcome is %v, %d held", s.last, s.window.Len())
}

// known returns what the index had for a name at frame mark.
func (s *player) known(t types.Tenant, name string, ref bool, mark types.LSN) (was command.PriorOutcome) {
	for _, k := range s.all {
		if k.Tenant == t && k.Name == name && k.Ref == ref && k.Place.LSN <= mark {
			was = command.PriorOutcome{Hash: k.Asked, ID: types.NewTxID(1, k.Place), At: k.At}
		}
	}
	return was
}

func (s *player) look(tenant types.Tenant, name, question, ref string, mark types.LSN) string {
	asked := digest.RequestHash([]byte(question))
	switch id, found, err := s.window.Resolve(key(tenant, name), asked, s.known(tenant, name, false, mark), s.at); {
	case errors.Is(err, idempotency.ErrConflict):
		return fmt.Sprintf("%v, the outcome is %v", err, id.Position())
	case found:
		return fmt.Sprintf("the outcome is %v", id.Position())
	case !s.window.IndexReadIsFresh(mark, s.at, ref != ""):
		return "look again"
	}
	rows, r := 1, key(tenant, ref)
	if r.Ref = true; ref != "" {
		rows++
		if id, used := s.window.FindRef(r, s.known(tenant, ref, true, mark)); used {
			return fmt.Sprintf("the ref is that of %v", id.ID.Position())
		}
	}
	if err := s.window.Admit(tenant, rows); err != nil {
		return err.Error()
	}
	s.last++
	place := types.Position{LSN: s.last}
	seen := command.PriorOutcome{Hash: asked, ID: types.NewTxID(1, place), At: s.at}
	s.window.Remember(key(tenant, name), seen)
	s.all = append(s.all, model.Seen{Tenant: tenant, Name: name, Asked: asked, Place: place, At: s.at})
	if ref != "" {
		s.window.Remember(r, seen)
		s.all = append(s.all, model.Seen{Tenant: tenant, Name: ref, Ref: true, Place: place, At: s.at})
	}
	return fmt.Sprintf("new, its outcome is %v", s.last)
}

func (s *player) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}
