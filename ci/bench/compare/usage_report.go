package main

import (
	"cmp"
	"fmt"
	"strings"

	"macronode/ci/bench/sample"
	"macronode/ci/bench/sheet"
)

const (
	usageNode    = "macronode"
	usageService = "service over PostgreSQL"
)

// report writes the page of usage.
func (u *events) report() {
	u.page.Head = usageHead
	u.page.Facts = append(u.page.Facts, sheet.Fact{What: "wallet.idempotency.keys", Is: sheet.Count(u.keys()) + ": room in memory for about all ids of the run"})
	rows := [][]string{}
	for _, k := range eventWorks {
		service, ids := u.service[k], "in order"
		if k.random {
			ids = "random"
		}
		for _, side := range [...]struct {
			name string
			runs sample.Series
		}{{usageNode, u.ours[k]}, {usageService, service}} {
			s := side.runs
			rows = append(rows, []string{sheet.Count(k.items), ids, side.name, cell(s, sample.Rate), cell(s, sample.P50), cell(s, sample.P99), cell(s, sample.CPU),
				times(s.Ratio(service, sample.Rate)), times(s.Ratio(service, sample.CPU)), percent(s)})
		}
		u.page.Goals = append(u.page.Goals, sheet.Goal{What: fmt.Sprintf("events per second in batches of %s, ids %s: macronode against the service over PostgreSQL", sheet.Count(k.items), ids),
			Want: sheet.Least(3), Got: u.ours[k].Ratio(service, sample.Rate).Median, Unit: "×", CPU: service.Ratio(u.ours[k], sample.CPU).Median})
	}
	u.page.Goals = append(u.page.Goals, sheet.Goal{What: "events per second in batches of 100, durable: macronode", Want: sheet.Least(170_000),
		Got: u.ours[eventWorks[0]].Spread(sample.Rate).Median})
	u.page.Sections = append(u.page.Sections, sheet.Section{Title: "Recording usage events", Text: strings.ReplaceAll(fmt.Sprintf(eventsText, u.pool), "¢", "`"), Rows: rows,
		Head: []string{"events of a request", "ids", "server", "events/s", "p50 µs of a request", "p99 µs of a request", "CPU µs per event", "rate ÷ service", "CPU ÷ service", "other load"}})
	u.reportTotals()
	u.reportInProcess()
	u.page.Missing = append(u.page.Missing, "products that meter usage, such as OpenMeter: they need several servers, such as Kafka and ClickHouse; the service over PostgreSQL does the same work with one")
}

// reportTotals reports the CPU of all turns.
func (u *events) reportTotals() {
	rows, first := [][]string{}, 0.0
	for _, side := range [...]struct {
		name string
		runs map[kind]sample.Series
	}{{usageNode, u.ours}, {usageService, u.service}} {
		var all sample.Sample
		for _, series := range side.runs {
			for i := range series {
				all.CPU += series[i].CPU
				all.Over += series[i].Over
			}
		}
		each := sample.CPU(&all)
		first = cmp.Or(first, each)
		rows = append(rows, []string{side.name, sheet.Count(int(all.Over)), sheet.Number(each), sheet.Number(each/first) + "×"})
	}
	front := sample.CPU(&sample.Sample{CPU: u.front, Over: u.total[1]})
	rows = append(rows, []string{"of it the service, without PostgreSQL", "", sheet.Number(front), sheet.Number(front/first) + "×"})
	u.page.Sections = append(u.page.Sections, sheet.Section{Title: "All turns together", Text: totalsText,
		Head: []string{"server", "events", "CPU µs per event", "÷ macronode"}, Rows: rows})
}

const usageHead = `# Performance of usage accounting

` + "`ci/bench/run -only usage`" + ` writes this page. It measures macronode and its peers in one run on one machine, by turns: A B, A B, …
A number is the median of the rounds, with the least and the most in parentheses. A ratio is taken within each round first.

Load generator and server share the machine. Events per second therefore depend on both, and on other programs of the machine: judge by the ratios
and by CPU per event. That is user and system time of the processes of the server, divided by all recorded events. For PostgreSQL it is the postmaster
with all its children, and the service.

`

const eventsText = `16 connections. Each sends a batch of CloudEvents to ¢POST /v1/usage-events¢, and the next one after the answer. HTTP/1.1 on loopback, without TLS, without access logs.
An event has a new id, the dimension ¢requests¢, the value 1, and the labels ¢service¢ and ¢method¢: eight series in all. An event has about 160 bytes.
The ids of a connection are in order, which suits the index of PostgreSQL most, or begin with 16 random digits. macronode hashes ids, so it does not depend on their order.
Each answer must say that all events were recorded, and that none is a duplicate. At the end the sums of both servers are compared with the answers.

* **macronode**: API key, strict parsing, admission, ids for ever, the sum of each series and window, hash chain, second fold, fdatasync before the answer. The index of the ids is
  written meanwhile.
* **service over PostgreSQL**: Go's net/http and a pgx pool of %d connections over a unix socket; the same API key; Go's encoding/json.
  A request is one round trip, one statement and one transaction:
  ¢insert … select from unnest(…) on conflict (source, id) do nothing¢, with ¢synchronous_commit¢ on. It is spared what would cost it more. It has one index, that of source and id. It
  does not compare the content of duplicates, has one tenant, sums nothing and seals nothing.

After each turn the server is left alone until it uses less than a tenth of a core. CPU per event includes that time, in which macronode may write its index.
The servers run for all rounds, so that both have more ids with each round. A node keeps an id in memory for at least twice ¢http.request_deadline¢ plus ¢node.commit_timeout¢: 15 s
by default. Events use at most three quarters of ¢wallet.idempotency.keys¢, so a node with the default of 1,000,000 records at most about 50,000 events per second for longer than that. For more, it is set
higher, as here.`

const totalsText = `macronode writes its index and its snapshots rarely. A turn in which that happens has about twice the CPU per event, so the median of few turns says less than the sum of all.`
