package kill_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"macronode/chaos/charges"
	"macronode/chaos/kill"
	"macronode/chaos/mutants"
	"macronode/core/accounting"
	"macronode/core/pricing"
	"macronode/core/types"
)

// gatewayRun is a node whose prepaid tenant pays one cent for each request to an upstream, its clients, and how many requests each part
// of its journal may count.
type gatewayRun struct {
	node    *kill.Node
	clients []*kill.GatewayClient
	bounds  []charges.Bound
	after   types.LSN // the last frame when this life began
}

const gatewayPayer, gatewayRevenue = "usage:prepaid", "usage:revenue"

func newGatewayRun(t *testing.T, binary string) *gatewayRun {
	t.Helper()
	upstream := kill.NewUpstream()
	t.Cleanup(upstream.Close)
	g := &gatewayRun{node: &kill.Node{Binary: binary, Data: t.TempDir(), Args: append(prepaidRequests(gatewayPayer, gatewayRevenue, `"service":"gateway"`), kill.GatewayArgs(upstream.URL)...)}}
	for i := range uint64(3) {
		c := kill.NewGatewayClient(i + 1)
		c.PaidFrom = gatewayPayer
		g.clients = append(g.clients, c)
	}
	return g
}

// begins starts the node.
func (g *gatewayRun) begins(t *testing.T) {
	t.Helper()
	start(t, g.node)
	upto := types.LSN(folded(t, g.node))
	if g.after > 0 {
		g.ends(upto, false)
	}
	g.after = upto
}

// ends notes what the life that has ended may have counted.
func (g *gatewayRun) ends(upto types.LSN, stopped bool) {
	g.bounds = append(g.bounds, kill.Served(g.clients, g.after, upto, stopped)...)
}

// shown returns how many requests the node shows as recorded. The query may be rejected under load.
func (g *gatewayRun) shown(t *testing.T) uint64 {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		sums, err := kill.SumUsage(t.Context(), g.node, "service", "requests")
		if err == nil {
			return sums["gateway"].Value
		}
		if time.Since(began) > patience {
			t.Fatal(err)
		}
	}
}

// killed is a life that is killed under load. What the node has shown before stays in the journal.
func (g *gatewayRun) killed(t *testing.T, dice *types.Rand) {
	t.Helper()
	g.begins(t)
	var shown uint64
	killUnderLoad(t, g.node, g.clients, dice, func() { shown = g.shown(t) })
	g.bounds = append(g.bounds, charges.Bound{Upto: math.MaxUint64, Least: shown, Most: math.MaxUint64})
}

// stopped is the last life: what was answered in it is counted, to the request. Its clients go on until they have to issue money, before
// and after their requests were recorded.
func (g *gatewayRun) stopped(t *testing.T) (earned uint64) {
	t.Helper()
	g.begins(t)
	for range 2 {
		was, first := g.shown(t), g.clients[0]
		for rejected := first.Rejected; first.Rejected == rejected; {
			for _, c := range g.clients {
				if err := c.Request(t.Context(), g.node); err != nil {
					t.Fatal(err)
				}
			}
		}
		for began := time.Now(); g.shown(t) == was; time.Sleep(10 * time.Millisecond) {
			if time.Since(began) > patience {
				t.Fatal("no request is recorded")
			}
		}
	}
	earned = balance(t, g.node, gatewayRevenue)
	for range 10 { // these are not recorded yet
		if err := g.clients[0].Request(t.Context(), g.node); err != nil {
			t.Fatal(err)
		}
	}
	if output, code := g.node.Stop(); code != 0 {
		t.Fatalf("exit %d:\n%s", code, output)
	}
	g.ends(math.MaxUint64, true)
	return earned
}

// certify certifies the journal. What it counts is what it pays.
func (g *gatewayRun) certify(prices pricing.List) (counted uint64, err error) {
	j, err := kill.CertifyCharges(g.node.Data, charges.Config{Lists: []pricing.List{prices}, Payer: gatewayPayer, Beneficiary: gatewayRevenue}, nil)
	if err != nil {
		return 0, err
	}
	if counted, err = j.Bounded("gateway", g.bounds); err != nil {
		return counted, err
	}
	if err := j.Settled(prices); err != nil {
		return counted, err
	}
	if paid := j.Paid["EUR/2"]; paid == nil || !paid.IsUint64() || paid.Uint64() != counted {
		err = fmt.Errorf("the journal counts %d requests, and pays %v", counted, paid)
	}
	return counted, err
}

