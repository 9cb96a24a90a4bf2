package httpapi_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"macronode/adapters/httpapi/wire"
	"macronode/core/accounting"
	"macronode/core/event"
	"macronode/core/types"
)

const (
	structured = "application/cloudevents+json"
	batched    = "application/cloudevents-batch+json"
)

// usageEvents returns a request with a body of usage events.
func (s *testServer) usageEvents(kind, body string) *http.Request {
	r := s.post("usage-events", "unused", body)
	r.Header.Del("Idempotency-Key")
	r.Header.Set("Content-Type", kind)
	return r
}

// usageEvent returns an event with an ID, other members and members of its data.
func usageEvent(id, members, data string) string {
	return `{"specversion":"1.0","id":"` + id + `","source":"s","type":"t","time":"` + later(0) + `"` + members + `,"data":{` + data + `}}`
}

const oneRequest = `"dimension":"requests","value":1`

// TestUsageEventModes: an event has one effect, whichever mode reports it.
func TestUsageEventModes(t *testing.T) {
	s := serve(t, build(t))
	binary := func(id string) *http.Request {
		r := s.usageEvents("application/json; charset=utf-8", "{"+oneRequest+"}")
		for name, value := range map[string]string{"specversion": "1.0", "id": id, "source": "s", "type": "t", "time": later(0)} {
			r.Header.Set("Ce-"+name, value)
		}
		return r
	}
	for i, c := range []struct {
		r    *http.Request
		want string
	}{
		{s.usageEvents(structured, usageEvent("1", "", oneRequest)), `{"recorded":1,"duplicate":0,"late":0}`},
		{binary("1"), `{"recorded":0,"duplicate":1,"late":0}`},
		{binary("2"), `{"recorded":1,"duplicate":0,"late":0}`},
		{s.usageEvents(batched, "["+usageEvent("1", "", oneRequest)+","+usageEvent("2", "", oneRequest)+","+usageEvent("3", "", oneRequest)+","+usageEvent("3", "", oneRequest)+"]"),
			`{"recorded":1,"duplicate":3,"late":0}`},
		{s.usageEvents(structured, usageEvent("4", `,"subject":"Ann"`, oneRequest+`,"labels":{"subject":"bob"}`)), `{"recorded":1,"duplicate":0,"late":0}`},
		{s.usageEvents(structured, strings.Replace(usageEvent("5", "", oneRequest), `,"time":"`+later(0)+`"`, "", 1)), `{"recorded":1,"duplicate":0,"late":0}`},
		{s.usageEvents(structured, usageEvent("6", `,"datacontenttype":"application/json","dataschema":"x","traceparent":"x","tracestate":"x"`, oneRequest)), `{"recorded":1,"duplicate":0,"late":0}`},
	} {
		if a := s.send(c.r); a.status != http.StatusAccepted || a.body != c.want {
			t.Errorf("%d: %d %s, want %s", i, a.status, a.body, c.want)
		}
	}
	if a := s.send(binary("%C3%A9")); a.body != `{"recorded":1,"duplicate":0,"late":0}` {
		t.Error(a.body)
	}
	if a := s.send(s.usageEvents(structured, usageEvent("é", "", oneRequest))); a.body != `{"recorded":0,"duplicate":1,"late":0}` {
		t.Errorf("a percent-encoded ID is another one: %s", a.body)
	}
	for _, id := range []string{"%zz", "%ff", "\xe9"} {
		if a := s.send(binary(id)); a.status != 400 || !strings.Contains(a.body, "ce-id: is not percent-encoded UTF-8") {
			t.Errorf("%q: %d %s", id, a.status, a.body)
		}
	}
	a := s.send(s.get("/v1/usage?from=" + later(-time.Hour) + "&to=" + later(time.Hour) + "&group=subject&format=ndjson"))
	want := `{"dimension":"requests","labels":{},"value":"6","late":"0","open":"6","events":6}` + "\n" +
		`{"dimension":"requests","labels":{"subject":"bob"},"value":"1","late":"0","open":"1","events":1}` + "\n"
	if a.body != want {
		t.Errorf("%s, want %s", a.body, want)
	}
	if n := s.count.get("usage 0 1 0"); n != 2 {
		t.Errorf("the meter saw %v", s.of)
	}
}

