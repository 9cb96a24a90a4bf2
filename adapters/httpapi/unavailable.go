package httpapi

import (
	"macronode/core/event"
	"macronode/core/types"
)

// unavailableReason returns the sentence of a 503 that names why the node cannot process a request;
// empty if it is not known. Only callers with an API key get the names of the reasons.
func unavailableReason(s *event.Status, withKey bool) string {
	switch {
	case s.Phase == types.Starting:
		return "The node is starting" + conditionList(s.WaitingFor, ", and waits for: ", withKey) + ". The request was not processed."
	case s.Phase >= types.LameDuck:
		return "The node is shutting down. The request was not processed."
	}
	blocking := types.Conditions(0)
	for _, c := range [...]types.Condition{types.JournalStalled, types.JournalFailed, types.DiskFull, types.IndexBehind} {
		if s.DegradedBy.Has(c) {
			blocking = blocking.With(c)
		}
	}
	if blocking == 0 || !withKey {
		return ""
	}
	return "The node cannot process this request now" + conditionList(blocking, ", degraded by: ", withKey) + ". The request was not processed."
}

// conditionList returns the names of conditions after a text.
func conditionList(set types.Conditions, text string, withKey bool) string {
	if set == 0 || !withKey {
		return ""
	}
	for c := range set.Each {
		text += c.String() + " "
	}
	return text[:len(text)-1]
}