func gatewayPrices() pricing.List {
	return pricing.List{centEach("calls", "requests", accounting.Label{Name: "service", Value: "gateway"})}
}

// TestKillGatewayRequests kills the real binary while clients use an upstream through it, each request for one cent. A frame counts no
// request that was not sent, and none twice. A kill costs no request that the node has shown as recorded. A stop costs none at all.
// What is counted is paid, to the unit.
func TestKillGatewayRequests(t *testing.T) {
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	g := newGatewayRun(t, binary)
	dice := types.NewRand(*seed)
	for range *kills/4 + 1 {
		g.killed(t, &dice)
	}
	earned := g.stopped(t)
	counted, err := g.certify(gatewayPrices())
	if err != nil {
		t.Fatalf("go test ./chaos/kill -run %s$ -seed %d: %v", t.Name(), *seed, err)
	}
	cut, rejected, most := 0, 0, uint64(0)
	for _, c := range g.clients {
		cut, rejected = cut+c.Cut, rejected+c.Rejected
	}
	for _, b := range g.bounds {
		if b.Labels != "" {
			most += b.Most
		}
	}
	if cut == 0 || rejected == 0 || counted < 60 || earned > counted {
		t.Fatalf("%d cut, %d rejected, %d counted of %d, %d was earned: no load", cut, rejected, counted, most, earned)
	}
	t.Logf("%d runs, %d requests of at most %d are counted and paid, %d cut, %d rejected", *kills/4+2, counted, most, cut, rejected)
}

// gatewayBugs are changes of the source with which the certificate of usage must fail.
func gatewayBugs() []bug {
	const recorder, meter, metered = "adapters/metering/metering.go", "core/accounting/meter.go", "adapters/httpapi/metered.go"
	return []bug{
		{"requests are counted twice", []mutants.Edit{put(metered, "\tk.Metering.Count(r, k.reservation)\n", "\tk.Metering.Count(r, k.reservation)\n\tk.Metering.Count(r, flow.Reservation{})\n")}, 1, "C7: "},
		{"what is recorded is recorded again", []mutants.Edit{put(meter, "\tclear(m.rows)\n", "\tif len(m.rows) > 8 {\n\t\tclear(m.rows)\n\t}\n")}, 1, "C7: "},
		{"a request that needs money counts", []mutants.Edit{put(metered, "if !k.isServed() || k.isReplay", "if k.status == 0 || k.isReplay")}, 1, "C7: "},
		{"a stop does not record the last requests", []mutants.Edit{put("cmd/macronode/internal/server/metering.go", "\t\ts.metering.Close(services.Hard(ctx))\n", ""),
			put(recorder, "m.Flush(hard)", "if hostclock.Sleep(ctx, time.Second) == nil {\n\t\t\tm.Flush(hard)\n\t\t}")}, 1, "C7: "},
		{"requests are recorded and not paid", []mutants.Edit{put("core/flow/requests.go", "\treply.Unpaid = p.payAvailable(at, in, f)\n", "")}, 1, "C8: "},
	}
}

// TestGatewayBugs: each bug can still be applied. With -bugs the certificate of usage names it.
func TestGatewayBugs(t *testing.T) {
	for _, b := range gatewayBugs() {
		overlay := b.lay(t)
		if !*bugs {
			continue
		}
		t.Run(b.name, func(t *testing.T) { b.mustBeFound(t, overlay) })
	}
}

// mustBeFound runs a binary with a bug, which the certificate must name.
func (b *bug) mustBeFound(t *testing.T, overlay string) {
	binary, err := kill.Build(t.TempDir(), "-overlay", overlay)
	if err != nil {
		t.Fatal(err)
	}
	g := newGatewayRun(t, binary)
	dice := types.NewRand(*seed)
	for range b.runs {
		g.killed(t, &dice)
	}
	g.stopped(t)
	counted, err := g.certify(gatewayPrices())
	if err == nil || !strings.Contains(err.Error(), b.contains) {
		t.Errorf("%v", err)
	}
	t.Logf("%d counted: %v", counted, err)
}