// TestExtensionAttributesAreIgnored: an event with extension attributes is that without them, in each mode, whatever
// their values are.
func TestExtensionAttributesAreIgnored(t *testing.T) {
	s := serve(t, build(t))
	const extensions = `,"traceparent":"00-a-b-01","partitionkey":"","sequence":7,"flag":true,"tree":{"a":[1]},"none":null`
	binary := func(id string) *http.Request {
		r := s.usageEvents("application/json", "{"+oneRequest+"}")
		for name, value := range map[string]string{"specversion": "1.0", "id": id, "source": "s", "type": "t", "time": later(0),
			"traceparent": "00-a-b-01", "partitionkey": "", "sequence": "7", "flag": "true", "tree": "%zz", "none": "null"} {
			r.Header.Set("Ce-"+name, value)
		}
		r.Header.Add("Ce-Flag", "false") // only attributes occur once
		return r
	}
	const first, again = `{"recorded":1,"duplicate":0,"late":0}`, `{"recorded":0,"duplicate":1,"late":0}`
	for i, c := range []struct {
		r    *http.Request
		want string
	}{
		{s.usageEvents(structured, usageEvent("1", extensions, oneRequest)), first},
		{s.usageEvents(batched, "["+usageEvent("2", extensions, oneRequest)+"]"), first},
		{binary("3"), first},
		{binary("1"), again},
		{binary("2"), again},
		{s.usageEvents(structured, usageEvent("3", "", oneRequest)), again},
	} {
		if a := s.send(c.r); a.status != http.StatusAccepted || a.body != c.want {
			t.Errorf("%d: %d %s, want %s", i, a.status, a.body, c.want)
		}
	}
}

// TestLowerCaseTimes: RFC 3339 permits t and z in lower case, and an event with such a time is the same event.
func TestLowerCaseTimes(t *testing.T) {
	s := serve(t, build(t))
	for i, in := range []string{later(0), strings.ToLower(later(0)), strings.Replace(later(0), "T", "t", 1), strings.Replace(later(0), "Z", "z", 1)} {
		r := s.usageEvents(structured, strings.Replace(usageEvent("1", "", oneRequest), later(0), in, 1))
		resp, err := http.DefaultClient.Do(r) // the check of the document accepts upper case only
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if want := fmt.Sprintf(`{"recorded":%d,"duplicate":%d,"late":0}`, max(1-i, 0), min(i, 1)); resp.StatusCode != http.StatusAccepted || string(body) != want {
			t.Errorf("%s: %d %s, want %s", in, resp.StatusCode, body, want)
		}
	}
}

// TestUsageWithoutRoomForKeys: if the window of idempotency keys has no room for events, the response shows whether a
// retry can succeed, and when.
func TestUsageWithoutRoomForKeys(t *testing.T) {
	h := build(t)
	s := serve(t, h)
	for _, c := range []struct {
		problem     event.Problem
		status      int
		code, after string
	}{
		{event.EventsDeferred, 429, "idempotency_capacity", "10"},
		{event.IdempotencyCapacity, 429, "idempotency_capacity", "60"},
		{event.TooManyEvents, 413, "payload_too_large", ""},
	} {
		h.usage().problem = c.problem
		a := s.send(s.usageEvents(structured, usageEvent("1", "", oneRequest)))
		p := parse[wire.Problem](t, a)
		if a.status != c.status || string(p.Code) != c.code || p.Retryable != (c.after != "") || a.header.Get("Retry-After") != c.after || p.Detail != c.problem.Detail() {
			t.Errorf("%v: %d %s, Retry-After %q", c.problem, a.status, a.body, a.header.Get("Retry-After"))
		}
	}
}

