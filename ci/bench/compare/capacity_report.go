package main

import (
	"fmt"
	"math"
	"strings"

	"macronode/ci/bench/flow"
	"macronode/ci/bench/sample"
	"macronode/ci/bench/sheet"
)

func (c *capacity) report() {
	c.reportCapacity()
	c.reportFixed()
	c.reportRefusing()
	c.reportQuota()
}

func (c *capacity) section(title, text string, head []string, rows [][]string) {
	c.page.Sections = append(c.page.Sections, sheet.Section{Title: title, Text: strings.ReplaceAll(text, "¢", "`"), Head: head, Rows: rows})
}

func (c *capacity) goal(what string, want sheet.Bound, got float64, unit string) {
	c.page.Goals = append(c.page.Goals, sheet.Goal{What: what, Want: want, Got: got, Unit: unit})
}

// faster is a goal of so many requests a second against a peer's in the same rounds.
func (c *capacity) faster(what string, least float64, w work, peer string) {
	ours, other := c.series(w, "macronode"), c.series(w, peer)
	c.page.Goals = append(c.page.Goals, sheet.Goal{What: what, Want: sheet.Least(least), Got: ours.Ratio(other, sample.Rate).Median, Unit: "×",
		CPU: other.Ratio(ours, sample.CPU).Median})
}

// against is what a front does beside nginx: how many requests, and at what CPU each.
func (c *capacity) against(w work, name string) []string {
	s, nginx := c.series(w, name), c.series(w, "nginx")
	return []string{times(s.Ratio(nginx, sample.Rate)), times(s.Ratio(nginx, sample.CPU)), percent(s)}
}

func (c *capacity) reportCapacity() {
	rows := [][]string{}
	for _, w := range [...]work{small, large} {
		for _, name := range w.parties() {
			s := c.series(w, name)
			row := []string{sheet.Count(w.size), name, cell(s, sample.Rate), cell(s, sample.P50), cell(s, sample.P99), cell(s, sample.CPU),
				spread1(spread(c.turns[w][name], func(t *turn) float64 { return float64(t.resident) / (1 << 20) }), "")}
			rows = append(rows, append(row, c.against(w, name)...))
		}
	}
	c.section("Gateway: capacity", capacityText, []string{"bytes", "server", "requests/s", "p50 µs", "p99 µs", "CPU µs each", "resident MiB",
		"requests/s against nginx", "CPU against nginx", "other load"}, rows)
	c.faster("gateway, requests/s over 64 connections: ours against nginx", 0.5, small, "nginx")
	c.faster("the same against Caddy", 1.7, small, "Caddy")
	c.faster("the same, answers of 16 KiB, against nginx", 0.5, large, "nginx")
	c.faster("the same against Caddy", 1.7, large, "Caddy")
}

func (c *capacity) reportFixed() {
	rows := [][]string{}
	below := c.turns[fixed][alone]
	added := func(name string, f sample.Figure) sample.Spread {
		var all []float64
		for i, t := range c.turns[fixed][name] {
			all = append(all, f(&t.seen[0].Served)-f(&below[i].seen[0].Served))
		}
		return sample.Of(all)
	}
	for _, name := range fixed.parties() {
		s := c.series(fixed, name)
		rows = append(rows, []string{name, cell(s, sample.P50), cell(s, sample.P99), spread1(added(name, sample.P50), ""), spread1(added(name, sample.P99), ""),
			cell(s, sample.CPU), spread1(spread(c.turns[fixed][name], unsent), " %"), percent(s)})
	}
	c.section(fmt.Sprintf("Gateway: latency at %s requests a second", sheet.Count(atFixed)), fixedText,
		[]string{"server", "p50 µs", "p99 µs", "added p50 µs", "added p99 µs", "CPU µs each", "never sent", "other load"}, rows)
	if ours, nginx := added("macronode", sample.P99).Median, added("nginx", sample.P99).Median; nginx > 0 && ours > 0 {
		c.goal("added p99 at 4,000 requests a second: ours against nginx", sheet.Most(1.2), ours/nginx, "×")
	}
	c.goal("p99 at 4,000 requests a second, from when it was due: ours against nginx", sheet.Most(1.2), c.series(fixed, "macronode").Ratio(c.series(fixed, "nginx"), sample.P99).Median, "×")
}

func (c *capacity) reportRefusing() {
	rows := [][]string{}
	for _, name := range refusing.parties() {
		s := c.series(refusing, name)
		rows = append(rows, append([]string{name, cell(s, sample.Rate), cell(s, sample.P50), cell(s, sample.P99), cell(s, sample.CPU)}, c.against(refusing, name)...))
	}
	c.section("Gateway: rejecting every request", refusingText, []string{"server", "rejected/s", "p50 µs", "p99 µs", "CPU µs each",
		"rejected/s against nginx", "CPU against nginx", "other load"}, rows)
	c.faster("rejections/s: ours against nginx", 0.55, refusing, "nginx")
}

