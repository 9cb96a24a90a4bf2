package sim

import "slices"

// A Probe is something that must be seen in enough lives, or the world is too kind: that a
// fault has struck and has mattered, because the node took the way that is there for it.
type Probe struct {
	Fault string // what befell the node
	Saw   string // what came of it: a key of Saw
}

// Probes are all of them. One that is never hit is an error.
func Probes() []Probe { return slices.Clone(probes[:]) }

var probes = [...]Probe{
	// The power and the process.
	{"crash at any operation", "power lost"},
	{"crash at any operation", "frames beyond the durable"},
	{"crash in recovery", "crash in recovery"},
	{"kill", "killed"},
	{"pause", "woke from a pause and gave up"},
	{"pause", "a tick that was late"},
	{"child dies", "child died"},
	{"child dies often", "ails: late_start"},
	{"told to end", "told to end while all ask"},
	{"told to end", "ended and started again"},
	// The disk.
	{"torn write", "disk: write torn"},
	{"torn write", "tail cut"},
	{"lost write", "disk: write lost"},
	{"write lost in parts", "disk: write lost in parts"},
	{"lost rename or name", "disk: name lost"},
	{"lost sync", "disk: sync lied"},
	{"lost sync", "lie found out"},
	{"lost sync", "lie that nobody can know"},
	{"failed sync", "flush failed: sync failed"},
	{"failed sync", "fault: sync failed"},
	{"failed sync", "recovery failed: sync"},
	{"failed sync of the directory", "disk: directory sync failed"},
	{"failed sync of the directory", "flush failed at the directory"},
	{"failed sync of the directory", "recovery failed at the directory"},
	{"bit rot", "damage said"},
	{"bit rot", "rot that did no harm"},
	{"bit rot", "snapshot doubted"},
	{"misdirected write", "disk: write went astray"},
	{"misdirected write", "write that went astray found out"},
	{"misdirected write", "write that went astray and nobody can know"},
	{"short write", "flush failed: write failed"},
	{"short write", "fault: write failed"},
	{"short write", "disk: disk full within a write"},
	{"short write", "recovery failed: write"},
	{"no space", "flush failed: no space"},
	{"no space", "fault: no space"},
	{"no space", "recovery failed: full"},
	{"no space but the reserve", "ails: disk_full"},
	{"slow disk", "ails: journal_stalled"},
	{"slow disk", "fault: too slow"},
	{"read error", "an answer that the disk did not give"},
	{"read error", "recovery failed: read"},
	{"any of them", "flush failed"},
	{"any of them", "recovery failed"},
	{"any of them", "ails: journal_failed"},
	{"any of them", "snapshot failed"},
	// The clock.
	{"jump ahead", "clock jumped ahead"},
	{"jump ahead", "ails: clock"},
	{"jump back", "clock jumped back"},
	{"jump back", "time stood its ground"},
	{"skew between two lives", "clock moved between two lives, ahead"},
	{"skew between two lives", "clock moved between two lives, back"},
	{"drift", "clock drifts ahead"},
	{"drift", "clock drifts behind"},
	{"drift", "clock runs"},
	{"stopped clock", "clock stopped"},
	{"lost source", "clock lost or found its source"},
	// The clients.
	{"leave", "client left"},
	{"leave", "client gave up"},
	{"leave", "done, and nobody was told"},
	{"leave", "replayed"},
	{"duplicate", "twin told "},
	{"duplicate", "twin told in_progress"},
	{"duplicate", "twin told idempotency_conflict"},
	{"reorder", "overtaken by its own account's"},
	{"ask blindly", "sent back to look again"},
	// What the node does about all that, and of its own.
	{"", "told "}, {"", "told nonce_conflict"}, {"", "told limits_exceeded"}, {"", "told idempotency_conflict"}, {"", "told in_progress"},
	{"", "told busy"}, {"", "told unavailable"}, {"", "told unknown"}, {"", "told forbidden"}, {"", "told idempotency_full"},
	{"", "told account_frozen"}, {"", "told bad_request"}, {"", "stored 403"}, {"", "stored 409"},
	{"", "recorded batched"}, {"", "recorded held"}, {"", "recorded captured"}, {"", "recorded released"}, {"", "recorded lapsed"},
	{"", "recorded frozen"}, {"", "recorded granted"}, {"", "recorded revoked"}, {"", "recorded forgot"},
	{"", "key made"}, {"", "key ended"}, {"", "index lost"}, {"", "replayed of the index"},
	{"", "clock moved"}, {"", "snapshot made"}, {"", "began behind a snapshot"},
}