// TestUsageShortageIsNamed: if a limit on usage would be exceeded, the response names its key and what is left.
func TestUsageShortageIsNamed(t *testing.T) {
	s := serve(t, build(t))
	var events []string
	for i := range 6 {
		events = append(events, usageEvent(fmt.Sprint(i), "", fmt.Sprintf(`"dimension":"custom:%d","value":1`, i)))
	}
	a := s.send(s.usageEvents(batched, "["+strings.Join(events, ",")+"]"))
	const want = "accounting.max_dimensions_per_tenant limits the dimensions of the tenant: needed 6, left 5. No event of the request was recorded."
	if p := parse[wire.Problem](t, a); a.status != 429 || p.Code != "usage_capacity" || p.Detail != want {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestInvalidUsageEvents: a problem names the event and the field, and nothing of the request is recorded.
func TestInvalidUsageEvents(t *testing.T) {
	s := serve(t, build(t))
	good := usageEvent("1", "", oneRequest)
	without := func(member string) string { return strings.Replace(good, `"`+member+`":"`, `"dataschema":"`, 1) }
	for body, want := range map[string]struct {
		status int
		detail string
	}{
		without("id"):          {422, "id: must have 1..256 bytes"},
		without("source"):      {422, "source: must have 1..256 bytes"},
		without("type"):        {422, "type: must not be empty"},
		without("specversion"): {422, "specversion: must be 1.0"},
		usageEvent("2", `,"datacontenttype":"text/plain"`, oneRequest):             {422, "datacontenttype: must be application/json"},
		strings.Replace(good, later(0), "yesterday", 1):                            {422, "time: must be a time after 1970 as in RFC 3339"},
		strings.Replace(good, later(0), "", 1):                                     {422, "time: must be a time after 1970 as in RFC 3339"},
		strings.Replace(good, later(0), "1970-01-01T00:00:00Z", 1):                 {422, "time: must be a time after 1970 as in RFC 3339"},
		strings.Replace(good, later(0), later(6*time.Minute), 1):                   {422, "The time of the event is more than 5 minutes ahead."},
		strings.Replace(good, later(0), later(-36*24*time.Hour), 1):                {422, "The time of the event is more than 35 days ago."},
		usageEvent("2", "", `"dimension":"requests"`):                              {422, "data.value: must be a whole number of at most 64 bits, as a JSON number or string"},
		usageEvent("2", "", `"dimension":"requests","value":-1`):                   {422, "data.value: must be a whole number of at most 64 bits, as a JSON number or string"},
		usageEvent("2", "", `"dimension":"requests","value":1.5`):                  {422, "data.value: must be a whole number of at most 64 bits, as a JSON number or string"},
		usageEvent("2", "", `"dimension":"requests","value":"01"`):                 {422, "data.value: must be a whole number of at most 64 bits, as a JSON number or string"},
		usageEvent("2", "", `"dimension":"requests","value":18446744073709551616`): {422, "data.value: must be a whole number of at most 64 bits, as a JSON number or string"},
		usageEvent("2", "", `"value":1`):                                           {422, "data.dimension: unknown"},
		usageEvent("2", "", `"dimension":"cats","value":1`):                        {422, "data.dimension: unknown"},
		usageEvent("2", "", oneRequest+`,"labels":{"host":"a"}`):                   {422, "data.labels: unknown label; the labels are service, region, method, route, subject"},
		usageEvent("2", "", oneRequest+`,"labels":{"route":"a b"}`):                {422, "data.labels.route: must be 1..64 of a-z 0-9 . _ - / { }"},
		usageEvent("2", "", oneRequest+`,"unit":"x"`):                              {400, "data.unit: is not accepted by this operation"},
		usageEvent("2", "", oneRequest+`,"value":2`):                               {400, "data.value: occurs twice"},
		usageEvent("2", "", oneRequest+`,"labels":{"route":"a","route":"b"}`):      {400, "data.labels.route: occurs twice"},
		usageEvent("2", "", oneRequest+`,"labels":{"a b":"a","a b":"b"}`):          {400, "data.labels: has a member twice"},
		usageEvent("2", "", oneRequest+`,"labels":{"route":1}`):                    {400, "data.labels.route: must be a JSON string"},
		usageEvent("2", `,"time":"x"`, oneRequest):                                 {400, "time: occurs twice"},
		usageEvent("2", `,"data_base64":"x"`, oneRequest):                          {400, "data_base64: is no attribute of an event"},
		usageEvent("2", `,"Time":"x"`, oneRequest):                                 {400, "Time: is no attribute of an event"},
		usageEvent("2", `,"a b":"x"`, oneRequest):                                  {400, "The event has a member that is no attribute."},
		strings.Replace(good, later(0), "2026-01-02t03:04:05", 1):                  {422, "time: must be a time after 1970 as in RFC 3339"},
		strings.Replace(good, `{"dimension":"requests","value":1}`, `[]`, 1):       {400, "data: "},
	} {
		a := s.send(s.usageEvents(batched, "["+usageEvent("9", "", oneRequest)+","+body+"]"))
		var p struct {
			Detail string `json:"detail"`
			Index  *int   `json:"index"`
		}
		if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.status != want.status || !strings.HasPrefix(p.Detail, want.detail) || p.Index == nil || *p.Index != 1 {
			t.Errorf("%s:\n%d %s, want %d %s of event 1", body, a.status, a.body, want.status, want.detail)
		}
	}
	if a := s.send(s.get("/v1/usage?from=" + later(-time.Hour) + "&to=" + later(time.Hour))); !strings.Contains(a.body, `"usage":[]`) {
		t.Errorf("usage was recorded: %s", a.body)
	}
}

// TestRepeatedMembersOfBinaryEvent: the body is the data, and a problem names the member as in the other modes.
func TestRepeatedMembersOfBinaryEvent(t *testing.T) {
	s := serve(t, build(t))
	for body, want := range map[string]string{
		`{"dimension":"requests","value":1,"value":2}`:                              "data.value: occurs twice",
		`{"dimension":"requests","value":1,"labels":{"route":"a","route":"b"}}`:     "data.labels.route: occurs twice",
		`{"dimension":"requests","value":1,"a b":1,"a b":2}`:                        "data: ",
		`{"dimension":"requests","value":1,"labels":{"route":"a"},"labels":{"":1}}`: "data.labels: occurs twice",
	} {
		r := s.usageEvents("application/json", body)
		for name, value := range map[string]string{"Specversion": "1.0", "Id": "1", "Source": "s", "Type": "t"} {
			r.Header.Set("Ce-"+name, value)
		}
		a := s.send(r)
		if p := parse[wire.Problem](t, a); a.status != 400 || !strings.HasPrefix(p.Detail, want) {
			t.Errorf("%s:\n%d %s, want %s", body, a.status, a.body, want)
		}
	}
}

// TestRonAccountingAbort: in ron-accounting an event of tenant 2^64 and then a read ended the process. A number that does not fit is a
// problem that names the event and the field, nothing of its request is counted, and reads go on.
func TestRonAccountingAbort(t *testing.T) {
	const most, above = "18446744073709551615", "18446744073709551616"
	s := serve(t, build(t))
	value := func(text string) string { return `"dimension":"requests","value":` + text }
	usage := func() string {
		return s.send(s.get("/v1/usage?from=" + later(-time.Hour) + "&to=" + later(time.Hour) + "&format=ndjson")).body
	}
	good := usageEvent("9", "", `"dimension":"bytes_in","value":5`)
	for i, c := range []struct {
		event, detail string
		status        int
		code          string
	}{
		{usageEvent("1", "", oneRequest+`,"tenant":`+above), "data.tenant: is not accepted by this operation", 400, "bad_request"},
		{usageEvent("1", "", oneRequest+`,"tenant":"`+above+`"`), "data.tenant: is not accepted by this operation", 400, "bad_request"},
		{usageEvent("1", "", value(above)), "data.value: must be a whole number of at most 64 bits, as a JSON number or string", 422, "event_invalid"},
		{usageEvent("1", "", value(`"`+above+`"`)), "data.value: must be a whole number of at most 64 bits, as a JSON number or string", 422, "event_invalid"},
		{usageEvent("1", "", value(most)) + "," + usageEvent("2", "", oneRequest), "data.value: the usage of the window would exceed 64 bits", 422, "usage_overflow"},
	} {
		a := s.send(s.usageEvents(batched, "["+good+","+c.event+"]"))
		at := 1 + strings.Count(c.event, "specversion") - 1
		if p := parse[wire.Problem](t, a); a.status != c.status || string(p.Code) != c.code || p.Detail != c.detail || !strings.Contains(a.body, fmt.Sprintf(`"index":%d`, at)) {
			t.Errorf("%d: %d %s, want %d %s of event %d", i, a.status, a.body, c.status, c.detail, at)
		}
		if got := usage(); got != "" {
			t.Fatalf("%d: a refused request has counted: %s", i, got)
		}
	}
	for range 2 { // an extension attribute names no tenant; the event is repeated
		if a := s.send(s.usageEvents(structured, usageEvent("1", `,"tenant":`+above, value(most)))); a.status != 202 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	before := usage()
	if a := s.send(s.usageEvents(batched, "["+good+","+usageEvent("2", "", oneRequest)+"]")); a.status != 422 || !strings.Contains(a.body, `"index":1`) || !strings.Contains(a.body, "data.value: ") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if got := usage(); got != before || !strings.Contains(got, `"value":"`+most+`"`) {
		t.Errorf("%s, before %s", got, before)
	}
}

// TestRejectedUsageBodies: bodies that are no events, or too many.
func TestRejectedUsageBodies(t *testing.T) {
	s := serve(t, build(t))
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ",%s", usageEvent(fmt.Sprint(i), "", oneRequest))
		}
		return "[" + b.String()[1:] + "]"
	}
	twice := usageEvent("1", "", oneRequest) + "," + usageEvent("1", "", `"dimension":"requests","value":2`)
	for i, c := range []struct {
		kind, body string
		status     int
		want       string
	}{
		{batched, many(accounting.MaxEvents), 202, `{"recorded":1024`},
		{batched, many(accounting.MaxEvents + 1), 413, "at most 1024 events"},
		{batched, "[" + strings.Repeat(" ", 1<<20) + "]", 413, "payload_too_large"},
		{batched, "[" + twice + "]", 422, `"index":1`},
		{batched, "[]", 400, "no event"},
		{batched, "{}", 400, "JSON array"},
		{batched, "[" + usageEvent("1", "", oneRequest), 400, "malformed JSON"},
		{batched, "[" + usageEvent("1", `,"type":"u"`, oneRequest) + "]", 400, "type: occurs twice"},
		{batched, "[" + usageEvent("1", "", oneRequest) + "]x", 400, "JSON array"},
		{structured, "[]", 400, "bad_request"},
		{"text/plain", "x", 415, "cloudevents"},
		{batched + "; charset=utf-16", many(1), 415, "its charset is utf-8"},
		{batched + "; charset=UTF-8", many(1), 202, `"recorded":0`},
		{"application/json", "{" + oneRequest + "}", 422, "specversion"},
	} {
		if a := s.send(s.usageEvents(c.kind, c.body)); a.status != c.status || !strings.Contains(a.body, c.want) {
			t.Errorf("%d: %d %.200s, want %d %s", i, a.status, a.body, c.status, c.want)
		}
	}
	twiceNamed := s.usageEvents("application/json", "{"+oneRequest+"}")
	twiceNamed.Header["Ce-Id"] = []string{"1", "2"}
	if a := s.send(twiceNamed); a.status != 400 || !strings.Contains(a.body, "ce-id: occurs more than once") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestUsageQueries: invalid queries, and an index that is behind.
func TestUsageQueries(t *testing.T) {
	s := serve(t, build(t))
	day := "from=" + later(-time.Hour) + "&to=" + later(time.Hour)
	for query, want := range map[string]string{
		"":                                      "from: is missing",
		"?from=" + later(0):                     "to: is missing",
		"?from=x&to=" + later(0):                "from: must be a time as in RFC 3339",
		"?from=" + later(0) + "&to=" + later(0): "to: must be after from, by at most 400 days",
		"?from=" + later(-401*24*time.Hour) + "&to=" + later(0): "to: must be after from, by at most 400 days",
		"?from=1970-01-01T00:00:00Z&to=2100-01-01T00:00:00Z":    "to: must be after from, by at most 400 days",
		"?from=1969-12-31T23:59:59Z&to=" + later(0):             "from: must be a time as in RFC 3339, from 1970 on",
		"?" + day + "&as_of=1970-01-01T00:00:00Z":               "as_of: must be after 1970-01-01T00:00:00Z",
		"?" + day + "&group=host":                               "group: must be a list",
		"?" + day + "&group=route,route":                        "group: must be a list",
		"?" + day + "&dimension=cats":                           "dimension: unknown",
		"?" + day + "&format=xml":                               "format: must be",
	} {
		if a := s.send(s.get("/v1/usage" + query)); a.status != 400 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s, want %s", query, a.status, a.body, want)
		}
	}
	epoch := "?from=1970-01-01T00:00:00Z&to=1970-02-01T00:00:00Z" // the first time that there is
	for _, path := range []string{"/v1/usage", "/v1/usage-slices"} {
		if a := s.send(s.get(path + epoch)); a.status != 200 {
			t.Errorf("%s%s: %d %s", path, epoch, a.status, a.body)
		}
	}
	s.usage().behind = true
	for _, path := range []string{"/v1/usage?" + day, "/v1/usage-slices"} {
		if a := s.send(s.get(path)); a.status != 503 {
			t.Errorf("%s of an index that is behind: %d %s", path, a.status, a.body)
		}
	}
}

