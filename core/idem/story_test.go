package idem_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"macronode/ci/story"
	"macronode/core/digest"
	"macronode/core/idem"
	"macronode/core/words"
)

func TestWindow(t *testing.T) { play(t, "testdata/window") }
func TestShares(t *testing.T) { play(t, "testdata/shares") }

// teller says a story's lines to a window:
//
//	window keys=4 ttl=24h      a new one; 8 keys, a share of 8 and 8 tenants unless it says otherwise
//	ask order-1 pay 5          under a key, by tenant 1; #2 behind it is tenant 2. A new key is held in a frame of its own
//	at 00:10                   hours and minutes since the start
//	sweep 2                    looks at so many of the oldest, and forgets what has had its time
//	forget @2
type teller struct {
	t      *testing.T
	window idem.Window
	at     words.Time
	last   words.LSN
}

func play(t *testing.T, path string) {
	s := &teller{t: t}
	s.open(nil)
	story.Play(t, path, func(line []string) string {
		answer := s.say(line)
		if err := s.window.Check(); err != nil {
			t.Fatalf("%v: %v", line, err)
		}
		return answer
	})
}

func (s *teller) open(limits []string) {
	l := idem.Limits{Keys: 8, Share: 8, Tenants: 8, TTL: 24 * time.Hour}
	for _, limit := range limits {
		switch name, value, _ := strings.Cut(limit, "="); name {
		case "keys":
			l.Keys = s.number(value)
		case "share":
			l.Share = s.number(value)
		case "tenants":
			l.Tenants = s.number(value)
		default:
			s.t.Fatalf("no limit is called %s", name)
		}
	}
	s.window, s.at, s.last = idem.New(l, 1), 0, 0
}

func (s *teller) say(line []string) string {
	switch line[0] {
	case "window":
		s.open(line[1:])
	case "at":
		var h, m int
		if _, err := fmt.Sscanf(line[1], "%d:%d", &h, &m); err != nil {
			s.t.Fatalf("%s: %v", line[1], err)
		}
		s.at = words.Time(h*60+m) * 60_000
	case "ask":
		tenant := words.Tenant(1)
		if last := line[len(line)-1]; last[0] == '#' {
			tenant, line = words.Tenant(s.number(last[1:])), line[:len(line)-1]
		}
		return s.ask(tenant, line[1], strings.Join(line[2:], " "))
	case "sweep":
		upto, any := s.window.Expired(s.at, s.number(line[1]))
		if !any {
			return "nothing has had its time"
		}
		s.window.Forget(upto)
		return fmt.Sprintf("forgot to %v, %d held", upto, s.window.Len())
	case "forget":
		s.window.Forget(words.LSN(s.number(line[1][1:])))
		return fmt.Sprintf("%d held", s.window.Len())
	default:
		s.t.Fatalf("nobody knows how to %s", line[0])
	}
	return ""
}

func (s *teller) ask(tenant words.Tenant, name, question string) string {
	asked := digest.Asked([]byte(question))
	switch p, found, err := s.window.Look(key(tenant, name), asked); {
	case errors.Is(err, idem.ErrConflict):
		return fmt.Sprintf("%v, %v keeps its outcome", err, p)
	case found:
		return fmt.Sprintf("the outcome is %v", p)
	}
	if err := s.window.Admit(tenant); err != nil {
		return err.Error()
	}
	s.last++
	s.window.Remember(key(tenant, name), idem.Seen{Asked: asked, Place: words.Place{LSN: s.last}, At: s.at})
	return fmt.Sprintf("new, its outcome is @%d", s.last)
}

func (s *teller) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}
