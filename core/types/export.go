package types

// LaneID identifies the ordered export of one stream of a tenant to one sink.
type LaneID struct {
	Tenant Tenant
	ID     NameHash // of the names of the sink and the stream
}

// HashInto mixes l into h.
func (l LaneID) HashInto(h Hash64) Hash64 { return l.ID.HashInto(l.Tenant.HashInto(h)) }

// An ExportReason is why a position of a stream is not exported. Its number is permanent.
type ExportReason uint8

const (
	ExportRejected   ExportReason = iota + 1 // the sink does not accept it
	ExportTooLarge                           // it exceeds a limit of the sink
	ExportUnreadable                         // it cannot be read here: its frame is damaged
	numExportReasons
)

// Known reports whether r is a reason of this version.
func (r ExportReason) Known() bool { return 0 < r && r < numExportReasons }

func (r ExportReason) String() string {
	if !r.Known() {
		return "unknown"
	}
	return [numExportReasons]string{"", "rejected", "too_large", "unreadable"}[r]
}