// TestSlicesArePaged: pages have every slice once, and sums of sealed and of open usage agree.
func TestSlicesArePaged(t *testing.T) {
	s := serve(t, build(t))
	for i, dimension := range []string{"requests", "bytes_in", "custom:a"} {
		for n := range 3 {
			at := later(-time.Duration(n) * time.Minute)
			body := strings.Replace(usageEvent(fmt.Sprint(i, n), "", `"dimension":"`+dimension+`","value":7`), later(0), at, 1)
			if a := s.send(s.usageEvents(structured, body)); a.status != 202 {
				t.Fatal(a.body)
			}
		}
	}
	sums := "/v1/usage?from=" + later(-time.Hour) + "&to=" + later(time.Hour) + "&group=window&format=csv"
	open := s.send(s.get(sums)).body
	s.usage().seal(now.Add(time.Hour))
	if sealed := s.send(s.get(sums)).body; sealed != strings.NewReplacer(",7,0,7,1", ",7,0,0,1", ",7,7,7,1", ",7,7,0,1").Replace(open) || len(sealed) == 0 {
		t.Errorf("before the seal\n%safter it\n%s", open, sealed)
	}
	seen, cursor := map[string]bool{}, ""
	for range 20 {
		var page struct {
			Slices []struct {
				Dimension string `json:"dimension"`
				Seq       int    `json:"seq"`
			} `json:"slices"`
			Next string `json:"next_cursor"`
		}
		a := s.send(s.get("/v1/usage-slices?limit=2" + cursor))
		if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.status != 200 || len(page.Slices) > 2 {
			t.Fatalf("%d %s %v", a.status, a.body, err)
		}
		for _, slice := range page.Slices {
			key := fmt.Sprint(slice.Dimension, slice.Seq)
			if seen[key] {
				t.Errorf("%s comes twice", key)
			}
			seen[key] = true
		}
		if page.Next == "" {
			break
		}
		cursor = "&cursor=" + page.Next
		if len(seen) == 2 { // what is sealed meanwhile is on no page
			s.send(s.usageEvents(structured, strings.Replace(usageEvent("late", "", `"dimension":"requests","value":7`), later(0), later(-30*time.Minute), 1)))
			s.usage().seal(now.Add(2 * time.Hour))
		}
	}
	if len(seen) != 9 {
		t.Errorf("%d slices: %v", len(seen), seen)
	}
	if a := s.send(s.get("/v1/usage-slices?cursor=AAAA")); a.status != 400 {
		t.Errorf("a cursor of something else: %d", a.status)
	}
}

