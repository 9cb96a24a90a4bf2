package export

import (
	"errors"

	"macronode/core/command"
	"macronode/core/types"
)

// Why a command is invalid.
var (
	ErrKey      = errors.New("export: a command with an idempotency key")
	ErrLane     = errors.New("lane: is of another tenant, or not from NewLane")
	ErrPosition = errors.New("position: must be 1..2^53-1, and a range must not be empty")
	ErrReason   = errors.New("reason: unknown")
	ErrSink     = errors.New("sink: is no name of a sink, or the tenant is not the default one")
)

// Begin records that a sink was seen for the first time, which decides once where its lanes begin. If the sink is known,
// it succeeds without a record. Its problem is ExportCapacity. Its tenant is the default one.
type Begin struct {
	command.Header
	Sink []byte
	Now  bool // the sink gets items of later frames only, unless it has lanes
}

// Forget removes a sink that was seen: if it is seen again, that is the first time. Its problem is NotFound. Its tenant
// is the default one.
type Forget struct {
	command.Header
	Sink []byte
}

// Open makes a lane. If the lane exists, it succeeds without a record. Its problem is ExportCapacity.
type Open struct {
	command.Header
	Lane  Lane
	After uint64 // positions up to this one are not exported; 0: all are
}

// Settle records that the sink has the positions From..To of a lane, which follow its cursor. Its problems are
// NotFound and LaneMoved: From is not the next position.
type Settle struct {
	command.Header
	Lane     types.LaneID
	From, To uint64
}

// Quarantine keeps a position that cannot be exported. If it is the next one of the lane, the cursor moves past
// it. If it is quarantined already, a redelivery has failed: it is no longer due. Its problems are NotFound,
// LaneMoved and ExportCapacity: then nothing changes, and the lane has to wait.
type Quarantine struct {
	command.Header
	Lane     types.LaneID
	Position uint64
	Reason   types.ExportReason
	Status   uint16 // what the sink answered, such as the status of HTTP; 0: nothing
}

// Resolve records that the redelivery of a quarantined position has succeeded. Its problem is NotFound.
type Resolve struct {
	command.Header
	Lane     types.LaneID
	Position uint64
}

// Redrive marks a quarantined position as due for a redelivery. If it is due already, it succeeds without a
// record. Its problem is NotFound.
type Redrive struct {
	command.Header
	Lane     types.LaneID
	Position uint64
}

// Discard ends the quarantine of a position that is not exported. Its problem is NotFound.
type Discard struct {
	command.Header
	Lane     types.LaneID
	Position uint64
}

// Skip moves the cursor of a lane forward to To: the positions between are not exported. The caller has checked
// that the stream has the position To. Its problems are NotFound and LaneMoved: To is not after the cursor.
type Skip struct {
	command.Header
	Lane types.LaneID
	To   uint64
}

// Rewind moves the cursor of a lane back to To: the positions after it are exported again, and are no longer
// quarantined. Its problems are NotFound and LaneMoved: To is not before the cursor.
type Rewind struct {
	command.Header
	Lane types.LaneID
	To   uint64 // 0: all
}

// Remove ends a lane and the quarantine of its positions, because its sink is no longer used. Its problem is
// NotFound.
type Remove struct {
	command.Header
	Lane types.LaneID
}

// MaxPosition is the largest position of a stream.
const MaxPosition = types.MaxNonce

func (*Begin) Plane() types.Plane      { return types.PlaneExport }
func (*Forget) Plane() types.Plane     { return types.PlaneExport }
func (*Open) Plane() types.Plane       { return types.PlaneExport }
func (*Settle) Plane() types.Plane     { return types.PlaneExport }
func (*Quarantine) Plane() types.Plane { return types.PlaneExport }
func (*Resolve) Plane() types.Plane    { return types.PlaneExport }
func (*Redrive) Plane() types.Plane    { return types.PlaneExport }
func (*Discard) Plane() types.Plane    { return types.PlaneExport }
func (*Skip) Plane() types.Plane       { return types.PlaneExport }
func (*Rewind) Plane() types.Plane     { return types.PlaneExport }
func (*Remove) Plane() types.Plane     { return types.PlaneExport }

// ByNode returns true: the node gives these commands, also while it drains.
func (*Begin) ByNode() bool      { return true }
func (*Open) ByNode() bool       { return true }
func (*Settle) ByNode() bool     { return true }
func (*Quarantine) ByNode() bool { return true }
func (*Resolve) ByNode() bool    { return true }

func (c *Begin) ValidateFields() error  { return checkSink(&c.Header, c.Sink) }
func (c *Forget) ValidateFields() error { return checkSink(&c.Header, c.Sink) }

func (c *Open) ValidateFields() error {
	l := &c.Lane
	if !validNames(l.Sink, l.Stream) || l.ID == (types.NameHash{}) {
		return ErrLane
	}
	return check(&c.Header, l.LaneID, 1, max(1, c.After))
}

func (c *Settle) ValidateFields() error  { return check(&c.Header, c.Lane, c.From, c.To) }
func (c *Resolve) ValidateFields() error { return check(&c.Header, c.Lane, c.Position, c.Position) }
func (c *Redrive) ValidateFields() error { return check(&c.Header, c.Lane, c.Position, c.Position) }
func (c *Discard) ValidateFields() error { return check(&c.Header, c.Lane, c.Position, c.Position) }
func (c *Skip) ValidateFields() error    { return check(&c.Header, c.Lane, c.To, c.To) }
func (c *Rewind) ValidateFields() error  { return check(&c.Header, c.Lane, 1, c.To+1) }
func (c *Remove) ValidateFields() error  { return check(&c.Header, c.Lane, 1, 1) }

func (c *Quarantine) ValidateFields() error {
	if !c.Reason.Known() {
		return ErrReason
	}
	return check(&c.Header, c.Lane, c.Position, c.Position)
}

// checkSink returns why the fields of a command for a sink are invalid.
func checkSink(h *command.Header, sink []byte) error {
	switch {
	case len(h.Key.Text) > 0:
		return ErrKey
	case h.Tenant != types.DefaultTenant, !isName(sink, MaxSink, sinkChars):
		return ErrSink
	}
	return nil
}

// check returns why the fields of a command with a range of positions are invalid.
func check(h *command.Header, lane types.LaneID, from, to uint64) error {
	switch {
	case len(h.Key.Text) > 0:
		return ErrKey
	case lane.Tenant == 0, lane.Tenant != h.Tenant:
		return ErrLane
	case from == 0, from > to, to > MaxPosition:
		return ErrPosition
	}
	return nil
}
