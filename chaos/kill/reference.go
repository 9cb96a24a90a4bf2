package kill

import (
	"encoding/json"
	"math/big"
	"strings"
	"time"

	"macronode/chaos/recall"
	"macronode/chaos/refmodel"
	"macronode/core/types"
	"macronode/models/ledger"
)

const balancePath = "/v1/balance"

// ask is a request of a client: for a read, the body is the account.
type ask struct{ path, body string }

// reference is the reference model for requests with paths and bodies.
type reference struct{ *refmodel.Model }

// newReference returns a model without limits that these clients could reach.
func newReference(found *recall.Memory) reference {
	const room = 1 << 20
	much := new(big.Int).Lsh(big.NewInt(1), 100)
	return reference{refmodel.New(ledger.Limits{Tenants: room, Accounts: room, Holdings: room, Assets: room,
		Holds: room, TenantAccounts: room, TenantHoldings: room, TenantAssets: room, TenantHolds: room, AccountHolds: room,
		HoldFor: types.MaxHoldDuration.Milliseconds(), Amount: much, Day: much, IssueDay: much, Supply: much}, found)}
}

// Step makes a step of the model.
func (w reference) Step(at types.Position, q *ask) (answer string, changed bool) {
	parsed := q.parse()
	return w.Model.Step(at, &parsed)
}

// item is one operation of a body.
type item struct {
	Op, From, To, Asset, Ref string
	Amount                   string `json:"amount_minor"`
	Nonce                    types.Nonce
	Expires                  string `json:"expires_at"`
}

// parse returns the operation of q.
func (q *ask) parse() refmodel.Ask {
	switch q.path {
	case balancePath:
		return refmodel.Ask{Kind: refmodel.Look, Tenant: types.DefaultTenant, Items: []refmodel.Item{{From: q.body, Asset: "EUR/2"}}}
	case "/v1/batch":
		var asked struct {
			Atomic bool
			Items  []item
		}
		parse(q.body, &asked)
		a := refmodel.Ask{Kind: refmodel.Batch, Tenant: types.DefaultTenant, Atomic: asked.Atomic}
		for _, i := range asked.Items {
			a.Items = append(a.Items, i.toModel())
		}
		return a
	}
	var body item
	parse(q.body, &body)
	i := body.toModel()
	parts := strings.Split(q.path, "/")
	if i.Op = parts[len(parts)-1]; i.Op == "holds" {
		i.Op = "hold"
	}
	if len(parts) == 5 { // /v1/holds/{hold_id}/capture
		hold, err := refmodel.ParseHold(parts[3])
		types.Assert(err == nil, "a hold that is none")
		i.Hold = hold
	}
	return refmodel.Ask{Kind: refmodel.Single, Tenant: types.DefaultTenant, Items: []refmodel.Item{i}}
}

// toModel returns i as an item of the model.
func (i item) toModel() refmodel.Item {
	a := refmodel.Item{Op: i.Op, From: i.From, To: i.To, Asset: i.Asset, Ref: i.Ref, Amount: i.Amount, Nonce: i.Nonce}
	if i.Expires != "" {
		until, err := time.Parse(time.RFC3339, i.Expires)
		types.Assert(err == nil, "a time that is none")
		a.Until = types.Time(until.UnixMilli())
	}
	return a
}

// parse parses a body of our clients.
func parse(body string, into any) {
	types.Assert(json.Unmarshal([]byte(body), into) == nil, "a client that writes no JSON")
}
