package kill

import (
	"encoding/json"
	"math/big"
	"strings"
	"time"

	"macronode/chaos/recall"
	"macronode/chaos/twin"
	"macronode/core/types"
	"macronode/models/ledger"
)

const balancePath = "/v1/balance"

// ask is what a client asks: of a read, the body is the account.
type ask struct{ path, body string }

// reader is the twin for those who ask in paths and bodies.
type reader struct{ *twin.Twin }

// newTwin has no limit that these clients meet.
func newTwin(found *recall.Memory) reader {
	const room = 1 << 20
	much := new(big.Int).Lsh(big.NewInt(1), 100)
	return reader{twin.New(ledger.Limits{Tenants: room, Accounts: room, Holdings: room, Assets: room,
		Holds: room, TenantAccounts: room, TenantHoldings: room, TenantAssets: room, TenantHolds: room, AccountHolds: room,
		HoldFor: types.MaxHoldDuration.Milliseconds(), Amount: much, Day: much, IssueDay: much, Supply: much}, found.Journal, found.Time)}
}

// Step asks the twin.
func (w reader) Step(at types.Position, q *ask) (answer string, changed bool) {
	parsed := q.parse()
	return w.Twin.Step(at, &parsed)
}

// item is one operation, as a body has it.
type item struct {
	Op, From, To, Asset, Ref string
	Amount                   string `json:"amount_minor"`
	Nonce                    types.Nonce
	Expires                  string `json:"expires_at"`
}

// parse is what q asks.
func (q *ask) parse() twin.Ask {
	switch q.path {
	case balancePath:
		return twin.Ask{Kind: twin.Look, Tenant: types.DefaultTenant, Items: []twin.Item{{From: q.body, Asset: "EUR/2"}}}
	case "/v1/batch":
		var asked struct {
			Atomic bool
			Items  []item
		}
		parse(q.body, &asked)
		a := twin.Ask{Kind: twin.Batch, Tenant: types.DefaultTenant, Atomic: asked.Atomic}
		for _, i := range asked.Items {
			a.Items = append(a.Items, i.asked())
		}
		return a
	}
	var body item
	parse(q.body, &body)
	i := body.asked()
	parts := strings.Split(q.path, "/")
	if i.Op = parts[len(parts)-1]; i.Op == "holds" {
		i.Op = "hold"
	}
	if len(parts) == 5 { // /v1/holds/{hold_id}/capture
		hold, err := twin.ParseHold(parts[3])
		types.Assert(err == nil, "a hold that is none")
		i.Hold = hold
	}
	return twin.Ask{Kind: twin.Single, Tenant: types.DefaultTenant, Items: []twin.Item{i}}
}

// asked is i in the twin's words.
func (i item) asked() twin.Item {
	a := twin.Item{Op: i.Op, From: i.From, To: i.To, Asset: i.Asset, Ref: i.Ref, Amount: i.Amount, Nonce: i.Nonce}
	if i.Expires != "" {
		until, err := time.Parse(time.RFC3339, i.Expires)
		types.Assert(err == nil, "a time that is none")
		a.Until = types.Time(until.UnixMilli())
	}
	return a
}

// parse reads what a client of ours wrote.
func parse(body string, into any) {
	types.Assert(json.Unmarshal([]byte(body), into) == nil, "a client that writes no JSON")
}
