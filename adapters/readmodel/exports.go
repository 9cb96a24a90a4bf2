package readmodel

import (
	"bytes"

	"macronode/core/export"
	"macronode/core/types"
)

// exports returns the export plane.
func (f *Follower) exports() *export.Plane {
	return f.state.Plane(types.PlaneExport).(*export.Plane)
}

// Lane returns how far a lane is; false if there is no such lane. Its texts stay valid.
func (f *Follower) Lane(id types.LaneID) (s export.LaneState, ok bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	s, ok = f.exports().Find(id)
	s.Sink, s.Stream = bytes.Clone(s.Sink), bytes.Clone(s.Stream)
	return s, ok
}

// Lanes passes all lanes in no particular order, until each returns false. Their texts are valid until each returns.
func (f *Follower) Lanes(each func(export.LaneState) bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	f.exports().Lanes(0, each)
}

// Quarantined passes the quarantined positions of a lane in no particular order, until each returns false.
func (f *Follower) Quarantined(id types.LaneID, each func(export.Quarantined) bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	f.exports().Rows(id, each)
}

// Sink returns the last frame whose items a sink does not get; 0: it gets all. It returns false if the sink was not seen.
func (f *Follower) Sink(name string) (after types.LSN, known bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.exports().Sink([]byte(name))
}

// SinkRoom returns how many more sinks can be recorded.
func (f *Follower) SinkRoom() int {
	f.mu.RLock()
	defer f.mu.RUnlock()
	room := export.MaxSinks
	f.exports().Sinks(func([]byte, types.LSN) bool {
		room--
		return true
	})
	return room
}

// LaneRows returns the numbers of lanes and of quarantined positions.
func (f *Follower) LaneRows() (lanes, rows int) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.exports().Len()
}

// SliceSeq returns the seq of the last slice of a stream; 0 if there is none.
func (f *Follower) SliceSeq(t types.Tenant, dimension string) uint64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	s, _ := f.accounting().Stream(t, []byte(dimension))
	return s.Seq
}
