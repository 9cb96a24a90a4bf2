package readmodel

import (
	"macronode/core/plane"
	"macronode/core/types"
)

// ReadPlane passes a plane and the time of the state to read, and returns the frame of the state. read
// neither changes the plane nor keeps it. It is not called if the program does not have the plane.
func (f *Follower) ReadPlane(id types.Plane, read func(p plane.Plane, at types.Time)) (upto types.LSN) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if p := f.state.Plane(id); p != nil {
		read(p, f.state.At)
	}
	return f.state.LSN
}
