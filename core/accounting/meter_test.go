package accounting_test

import (
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/accounting"
	"macronode/core/types"
)

// added reports whether a meter has counted a request.
func added(m *accounting.Meter, r accounting.Request) bool {
	_, ok := m.Add(&r)
	return ok
}

// TestMeterLosesNothing: what a meter hands over and did not get back is what was added, without what it refused; and
// its commands are valid.
func TestMeterLosesNothing(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(r *rapid.T) {
		limit := rapid.SampledFrom([]int{1, 5, 5000}).Draw(r, "limit")
		m := accounting.NewMeter(time.Minute, limit, limit)
		var want, got [3]uint64 // requests, bytes in and out
		for range rapid.IntRange(1, 20).Draw(r, "flushes") {
			for i := range rapid.IntRange(0, 1800).Draw(r, "requests") {
				q := accounting.Request{Tenant: types.Tenant(1 + i%3), At: types.Time(1_700_000_000_000 + 40_000*(i%2)),
					Labels: accounting.NewRequestLabels("wallet", "post", string(rune('a'+i%17))+string(rune('a'+i/17%26))), In: uint64(i % 2), Out: uint64(i % 3)}
				if i%700 == 699 {
					if q.Labels = accounting.NewRequestLabels("wallet", "post", "!"); added(m, q) {
						r.Fatal("an invalid label is counted")
					}
					continue
				}
				if !added(m, q) {
					seen["full"]++
					continue
				}
				want = [...]uint64{want[0] + 1, want[1] + q.In, want[2] + q.Out}
			}
			for _, u := range m.Take() {
				if err := u.Command.ValidateFields(); err != nil {
					r.Fatalf("%v: %d rows", err, len(u.Command.Metered))
				}
				if len(u.Command.Metered) > accounting.MaxMetered-3 {
					seen["several commands"]++
				}
				if rapid.IntRange(0, 2).Draw(r, "refused") == 0 {
					if m.Return(u) > 0 {
						r.Fatal("no room for what was taken")
					}
					seen["returned"]++
					continue
				}
				got = sums(got, u)
			}
		}
		for _, u := range m.Take() {
			got = sums(got, u)
		}
		if got != want {
			r.Fatalf("handed over %v, added %v", got, want)
		}
	})
	for _, what := range []string{"full", "several commands", "returned"} {
		if seen[what] == 0 {
			t.Errorf("never: %s", what)
		}
	}
}

// TestMeterLimitsEachTenant: the rows of one tenant leave room for another's, and a flush makes room again.
func TestMeterLimitsEachTenant(t *testing.T) {
	m := accounting.NewMeter(time.Minute, 5, 3)
	add := func(tenant types.Tenant, route string) bool {
		return added(m, accounting.Request{Tenant: tenant, At: 1_700_000_000_000, Labels: accounting.NewRequestLabels("wallet", "post", route)})
	}
	for range 2 {
		for i, want := range []struct {
			tenant types.Tenant
			route  string
			added  bool
		}{
			{1, "a", true}, {1, "b", true}, {1, "c", true}, {1, "d", false}, {1, "a", true},
			{2, "a", true}, {2, "b", true}, {2, "c", false}, {3, "a", false},
		} {
			if got := add(want.tenant, want.route); got != want.added {
				t.Errorf("request %d: %v", i, got)
			}
		}
		taken := m.Take()
		for _, u := range taken {
			if lost := m.Return(u); lost > 0 {
				t.Errorf("%d requests have no room after they were taken", lost)
			}
		}
		if add(1, "d") || add(2, "c") {
			t.Error("what was returned takes no room")
		}
		m.Take()
	}
}

// sums adds the usage of a command.
func sums(to [3]uint64, u *accounting.MeteredUsage) [3]uint64 {
	requests := uint64(0)
	for _, m := range u.Command.Metered {
		switch string(m.Series.Dimension) {
		case "requests":
			to[0] += m.Value
			requests += m.Events
		case "bytes_in":
			to[1] += m.Value
		case "bytes_out":
			to[2] += m.Value
		}
	}
	types.Assert(requests == u.Requests, "a command with another number of requests")
	return to
}

// TestMeterLeavesOutWhatAFrameHas: of a request that was counted in the frame of its effect, only the bytes are left.
func TestMeterLeavesOutWhatAFrameHas(t *testing.T) {
	m := accounting.NewMeter(time.Minute, 4, 4)
	one := accounting.Request{Tenant: 1, At: 1_700_000_000_000, Labels: accounting.NewRequestLabels("wallet", "post", "issue"), In: 3, Out: 5}
	counted := one
	counted.In, counted.InFrame = 0, true
	if !added(m, one) || !added(m, counted) {
		t.Fatal("there is room")
	}
	all := m.Take()
	got := map[string]accounting.Count{}
	for _, row := range all[0].Command.Metered {
		got[string(row.Series.Dimension)] = row.Count
	}
	want := map[string]accounting.Count{"requests": {Value: 1, Events: 1}, "bytes_in": {Value: 3, Events: 2}, "bytes_out": {Value: 10, Events: 2}}
	if len(all) != 1 || all[0].Requests != 2 || !maps.Equal(got, want) {
		t.Errorf("%d requests: %v, want %v", all[0].Requests, got, want)
	}
}

// TestEqualLabelsAreOneRow: requests with equal labels are counted together, also if the labels were made twice, as a reload does.
func TestEqualLabelsAreOneRow(t *testing.T) {
	m := accounting.NewMeter(time.Minute, 1, 1)
	for range 2 {
		if !added(m, accounting.Request{Tenant: 1, At: 60_000, Labels: accounting.NewRequestLabels("Wallet", "POST", "issue")}) {
			t.Fatal("labels that were made twice are two rows")
		}
	}
	if all := m.Take(); len(all) != 1 || len(all[0].Command.Metered) != 1 || all[0].Command.Metered[0].Value != 2 {
		t.Errorf("%d commands: %+v", len(all), all)
	}
	for _, l := range [...][3]string{{"", "get", "a"}, {"a", "get", ""}, {"a", "get", "b!"}} {
		if accounting.NewRequestLabels(l[0], l[1], l[2]) != nil {
			t.Errorf("%q are labels", l)
		}
	}
}

// TestMeterCountsInTheWindow: a request counts in the window in which it ended, also if one of a later window was counted before.
func TestMeterCountsInTheWindow(t *testing.T) {
	m, labels := accounting.NewMeter(time.Minute, 9, 9), accounting.NewRequestLabels("wallet", "post", "issue")
	want := map[types.Time]uint64{}
	for _, at := range [...]types.Time{60_000, 119_999, 120_000, 119_999, 59_999, 1, 60_000, 180_000} {
		want[max(1, at-at%60_000)]++
		if !added(m, accounting.Request{Tenant: 1, At: at, Labels: labels}) {
			t.Fatal("there is room")
		}
	}
	got := map[types.Time]uint64{}
	for _, row := range m.Take()[0].Command.Metered {
		got[row.Time] = row.Value
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
