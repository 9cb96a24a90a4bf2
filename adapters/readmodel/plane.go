package readmodel

import (
	"macronode/core/plane"
	"macronode/core/types"
)

// ReadPlane passes a plane to read, and returns the frame and the time of the state. read neither changes
// the plane nor keeps it. It is not called if the program does not have the plane.
func (f *Follower) ReadPlane(id types.Plane, read func(plane.Plane)) (upto types.LSN, at types.Time) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if p := f.state.Plane(id); p != nil {
		read(p)
	}
	return f.state.LSN, f.state.At
}
