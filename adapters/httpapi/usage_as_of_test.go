package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"macronode/adapters/httpapi/wire"
	"macronode/core/types"
)

// pastUsage asks as of a time.
type pastUsage struct {
	*testServer
	t *testing.T
}

// report records an event of a time.
func (p pastUsage) report(id string, of time.Duration) {
	p.t.Helper()
	body := strings.Replace(usageEvent(id, "", `"dimension":"requests","value":7,"labels":{"service":"a"}`), later(0), later(of), 1)
	if a := p.send(p.usageEvents(structured, body)); a.status != http.StatusAccepted {
		p.t.Fatal(a.body)
	}
}

// ask returns the answers as of a time, in each format.
func (p pastUsage) ask(asOf string) (all string) {
	p.t.Helper()
	for _, format := range []string{"json", "csv", "ndjson"} {
		a := p.send(p.get("/v1/usage?from=" + later(-time.Hour) + "&to=" + later(2*time.Hour) + "&group=window,service&as_of=" + asOf + "&format=" + format))
		if a.status != http.StatusOK {
			p.t.Fatalf("as of %s: %d %s", asOf, a.status, a.body)
		}
		all += a.body + "\n"
	}
	return all
}

// rejected asks as of a time that is rejected with a detail.
func (p pastUsage) rejected(asOf, detail string) {
	p.t.Helper()
	a := p.send(p.get("/v1/usage?from=" + later(-time.Hour) + "&to=" + later(2*time.Hour) + "&as_of=" + asOf))
	if got := parse[wire.Problem](p.t, a); a.status != http.StatusBadRequest || got.Code != "bad_request" || got.Detail != detail {
		p.t.Errorf("as of %s: %d %s", asOf, a.status, a.body)
	}
}

// TestUsageAsOf: as of a time, the same question has the same bytes in each format: open usage, later windows and corrections change
// nothing. A time is rejected if something that is due by then can still be recorded, or is not sealed.
func TestUsageAsOf(t *testing.T) {
	p := pastUsage{serve(t, build(t)), t}
	u := p.usage()
	pass := func(at types.Time) {
		u.at = at
		u.seal(at)
	}
	p.report("1", 0)
	end := now - now%60_000 + 61_000 // of the window, with its grace
	pass(end)
	p.report("2", 0) // late
	p.report("3", 70*time.Second)
	stamp := func(at types.Time) string { return time.UnixMilli(int64(at)).UTC().Format("2006-01-02T15:04:05.000Z") }

	before, at := p.ask(stamp(end-1)), p.ask(stamp(end))
	if !strings.Contains(before, `"usage":[],"as_of":"`+stamp(end-1)+`"}`) {
		t.Errorf("before the window was due:\n%s", before)
	}
	const sum = `"labels":{"service":"a"},"value":"7","late":"0","open":"0","events":1}`
	if !strings.Contains(at, sum+`],"as_of":"`+stamp(end)+`"}`) || !strings.Contains(at, ",a,,,,,7,0,0,1\r\n") || strings.Count(at, sum) != 2 {
		t.Errorf("when the window was due:\n%s", at)
	}
	limit := ": what is due later can still change"
	p.rejected(stamp(end+1), "as_of: must be at most "+stamp(end)+limit)
	p.rejected("soon", "as_of: must be a time as in RFC 3339, from 1970 on")
	p.rejected("1960-01-01T00:00:00Z", "as_of: must be a time as in RFC 3339, from 1970 on")

	due := end + 60_000 // the correction
	u.at = due
	p.rejected(stamp(due), "as_of: must be at most "+stamp(due-1)+limit)
	if got := p.ask(stamp(due - 1)); strings.Count(got, sum) != 2 {
		t.Errorf("before the correction:\n%s", got)
	}
	pass(due + 5)
	if got := p.ask(stamp(due)); strings.Count(got, `"value":"14","late":"7","open":"0","events":2}`) != 2 {
		t.Errorf("with the correction:\n%s", got)
	}
	for _, c := range []struct{ asOf, was string }{{stamp(end - 1), before}, {stamp(end), at}} {
		if got := p.ask(c.asOf); got != c.was {
			t.Errorf("as of %s, the answers are\n%s\nthey were\n%s", c.asOf, got, c.was)
		}
	}
}
