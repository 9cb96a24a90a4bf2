package explore

import (
	"strings"
	"testing"
	"time"
)

// sites are the scopes of objects and usage.
func sites() []struct {
	name string
	plan SitePlan
	want []siteSight
} {
	put, remove := func(object uint8) call { return call{kind: callPut, object: object} }, func(object uint8) call { return call{kind: callDelete, object: object} }
	paid := func(object uint8) []call {
		return []call{{kind: callReserve, object: object}, {kind: callPaid, object: object}}
	}
	report := func(kind callKind, events ...siteEvent) call { return call{kind: kind, events: events} }
	return []struct {
		name string
		plan SitePlan
		want []siteSight
	}{
		{"one object of two users, and a quota", SitePlan{quota: 1, powers: 2, tries: 3, scripts: [2][]call{{put(0), remove(0)}, {put(0), put(1)}}},
			[]siteSight{siteDone, siteRejected, siteRetried, siteLost, siteTail, siteAcknowledged}},
		{"objects that are paid", SitePlan{quota: 2, powers: 1, price: 3, funds: 8, scripts: [2][]call{paid(0), append(paid(0), remove(0))}},
			[]siteSight{siteDone, siteUnpaid, siteKept, siteRetried, siteLost, siteTail, siteAcknowledged}},
		{"a reservation that expires", SitePlan{quota: 2, powers: 1, jumps: 1, jump: siteHoldTTL + time.Second, price: 3, funds: 5,
			scripts: [2][]call{paid(0), {{kind: callReserve, object: 1}, {kind: callCancel}}}},
			[]siteSight{siteDone, siteUnpaid, siteExpired, siteLost, siteTail, siteAcknowledged}},
		{"events that come twice, and late", SitePlan{quota: 1, powers: 1, jumps: 2, jump: siteWindow + siteGrace + time.Second, tries: 2,
			scripts: [2][]call{{report(callReport, siteEvent{0, 1}, siteEvent{1, 2})}, {report(callReport, siteEvent{1, 2}, siteEvent{2, 4}), report(callReport, siteEvent{0, 9}, siteEvent{3, 1})}}},
			[]siteSight{siteDone, siteRejected, siteRetried, siteSealed, siteCorrected, siteLost, siteTail, siteAcknowledged}},
		{"events that are paid", SitePlan{quota: 1, powers: 1, jumps: 2, jump: siteWindow + siteGrace + time.Second, unit: 2, funds: 9,
			scripts: [2][]call{{report(callPrepaid, siteEvent{0, 1}, siteEvent{1, 2})}, {report(callPrepaid, siteEvent{1, 2}, siteEvent{2, 1}), report(callPrepaid, siteEvent{3, 1})}}},
			[]siteSight{siteDone, siteUnpaid, siteRetried, siteSealed, siteCorrected, siteLost, siteTail, siteAcknowledged}},
		{"requests that are paid later", SitePlan{quota: 1, powers: 1, jumps: 1, jump: siteWindow + siteGrace + time.Second, unit: 2, funds: 5,
			scripts: [2][]call{{report(callMetered, siteEvent{0, 4}), report(callMetered, siteEvent{0, 1}), report(callPrepaid, siteEvent{1, 1})}, {report(callIssue, siteEvent{0, 6}), report(callMetered)}}},
			[]siteSight{siteDone, siteUnpaid, siteRetried, siteSealed, siteLost, siteTail, siteAcknowledged, siteOwes, siteSettled}},
	}
}

// TestSiteScopes: every schedule of objects and usage keeps every rule, and ends.
func TestSiteScopes(t *testing.T) {
	var sum explored
	for _, s := range sites() {
		if !strings.Contains(s.name, *only) {
			continue
		}
		t.Run(strings.ReplaceAll(s.name, " ", "_"), func(t *testing.T) {
			w := OpenSite(s.plan)
			if w.h.err != nil {
				t.Fatal(w.h.err)
			}
			r := Run(w, Scope{Name: s.name, Room: 1 << 22})
			t.Logf("%v; %d journals", r, w.h.entries)
			checkScope(t, r, s.want, func(one siteSight) uint64 { return w.h.Saw[one] })
			sum.add(r)
		})
	}
	t.Logf("evidence: explore.site = %d, with %d transitions", sum.scopes, sum.transitions)
}
