package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func usageEvent(id string) string {
	return fmt.Sprintf(`{"specversion":"1.0","type":"usage","source":"a","id":%q,"data":{"dimension":"requests","value":2,"labels":{"method":"get","service":"shop"}}}`, id)
}

// TestEvents: each event counts once, and an invalid one rejects its batch.
func TestEvents(t *testing.T) {
	url, pool := open(t)
	url += "/v1/usage-events"
	first := usageEvent("1")
	for _, c := range []struct {
		rule, bearer, body string
		status             int
		want               string
	}{
		{"a wrong key", "other", "[" + first + "]", 401, `"unauthorized"`},
		{"no events", "secret", "[]", 400, `"bad_request"`},
		{"too many", "secret", "[" + strings.Repeat(first+",", 1024) + first + "]", 400, `"bad_request"`},
		{"an event without a source", "secret", "[" + first + "," + strings.Replace(first, `"source"`, `"from"`, 1) + "]", 400, `"bad_request"`},
		{"a value that is no number", "secret", "[" + strings.Replace(first, "2", "2.5", 1) + "]", 400, `"bad_request"`},
		{"events", "secret", "[" + first + "," + usageEvent("2") + "]", 202, `{"recorded":2,"duplicate":0,"late":0}`},
		{"a retry with one more", "secret", "[" + first + "," + usageEvent("3") + "]", 202, `{"recorded":1,"duplicate":1,"late":0}`},
		{"twice in a batch", "secret", "[" + usageEvent("4") + "," + usageEvent("4") + "]", 202, `{"recorded":1,"duplicate":1,"late":0}`},
	} {
		if r := postTo(t, url, c.bearer, "", c.body); r.status != c.status || !strings.Contains(r.body, c.want) {
			t.Errorf("%s: %+v", c.rule, r)
		}
	}
	var rows, sum int
	var labels string
	if err := pool.QueryRow(t.Context(), "select count(*), sum(value), min(labels) from usage_event").Scan(&rows, &sum, &labels); err != nil || rows != 4 || sum != 8 || labels != "service=shop,method=get" {
		t.Errorf("%d rows, sum %d, labels %s, %v", rows, sum, labels, err)
	}
}

// TestEventsTogether: batches with the same events in opposite orders do not wait for each other
// for ever.
func TestEventsTogether(t *testing.T) {
	url, pool := open(t)
	var up, down []string
	for i := range 100 {
		up, down = append(up, usageEvent(fmt.Sprint(i))), append(down, usageEvent(fmt.Sprint(99-i)))
	}
	var group sync.WaitGroup
	for _, batch := range [...][]string{up, down, up, down} {
		group.Go(func() {
			if r := postTo(t, url+"/v1/usage-events", "secret", "", "["+strings.Join(batch, ",")+"]"); r.status != 202 {
				t.Errorf("%+v", r)
			}
		})
	}
	group.Wait()
	var rows int
	if err := pool.QueryRow(t.Context(), "select count(*) from usage_event").Scan(&rows); err != nil || rows != 100 {
		t.Errorf("%d rows, %v", rows, err)
	}
}