// TestUsageScansAreLimited: a tenant reads usage in one query at a time, and leaves the other place to another tenant. A further query
// waits, and is rejected at its deadline.
func TestUsageScansAreLimited(t *testing.T) {
	h := build(t)
	h.addKey(90, 90, event.AllScopes)
	h.addKey(91, 91, event.AllScopes)
	u := h.usage()
	u.reading, u.blocked = make(chan struct{}, 2), make(chan struct{})
	s := serve(t, h)
	of := func(key types.KeyID) *http.Request {
		r := s.get("/v1/usage-slices")
		r.Header.Set("Authorization", bearer(key))
		return r
	}
	rejected := func(key types.KeyID, which string) {
		t.Helper()
		if a := s.send(of(key)); a.status != http.StatusTooManyRequests || !strings.Contains(a.body, "queries of usage") {
			t.Errorf("%s: %d %s", which, a.status, a.body)
		}
	}
	done := make(chan answer, 2)
	begin := func(key types.KeyID, reads int) {
		r := of(key)
		go func() { done <- s.send(r) }()
		for len(u.reading) < reads {
			runtime.Gosched() // until it reads
		}
	}
	begin(90, 1)
	rejected(90, "a second query of the tenant")
	begin(91, 2)
	if depth, limit := s.api.UsageScans(); depth != 2 || limit != 2 {
		t.Errorf("%d of %d queries read", depth, limit)
	}
	rejected(1, "a third query")
	close(u.blocked)
	for range 2 {
		if a := <-done; a.status != http.StatusOK {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if a := s.send(of(1)); a.status != http.StatusOK {
		t.Errorf("after the others: %d %s", a.status, a.body)
	}
	if depth, _ := s.api.UsageScans(); depth != 0 {
		t.Errorf("in the end %d queries read", depth)
	}
}
