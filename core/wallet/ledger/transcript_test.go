package ledger_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"macronode/ci/transcript"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

func TestIssueTransferBurn(t *testing.T)  { play(t, "testdata/money") }
func TestDailyLimits(t *testing.T)        { play(t, "testdata/ceilings") }
func TestRowLimits(t *testing.T)          { play(t, "testdata/rooms") }
func TestTenantsAreSeparate(t *testing.T) { play(t, "testdata/tenants") }
func TestHoldsTranscript(t *testing.T)    { play(t, "testdata/holds") }
func TestHoldsExpire(t *testing.T)        { play(t, "testdata/lapses") }
func TestFrozenAccounts(t *testing.T)     { play(t, "testdata/frozen") }
func TestBatchesTranscript(t *testing.T)  { play(t, "testdata/batches") }

// player runs the lines of a transcript:
//
//	ledger accounts=2 day=100       a new ledger, with 8 rows of everything else and no amount limits
//	issue ann 10 EUR                by tenant 1; #2 at the end is tenant 2
//	transfer ann bob 4 EUR nonce 1
//	burn bob 4 EUR nonce 1
//	hold ann 4 EUR nonce 1 for 1h [to bob]    the first hold is h1, the next h2
//	capture h1 3 to bob [of ann in EUR] · release h1 [of ann in EUR]
//	freeze ann · unfreeze ann
//	lapse ann · overdue             expire one hold of an account, or of any account
//	mark · undo · keep              savepoint, undo, commit
//	balance ann EUR · supply EUR · show h1
//	at 1970-01-02T00:00             on a day of January
//	wait 1ms
type player struct {
	t      *testing.T
	ledger ledger.Ledger
	at     types.Time
	opened []opened
}

// opened is a hold of the transcript: h1 is the first.
type opened struct{ of, asset string }

func play(t *testing.T, path string) {
	s := player{t: t}
	s.open(nil)
	transcript.Play(t, path, s.run)
}

func (s *player) open(limits []string) {
	l := ledger.Limits{Accounts: 8, Holdings: 8, Assets: 8, Tenants: 8, Holds: 8,
		TenantAccounts: 8, TenantHoldings: 8, TenantAssets: 8, TenantHolds: 8, MaxAmount: most(), MaxDailyDebit: most(), MaxDailyIssue: most()}
	rooms := map[string]*int{"accounts": &l.Accounts, "holdings": &l.Holdings, "assets": &l.Assets, "tenants": &l.Tenants,
		"tenant_accounts": &l.TenantAccounts, "tenant_holdings": &l.TenantHoldings, "tenant_assets": &l.TenantAssets, "holds": &l.Holds, "tenant_holds": &l.TenantHolds}
	ceilings := map[string]*types.Amount{"amount": &l.MaxAmount, "day": &l.MaxDailyDebit, "issue_day": &l.MaxDailyIssue}
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
	s.ledger, s.at, s.opened = ledger.New(l, 1), 0, nil
}

func (s *player) run(line []string) string {
	tenant := types.Tenant(1)
	if last := line[len(line)-1]; last[0] == '#' {
		tenant, line = types.Tenant(s.number(last[1:])), line[:len(line)-1]
	}
	switch line[0] {
	case "ledger":
		s.open(line[1:])
		return ""
	case "at":
		return s.clock(line[1])
	case "balance":
		has, held, next := s.ledger.Balance(s.at, tenant, name(line[1]).ID, name(line[2]).ID)
		if !held.IsZero() {
			return fmt.Sprintf("%s has %v %s, %v held, nonce %d is next", line[1], has, line[2], held, next)
		}
		return fmt.Sprintf("%s has %v %s, nonce %d is next", line[1], has, line[2], next)
	case "supply":
		issued, burned := s.ledger.Supply(tenant, name(line[1]).ID)
		if held := s.ledger.Held(tenant, name(line[1]).ID); !held.IsZero() {
			return fmt.Sprintf("%v %s were issued, %v burned, %v are held", issued, line[1], burned, held)
		}
		return fmt.Sprintf("%v %s were issued, %v burned", issued, line[1], burned)
	case "show":
		if h, active := s.ledger.Hold(s.hold(line[1])); active {
			return fmt.Sprintf("%s holds %v until %d", line[1], h.Amount, h.ExpiresAt)
		}
		return line[1] + " is gone"
	case "mark":
		s.ledger.Savepoint()
		return ""
	case "undo":
		s.ledger.Undo()
		return s.checkWhole(line)
	case "keep":
		s.ledger.Commit()
		return s.checkWhole(line)
	case "wait":
		span, err := time.ParseDuration(line[1])
		if err != nil {
			s.t.Fatal(err)
		}
		s.at = s.at.Add(span)
		return ""
	case "lapse", "overdue":
		return s.expire(tenant, line)
	}
	return s.move(tenant, line)
}

func (s *player) clock(at string) string {
	var d, h, m int
	if _, err := fmt.Sscanf(at, "1970-01-%dT%d:%d", &d, &h, &m); err != nil {
		s.t.Fatalf("%s: %v", at, err)
	}
	s.at = types.Time(((d-1)*24+h)*60+m) * 60_000
	return ""
}

// expire expires a hold of an account, or of any account.
func (s *player) expire(tenant types.Tenant, line []string) string {
	var r record.Record
	if line[0] == "overdue" && !s.ledger.ExpireNextHold(s.at, &r) {
		return "no hold is overdue"
	}
	if line[0] == "lapse" {
		if !s.ledger.HasExpiredHold(s.at, tenant, name(line[1]).ID) {
			return line[1] + " has no hold that is due"
		}
		s.ledger.ExpireHoldOf(s.at, tenant, name(line[1]).ID, &r)
	}
	s.ledger.Apply(s.at, types.TxID{}, &r)
	return fmt.Sprintf("seq %d: h%d lapsed, %v still held", r.Seq, r.Hold.Position().LSN, r.HeldBalance) + s.checkWhole(line)
}

