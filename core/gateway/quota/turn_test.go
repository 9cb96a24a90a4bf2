package quota_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/event"
	"macronode/core/gateway/quota"
	"macronode/core/types"
)

// TestTurnFitsTheWait: a round of all classes takes no longer than a request may wait, unless a
// turn is one request. A turn is as long as this permits.
func TestTurnFitsTheWait(t *testing.T) {
	weights := [types.NumClasses]uint64{10, 5, 1}
	const least, quantum, wait = 4 << 10, 64 << 10, 25 * time.Millisecond
	rule := func(unit types.QuotaUnit, rate uint64) event.Quota {
		return event.Quota{Scope: types.ScopeInstance, Unit: unit, Rate: rate, Every: time.Second, Burst: 1, Classes: quota.AllClasses}
	}
	shadow, peer, none := rule(types.UnitRequests, 50), rule(types.UnitRequests, 50), rule(types.UnitRequests, 0)
	shadow.Shadow, peer.Scope = true, types.ScopePeer
	for what, c := range map[string]struct {
		rules []event.Quota
		want  uint64
	}{
		"no quota":               {nil, quantum},
		"slow requests":          {[]event.Quota{rule(types.UnitRequests, 50)}, least},
		"fast requests":          {[]event.Quota{rule(types.UnitRequests, 16*16*40)}, quantum},
		"half as fast":           {[]event.Quota{rule(types.UnitRequests, 16*16*20)}, quantum / 2},
		"slow bytes":             {[]event.Quota{rule(types.UnitBytes, 1<<20)}, least},
		"fast bytes":             {[]event.Quota{rule(types.UnitBytes, 16*quantum*40)}, quantum},
		"the slower of two":      {[]event.Quota{rule(types.UnitRequests, 16*16*40), rule(types.UnitBytes, 16*quantum*10)}, quantum / 4},
		"shadow, peer, rate 0":   {[]event.Quota{shadow, peer, none, {}}, quantum},
		"the largest round ever": {[]event.Quota{{Scope: types.ScopeInstance, Rate: 1, Every: quota.MaxEvery, Burst: 1}}, least},
	} {
		if got := quota.Turn(c.rules, weights, quantum, least, wait); got != c.want {
			t.Errorf("%s: a turn of %d bytes, want %d", what, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		r := rule(types.UnitRequests, rapid.Uint64Range(1, 1<<20).Draw(t, "rate"))
		wait := time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "wait"))
		round := func(turn uint64) time.Duration {
			return time.Duration(16*(turn/least)) * time.Second / time.Duration(r.Rate)
		}
		got := quota.Turn([]event.Quota{r}, weights, quantum, least, wait)
		if got < least || got > quantum || got > least && round(got) > wait || got < quantum && round(2*got) <= wait {
			t.Fatalf("a turn of %d bytes: a round takes %v, may take %v", got, round(got), wait)
		}
	})
}
