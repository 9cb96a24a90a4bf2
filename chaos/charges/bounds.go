package charges

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"macronode/core/types"
)

// A Bound is how many requests a part of the journal may count.
type Bound struct {
	After, Upto types.LSN // its frames: those after After, up to Upto
	Labels      string    // of the requests; empty: all of the service
	Least, Most uint64
}

// Bounded checks C7 for requests whose callers do not know the frame, because they were killed with the node or read only. Each request
// of a service must be in the bounds of its labels. It returns how many there are.
func (j *Journal) Bounded(service string, all []Bound) (counted uint64, err error) {
	got := make([]uint64, len(all))
	for _, lsn := range slices.Sorted(maps.Keys(j.metered)) {
		for _, r := range j.metered[lsn] {
			if r.Dimension != "requests" || !slices.Contains(strings.Split(r.Labels, ","), "service="+service) {
				continue
			}
			isKnown := false
			for i := range all {
				b := &all[i]
				if b.After < lsn && lsn <= b.Upto && (b.Labels == "" || b.Labels == r.Labels) {
					got[i] += r.Value
					isKnown = isKnown || b.Labels != ""
				}
			}
			if !isKnown {
				return counted, fmt.Errorf("C7: frame %v counts %d requests of %s without a request", lsn, r.Value, r.Labels)
			}
			counted += r.Value
		}
	}
	for i := range all {
		if b := &all[i]; got[i] < b.Least || got[i] > b.Most {
			return counted, fmt.Errorf("C7: the frames after %v up to %v count %d requests, there were %d to %d of %s %q", b.After, b.Upto, got[i], b.Least, b.Most, service, b.Labels)
		}
	}
	return counted, nil
}