// checkWhole runs the line and checks the ledger.
func (s *player) checkWhole(line []string) string {
	if err := s.ledger.Check(); err != nil {
		s.t.Fatalf("%v: %v", line, err)
	}
	return ""
}

// parseOp parses an operation.
func (s *player) parseOp(tenant types.Tenant, line []string) *record.Record {
	r := &record.Record{Tenant: tenant}
	after := func(word string) string { // the word after a keyword
		for i := 1; i < len(line)-1; i++ {
			if line[i] == word {
				return line[i+1]
			}
		}
		return ""
	}
	if nonce := after("nonce"); nonce != "" {
		r.Nonce = types.Nonce(s.number(nonce))
	}
	switch op, w := line[0], line[1:]; op {
	case "issue":
		r.Op, r.To, r.Amount, r.Asset = event.Issue, name(w[0]), s.amount(w[1]), name(w[2])
	case "transfer":
		r.Op, r.From, r.To, r.Amount, r.Asset = event.Transfer, name(w[0]), name(w[1]), s.amount(w[2]), name(w[3])
	case "burn":
		r.Op, r.From, r.Amount, r.Asset = event.Burn, name(w[0]), s.amount(w[1]), name(w[2])
	case "hold":
		span, err := time.ParseDuration(after("for"))
		if err != nil {
			s.t.Fatal(err)
		}
		r.Op, r.From, r.Amount, r.Asset, r.ExpiresAt = event.Hold, name(w[0]), s.amount(w[1]), name(w[2]), s.at.Add(span)
		if to := after("to"); to != "" {
			r.To = name(to)
		}
	case "capture", "release":
		r.Op, r.Hold = event.Release, s.hold(w[0])
		if op == "capture" {
			r.Op, r.Amount, r.To = event.Capture, s.amount(w[1]), name(after("to"))
		}
		of := opened{after("of"), after("in")}
		if n := int(r.Hold.Position().LSN); of.of == "" && n <= len(s.opened) {
			of = s.opened[n-1]
		}
		r.From, r.Asset = name(of.of), name(of.asset)
	case "freeze":
		r.Op, r.From = event.Freeze, name(w[0])
	case "unfreeze":
		r.Op, r.From = event.Unfreeze, name(w[0])
	default:
		s.t.Fatalf("unknown operation %s", op)
	}
	return r
}

// hold returns the ID of h1.
func (s *player) hold(named string) types.TxID {
	return types.NewTxID(1, types.Position{LSN: types.LSN(s.number(named[1:]))})
}

// move decides, checks that a rejection changes nothing, and applies.
func (s *player) move(tenant types.Tenant, line []string) string {
	r := s.parseOp(tenant, line)
	was := s.ledger.Hash()
	why := s.ledger.Decide(s.at, r)
	if s.ledger.Hash() != was {
		s.t.Fatalf("%v: deciding changed the ledger", line)
	}
	if why != event.None {
		return refused(why, r)
	}
	id := types.TxID{}
	if r.Op == event.Hold {
		s.opened = append(s.opened, opened{string(r.From.Text), string(r.Asset.Text)})
		id = s.hold(fmt.Sprintf("h%d", len(s.opened)))
	}
	s.ledger.Apply(s.at, id, r)
	s.checkWhole(line)
	switch r.Op {
	case event.Issue:
		return fmt.Sprintf("seq %d: %s has %v, %v issued, %v today", r.Seq, r.To.Text, r.ToBalance, r.FromBalance, r.DebitedToday)
	case event.Burn:
		return fmt.Sprintf("seq %d: %s has %v, sent %v today, %v burned", r.Seq, r.From.Text, r.FromBalance, r.DebitedToday, r.ToBalance)
	case event.Hold:
		return fmt.Sprintf("seq %d: h%d, %v of %s is held", r.Seq, len(s.opened), r.HeldBalance, r.From.Text)
	case event.Capture:
		return fmt.Sprintf("seq %d: %s has %v, %v held, sent %v today, %s has %v", r.Seq, r.From.Text, r.FromBalance, r.HeldBalance, r.DebitedToday, r.To.Text, r.ToBalance)
	case event.Release:
		return fmt.Sprintf("seq %d: %v let go, %v held", r.Seq, r.Amount, r.HeldBalance)
	case event.Freeze, event.Unfreeze:
		return fmt.Sprintf("seq %d: %s is frozen: %v", r.Seq, r.From.Text, s.ledger.Frozen(tenant, r.From.ID))
	default:
		return fmt.Sprintf("seq %d: %s has %v, sent %v today, %s has %v", r.Seq, r.From.Text, r.FromBalance, r.DebitedToday, r.To.Text, r.ToBalance)
	}
}

func refused(why event.Problem, r *record.Record) string {
	after := why.Code() + ": " + why.Detail()
	if r.Nonce > 0 {
		after += fmt.Sprintf(" Nonce %d is next.", r.Nonce)
	}
	if why.Stored() {
		after += " Stored."
	}
	return after
}

func (s *player) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *player) amount(text string) types.Amount {
	a, err := types.ParseAmount(text)
	if err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	return a
}

func name(s string) types.Name { return types.Name{ID: digest.Name([]byte(s)), Text: []byte(s)} }
