package flow

import (
	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/plane"
	"macronode/core/types"
)

// CountRequest counts the request of a command that has taken effect, in the same frame. It returns false if the command has no usage,
// or the plane of usage has no room for it.
func CountRequest(at types.Time, usage plane.Plane, h *command.Header, f plane.Frame) bool {
	u, isMetered := h.Usage.(*accounting.RequestUsage)
	p, isThere := usage.(*accounting.Plane)
	return isMetered && isThere && p.CountRequest(at, h.Tenant, u, f)
}
