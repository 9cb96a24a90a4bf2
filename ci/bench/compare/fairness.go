package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"macronode/ci/bench/conf"
	"macronode/ci/bench/flow"
	"macronode/ci/bench/sample"
	"macronode/ci/bench/sheet"
)

// fairness measures how scarce capacity is shared.
type fairness struct {
	*gateways
	shared []sharer // few concurrent requests at the origin
	paced  *front   // few requests a second are admitted

	jain          map[string][]float64
	quiet, loud   sample.Series // the node's own requests, without and with the flood
	flood         []flow.Seen   // the flood
	served, asked []float64
}

const (
	tenants = 16
	atOnce  = 8                    // concurrent requests at the origin
	short   = 4 * time.Millisecond // time of the origin per request
	long    = 10 * time.Millisecond
	pace    = 1_000 // requests a second
	ownRate = 200   // of the node itself
)

// sharers are the gateways that share the origin. macronode has its own queue, HAProxy uses that
// of its server.
var sharers = [...]struct{ row, name, turn string }{{"HAProxy", "HAProxy", ""}, {"macronode", "macronode", ""},
	{"macronode, `queue.quantum_bytes: 4KiB`", "macronode", "4KiB"}}

func (f *fairness) open(ctx context.Context) (err error) {
	f.jain = map[string][]float64{}
	for _, s := range sharers {
		one := sharer{row: s.row}
		if one.front, err = f.start(ctx, s.name, conf.Setting{Rate: never, Burst: 100_000, AtOnce: atOnce, Turn: s.turn}); err != nil {
			return err
		}
		for i := range tenants {
			key := "" // without API keys there are no tenants
			if one.node != nil {
				if key, err = one.node.newKey(ctx, 2+i); err != nil {
					return err
				}
			}
			one.keys = append(one.keys, key)
		}
		f.shared = append(f.shared, one)
	}
	f.paced, err = f.start(ctx, "macronode", conf.Setting{Rate: pace, Burst: pace / 50})
	return err
}

// A sharer is a gateway with a shared origin, and the API keys of its tenants.
type sharer struct {
	*front
	row  string
	keys []string
}

// equals returns tenants that all want more than their share, some with more connections.
func (s *sharer) equals() (all []flow.Flow) {
	for i, key := range s.keys {
		all = append(all, flow.Flow{Path: fmt.Sprintf("/200/%v", short), Size: 200, Key: key, Conns: 12 + 2*(i%4)})
	}
	return all
}

func (f *fairness) round(ctx context.Context) error {
	for i := range f.shared {
		s := &f.shared[i]
		t, err := f.offer(ctx, s.front, f.time, s.equals()...)
		if err != nil {
			return err
		}
		f.jain[s.row] = append(f.jain[s.row], jain(t.seen))
	}
	raw, err := os.ReadFile(f.paced.node.keyFile())
	if err != nil {
		return err
	}
	own := flow.Flow{Path: fmt.Sprintf("/200/%v", long), Size: 200, Key: strings.TrimSpace(string(raw)), Conns: 32, Rate: ownRate}
	otherLoad := flow.Flow{Path: "/200", Size: 200, Conns: keeping, Rate: 10 * pace}
	quiet, err := f.offer(ctx, f.paced, f.time, own)
	if err != nil {
		return err
	}
	loud, err := f.offer(ctx, f.paced, f.time, own, otherLoad)
	if err != nil {
		return err
	}
	f.quiet, f.loud = append(f.quiet, quiet.seen[0].Served), append(f.loud, loud.seen[0].Served)
	f.flood = append(f.flood, loud.seen[1])
	f.served = append(f.served, float64(loud.seen[0].Served.All))
	f.asked = append(f.asked, float64(loud.seen[0].Served.All+loud.seen[0].Refused.All+loud.seen[0].Other))
	return nil
}

// jain returns Jain's index: (Σx)² / (n Σx²), 1 for equal shares.
func jain(seen []flow.Seen) float64 {
	sum, squares := 0.0, 0.0
	for i := range seen {
		x := float64(seen[i].Served.Counted)
		sum, squares = sum+x, squares+x*x
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(seen)) * squares)
}

// newKey creates an API key of a tenant that may read.
func (n *node) newKey(ctx context.Context, tenant int) (string, error) {
	own, err := os.ReadFile(n.keyFile())
	if err != nil {
		return "", err
	}
	body := fmt.Sprintf(`{"name":"tenant-%d","tenant":"%d","scopes":["read"]}`, tenant, tenant)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+n.http+"/v1/keys", bytes.NewReader([]byte(body)))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(own)))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	raw, err := io.ReadAll(resp.Body)
	var made struct{ Key string }
	if err != nil || json.Unmarshal(raw, &made) != nil || made.Key == "" {
		return "", fmt.Errorf("keys: %d %s", resp.StatusCode, raw)
	}
	return made.Key, nil
}

func (f *fairness) report() {
	rows := [][]string{}
	for _, s := range f.shared {
		rows = append(rows, []string{s.row, spread1(sample.Of(f.jain[s.row]), "")})
	}
	f.page.Sections = append(f.page.Sections, sheet.Section{Title: "Gateway: equal tenants", Text: fmt.Sprintf(equalsText, tenants, atOnce, short),
		Head: []string{"server", "Jain's index"}, Rows: rows})
	loud, quiet := f.loud, f.quiet
	rows = [][]string{{"alone", cell(quiet, sample.P50), cell(quiet, sample.P99), ""},
		{"beside the flood", cell(loud, sample.P50), cell(loud, sample.P99), spread1(share(f.served, f.asked), " %")}}
	f.page.Sections = append(f.page.Sections, sheet.Section{Title: "Gateway: a flood of requests without a key", Text: fmt.Sprintf(floodText, pace, ownRate, long, 10*pace),
		Head: []string{"the class internal", "p50 µs", "p99 µs", "served"}, Rows: rows})
	f.page.Goals = append(f.page.Goals,
		sheet.Goal{What: "Jain's index over 16 equal tenants", Want: sheet.Least(0.99), Got: sample.Of(f.jain["macronode"]).Median},
		sheet.Goal{What: "p99 of the class internal while callers without a key offer ten times the quota, against alone", Want: sheet.Most(1.2),
			Got: loud.Ratio(quiet, sample.P99).Median, Unit: "×"})
}

// share returns a part of a whole per round, in percent.
func share(part, whole []float64) sample.Spread {
	var all []float64
	for i := range part {
		all = append(all, 100*part[i]/max(1, whole[i]))
	}
	return sample.Of(all)
}

const equalsText = `%d tenants with a key each send requests without a pause: four of them over 12 connections, four over 14, four over 16 and four over 18. %d requests may be at the origin at once, which takes
%v for each. Jain's index of the served requests is 1 if all tenants got the same, and 0.98 if each got a share by its connections. A turn in macronode is 64 KiB, which is a few small requests. It makes
tenants equal if they have more than that waiting; shorter turns make all equal. HAProxy has one queue for a server, in the order of arrival. nginx and Caddy have none.`

const floodText = `The instance has a quota of %d requests a second. The class ¢internal¢ sends %d requests a second, at the moments of a Poisson process; each takes the origin %v. Callers without a key offer %d more
requests a second, which take the origin no time. None of the other gateways has classes that share a quota.`