// unsent is how much of what was due never found a connection free, in percent.
func unsent(t *turn) float64 {
	return 100 * float64(t.seen[0].Unsent) / float64(max(1, t.seen[0].Offered))
}

// admitted is how many a second; off, by how much that misses the quota, in percent.
func admitted(t *turn) float64 { return sample.Rate(&t.seen[0].Served) }
func off(t *turn) float64      { return 100 * (admitted(t) - quota) / quota }

func p99(of func(*flow.Seen) *sample.Sample) func(*turn) float64 {
	return func(t *turn) float64 { return sample.P99(of(&t.seen[0])) }
}

func served(s *flow.Seen) *sample.Sample  { return &s.Served }
func refused(s *flow.Seen) *sample.Sample { return &s.Refused }

func (c *capacity) reportQuota() {
	rows := [][]string{}
	for _, w := range [...]work{twice, tenfold} {
		for _, name := range w.parties() {
			t, s := c.turns[w][name], c.series(w, name)
			rows = append(rows, []string{sheet.Count(int(w.rate)), name, spread1(spread(t, admitted), ""), spread1(spread(t, off), " %"),
				spread1(spread(t, p99(served)), ""), spread1(spread(t, p99(refused)), ""), cell(s, sample.CPU), spread1(spread(t, unsent), " %"), percent(s)})
		}
	}
	c.section(fmt.Sprintf("Gateway: a quota of %s a second", sheet.Count(quota)), quotaText, []string{"offered/s", "server", "admitted/s", "off the quota",
		"p99 µs of 200", "p99 µs of 429", "CPU µs each", "never sent", "other load"}, rows)
	ours, nginx := c.turns[twice]["macronode"], c.turns[twice]["nginx"]
	worst := spread(ours, func(t *turn) float64 { return math.Abs(off(t)) })
	c.goal("quota of 5,000/s, offered twice: difference of the admitted requests to it, at most", sheet.Most(0.1), worst.Most, " %")
	if spread(ours, p99(refused)).Least == 0 || spread(ours, p99(served)).Least == 0 { // no time of nothing is a short one
		c.page.Missing = append(c.page.Missing, "times at twice the quota: in some turn nothing that was due in it was answered")
		return
	}
	c.goal("the same, p99 of 429 against nginx", sheet.Most(1.5), ratio(ours, nginx, p99(refused)).Median, "×")
	c.goal("the same, p99 of 429", sheet.Most(5), spread(ours, p99(refused)).Median/1000, " ms")
	c.goal("the same, p99 of 200 against nginx", sheet.Most(2), ratio(ours, nginx, p99(served)).Median, "×")
}

const capacityText = `64 keep-alive connections over HTTP/1.1 on loopback. Each sends its next request when the last one is answered. The origin is one thread over epoll, the same for all. No server has access logs or TLS. The
configurations are in ¢ci/bench/conf¢. Each has a limit of requests, and of connections if the server has one, which is never reached. Resident memory counts shared pages once for each process.

* **macronode**: ¢macronode serve¢ with admission: quotas of the instance and of each peer, fair queue, permits, deadlines, circuit breaker of the upstream, a stored decision of each request, metrics. The
  wallet is enabled and idle.
* **nginx**, one worker per core: ¢limit_req¢ and ¢limit_conn¢ by address. **HAProxy**, one thread per core: a stick table by address.
* **Caddy** has no built-in limits of requests, so it has none here. **ReverseProxy** is ¢httputil.ReverseProxy¢ of Go, with a transport that keeps its connections and a pool
  of buffers, behind one bucket of x/time/rate (¢ci/bench/reverse¢).
* **no gateway**: the load generator sends to the origin directly; CPU is that of the origin.`

const fixedText = `Requests are due at the moments of a Poisson process, the same for all, over as many of 64 connections as necessary. The time of each counts from when it was due, independent of the requests
before it. Responses have 200 bytes. "Added" is the difference to the time without a gateway in the same round.`

const refusingText = `64 connections without a pause, and every request is rejected with 429: by nginx and HAProxy with their limit, by macronode with the quota of a peer, by ReverseProxy with its bucket. Each sends its usual
response; that of macronode names the decision. Caddy has no limit: its row is ¢respond 429¢, which decides nothing.`

const quotaText = `The load is twice and ten times a quota of 5,000 requests a second with a burst of 100, due as above. macronode has it as quota of the instance, nginx as ¢limit_req¢, HAProxy as the rate of a
stick table over a sliding second, and ReverseProxy as bucket. Caddy has none. "Off the quota" is the difference of the admitted requests to the quota. "Never sent" are requests that were due and found no free
connection before the end. If a server has many of these, it cannot answer as fast as requests were offered, and its times show only that.`
