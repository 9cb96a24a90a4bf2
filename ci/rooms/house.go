package rooms

// A Room is a part of the tree whose packages live under the same rules. They may
// import one another only where the room uses itself.
type Room struct {
	Path    string   // below the module; "chaos" covers "chaos/world"
	Uses    []string // rooms of ours that it may import
	Borrows []string // modules of others that it may import
	Pure    bool     // no clock, chance, goroutine, lock, output, float or package state
	Std     []string // what a pure room may take beside pureStd: a package, or one name of it
	Starts  Starters // who may say go
}

// Starters are those who may start a goroutine.
type Starters uint8

const (
	Nobody  Starters = iota
	Runners          // methods of a type with Run(ctx) error, which is how it ends
	Anybody
)

// House lists the rooms from the one that knows least to the one that knows most:
// a room uses what stands above it. The first whose path fits is a package's room,
// and a package without one is an error, so a new folder is a decision.
var House = []Room{
	core("words"),
	core("digest", "core/words").borrows("github.com/zeebo/blake3"),
	core("table", "core/words").takes("unsafe.Sizeof"), // says how much memory its rows take
	core("queue", "core/words"),
	core("fair", "core/words", "core/table"),
	core("clock", "core/words"),
	core("event", "core/words", "core/digest"),
	core("record", "core/words", "core/digest", "core/event"),
	core("receipt", "core/words", "core/digest", "core/event", "core/record").
		takes("time.UnixMilli", "(time.Time).UTC", "(time.Time).AppendFormat"), // renders stamps

	machine("idem"),
	machine("keyring"),
	machine("ledger"),
	machine("supervise"),
	machine("ready"),
	machine("drain"),
	machine("upstream"),
	machine("admit", "core/fair"),
	machine("quota"),

	core("state", "core/words", "core/event", "core/record", "core/idem", "core/keyring", "core/ledger"),
	core("node", "core"),
	core("rehearse", "core"),

	{Path: "models", Pure: true, Uses: []string{"core/words"}, Std: []string{"math/big"},
		Borrows: []string{"github.com/anishathalye/porcupine"}},

	adapter("fs"),
	adapter("journalfile", "core/record", "core/digest", "adapters/fs"),
	adapter("snapshot", "core/record", "core/digest", "core/state", "adapters/fs"),
	adapter("archive", "adapters/fs").borrows("github.com/klauspost/compress"),
	adapter("follower", "core/digest", "core/record", "core/receipt", "core/state"),
	adapter("indexer", "core/digest", "core/record").borrows("github.com/cockroachdb/pebble/v2"),
	adapter("durable", "adapters/fs"),
	adapter("backup", "core/record", "adapters/durable", "adapters/fs", "adapters/journalfile"),
	adapter("loop", "core/record"),
	adapter("hostclock").borrows("golang.org/x/sys"),
	adapter("children"),
	adapter("audit"),
	adapter("decisions"),
	adapter("access"),
	adapter("rundir", "core/digest").borrows("github.com/go-json-experiment/json"),
	adapter("config").borrows("github.com/knadh/koanf", "github.com/go-json-experiment/json"),
	adapter("registry"), // data: what is bounded, shared, timed and counted
	adapter("metrics", "adapters/registry").borrows("github.com/prometheus/client_golang"),
	adapter("httpserver").borrows("golang.org/x/sys"),
	adapter("httpcheck"),
	adapter("inflate").borrows("github.com/klauspost/compress"),
	adapter("proxy", "adapters/inflate", "adapters/httpcheck").borrows("golang.org/x/net/http2"),
	adapter("httpapi", "core/digest", "core/receipt", "adapters/inflate", "adapters/httpcheck").
		borrows("github.com/labstack/echo/v4", "github.com/go-json-experiment/json"),
	adapter("client", "core/digest").borrows("github.com/oapi-codegen/runtime", "github.com/go-json-experiment/json"),
	adapter("adminapi", "core/receipt").borrows("github.com/go-json-experiment/json"),
	adapter("contract", "adapters/fs"),

	{Path: "chaos", Uses: []string{"core", "adapters", "models", "chaos"},
		Borrows: []string{"github.com/anishathalye/porcupine", "github.com/hanwen/go-fuse"}},
	{Path: "fuzz", Uses: []string{"core", "adapters", "models", "chaos"}},

	{Path: "cmd/macronode", Uses: []string{"core", "adapters"}, Starts: Anybody, // links no test world
		Borrows: []string{"github.com/alecthomas/kong", "github.com/coreos/go-systemd/v22", "github.com/go-json-experiment/json"}},
	{Path: "cmd", Uses: []string{"core", "adapters", "models", "chaos"}, Starts: Anybody,
		Borrows: []string{"github.com/alecthomas/kong"}},

	{Path: "ci", Uses: []string{"core/words", "ci"}, Borrows: []string{"golang.org/x/tools"}},
}

// core is a room of the rules: the same in, the same out, for ever.
func core(name string, uses ...string) Room {
	return Room{Path: "core/" + name, Pure: true, Uses: uses}
}

// machine is one idea of core. Two of them meet in core/node, never in each other.
func machine(name string, uses ...string) Room {
	return core(name, append(uses, "core/words", "core/digest", "core/table", "core/queue", "core/clock", "core/event", "core/record")...)
}

// adapter is a room between us and one vendor. It never knows a machine.
func adapter(name string, uses ...string) Room {
	path := "adapters/" + name
	return Room{Path: path, Uses: append([]string{"core/words", "core/event", path}, uses...), Starts: Runners}
}

func (r Room) borrows(modules ...string) Room { r.Borrows = modules; return r }
func (r Room) takes(std ...string) Room       { r.Std = std; return r }

// pureStd is the standard library that cannot reach the world outside. Of time it
// is Duration alone, of fmt what returns, of maps what is sorted at once.
var pureStd = []string{
	"bytes", "cmp", "encoding/binary", "encoding/hex", "errors", "fmt", "maps", "math", "math/bits", "slices",
	"strconv", "strings", "time", "unicode/utf8",
}
