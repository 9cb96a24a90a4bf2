package ledger_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"macronode/ci/story"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/ledger"
	"macronode/core/record"
	"macronode/core/words"
)

func TestMoney(t *testing.T)    { play(t, "testdata/money") }
func TestCeilings(t *testing.T) { play(t, "testdata/ceilings") }
func TestRooms(t *testing.T)    { play(t, "testdata/rooms") }
func TestTenants(t *testing.T)  { play(t, "testdata/tenants") }

// teller says a story's lines to a ledger:
//
//	ledger accounts=2 day=100       a new one, with room for 8 of everything else and no ceilings
//	issue ann 10 EUR                by tenant 1; #2 behind it is tenant 2
//	transfer ann bob 4 EUR nonce 1
//	burn bob 4 EUR nonce 1
//	balance ann EUR · supply EUR
//	at 1970-01-02T00:00             of a day of January
type teller struct {
	t      *testing.T
	ledger ledger.Ledger
	at     words.Time
}

func play(t *testing.T, path string) {
	s := teller{t: t}
	s.open(nil)
	story.Play(t, path, s.say)
}

func (s *teller) open(limits []string) {
	l := ledger.Limits{Accounts: 8, Holdings: 8, Assets: 8, Tenants: 8, TenantAccounts: 8, TenantHoldings: 8, TenantAssets: 8,
		Amount: most(), Day: most(), IssueDay: most()}
	rooms := map[string]*int{"accounts": &l.Accounts, "holdings": &l.Holdings, "assets": &l.Assets, "tenants": &l.Tenants,
		"tenant_accounts": &l.TenantAccounts, "tenant_holdings": &l.TenantHoldings, "tenant_assets": &l.TenantAssets}
	ceilings := map[string]*words.Amount{"amount": &l.Amount, "day": &l.Day, "issue_day": &l.IssueDay}
	for _, limit := range limits {
		name, value, _ := strings.Cut(limit, "=")
		switch {
		case rooms[name] != nil:
			*rooms[name] = s.number(value)
		case ceilings[name] != nil:
			*ceilings[name] = s.amount(value)
		default:
			s.t.Fatalf("no limit is called %s", name)
		}
	}
	s.ledger, s.at = ledger.New(l, 1), 0
}

func (s *teller) say(line []string) string {
	tenant := words.Tenant(1)
	if last := line[len(line)-1]; last[0] == '#' {
		tenant, line = words.Tenant(s.number(last[1:])), line[:len(line)-1]
	}
	switch line[0] {
	case "ledger":
		s.open(line[1:])
		return ""
	case "at":
		return s.clock(line[1])
	case "balance":
		has, next := s.ledger.Balance(tenant, name(line[1]).ID, name(line[2]).ID)
		return fmt.Sprintf("%s has %v %s, nonce %d is next", line[1], has, line[2], next)
	case "supply":
		issued, burned := s.ledger.Supply(tenant, name(line[1]).ID)
		return fmt.Sprintf("%v %s were issued, %v burned", issued, line[1], burned)
	}
	return s.move(tenant, line)
}

func (s *teller) clock(at string) string {
	var d, h, m int
	if _, err := fmt.Sscanf(at, "1970-01-%dT%d:%d", &d, &h, &m); err != nil {
		s.t.Fatalf("%s: %v", at, err)
	}
	s.at = words.Time(((d-1)*24+h)*60+m) * 60_000
	return ""
}

// move decides, holds that a refusal has changed nothing, and applies.
func (s *teller) move(tenant words.Tenant, line []string) string {
	r := &record.Record{Kind: record.Moved, Tenant: tenant}
	switch op, w := line[0], line[1:]; op {
	case "issue":
		r.Op, r.To, r.Amount, r.Asset = event.Issue, name(w[0]), s.amount(w[1]), name(w[2])
	case "transfer":
		r.Op, r.From, r.To, r.Amount, r.Asset = event.Transfer, name(w[0]), name(w[1]), s.amount(w[2]), name(w[3])
		r.Nonce = words.Nonce(s.number(w[5]))
	case "burn":
		r.Op, r.From, r.Amount, r.Asset = event.Burn, name(w[0]), s.amount(w[1]), name(w[2])
		r.Nonce = words.Nonce(s.number(w[4]))
	default:
		s.t.Fatalf("nobody knows how to %s", op)
	}
	was := s.ledger.Hash()
	why := s.ledger.Decide(s.at, r)
	if s.ledger.Hash() != was {
		s.t.Fatalf("%v: deciding changed the ledger", line)
	}
	if why != event.None {
		return refused(why, r)
	}
	s.ledger.Apply(s.at, r)
	if err := s.ledger.Check(); err != nil {
		s.t.Fatalf("%v: %v", line, err)
	}
	switch r.Op {
	case event.Issue:
		return fmt.Sprintf("seq %d: %s has %v, %v issued, %v today", r.Seq, r.To.Text, r.ToNow, r.FromNow, r.Spent)
	case event.Burn:
		return fmt.Sprintf("seq %d: %s has %v, sent %v today, %v burned", r.Seq, r.From.Text, r.FromNow, r.Spent, r.ToNow)
	default:
		return fmt.Sprintf("seq %d: %s has %v, sent %v today, %s has %v", r.Seq, r.From.Text, r.FromNow, r.Spent, r.To.Text, r.ToNow)
	}
}

func refused(why event.Problem, r *record.Record) string {
	said := why.Code() + ": " + why.Detail()
	if r.Op != event.Issue {
		said += fmt.Sprintf(" Nonce %d is next.", r.Nonce)
	}
	if why.Stored() {
		said += " For ever."
	}
	return said
}

func (s *teller) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *teller) amount(text string) words.Amount {
	a, err := words.ParseAmount(text)
	if err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	return a
}

func name(s string) words.Name { return words.Name{ID: digest.Name([]byte(s)), Text: []byte(s)} }
