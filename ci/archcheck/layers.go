package archcheck

// A Layer is a set of packages that follow the same rules. Packages of one layer may import each
// other only if the layer lists itself.
type Layer struct {
	Path       string     // directory below the module; "chaos" covers "chaos/world"
	Imports    []string   // packages of this module that it may import
	Modules    []string   // other modules that it may import
	Pure       bool       // no clock, randomness, goroutine, lock, output, float or package state
	Std        []string   // what a pure layer may use beside pureStd: a package, or one name of it
	Goroutines Goroutines // which functions may start a goroutine
}

// Goroutines is the rule for go statements of a layer.
type Goroutines uint8

const (
	NoFunc  Goroutines = iota // no function may start a goroutine
	Runners                   // methods of a type with Run(ctx) error, whose return ends the goroutine
	AnyFunc                   // any function
)

// Layers lists the layers bottom-up: a layer imports only those above it in this list. A package
// belongs to the first layer whose path contains it. A package without a layer is an error, so
// every new directory is a decision.
var Layers = []Layer{
	core("types"),
	core("share", "core/types"),
	core("openfiles"),
	core("digest", "core/types").modules("github.com/zeebo/blake3", "lukechampine.com/blake3/guts"),
	core("placement", "core/types", "core/digest"),
	core("coding", "core/types", "core/digest", "core/placement"),
	core("table", "core/types").std("unsafe.Sizeof"), // reports the memory of its rows
	core("queue", "core/types"),
	core("rejection", "core/types"),
	core("clock", "core/types"),
	core("command", "core/types"),
	core("event", "core/types", "core/digest", "core/command"),
	core("record", "core/types", "core/digest", "core/event"),
	core("wallet/receipt", "core/types", "core/digest", "core/event", "core/record").
		std("time.UnixMilli", "(time.Time).UTC", "(time.Time).AppendFormat"), // formats timestamps

	machine("idempotency"),
	machine("access"),
	machine("wallet/ledger"),
	machine("plane", "core/access"),
	machine("storage", "core/access", "core/plane", "core/wallet/receipt"),
	machine("accounting", "core/access", "core/plane", "core/wallet/receipt").
		std("time.UnixMilli", "(time.Time).UTC", "(time.Time).Date"), // finds the month of a time
	machine("export", "core/access", "core/plane", "core/wallet/receipt"),
	machine("wallet", "core/access", "core/plane", "core/wallet/ledger", "core/wallet/receipt"),
	machine("lifecycle/supervisor"),
	machine("lifecycle/readiness"),
	machine("lifecycle/drain"),
	machine("gateway/upstream"),
	machine("gateway/drr"),
	machine("gateway/admission", "core/gateway/drr"),
	machine("gateway/quota"),
	machine("repair"),
	machine("lanes"),

	core("state", "core/types", "core/digest", "core/command", "core/event", "core/record", "core/idempotency", "core/access",
		"core/plane", "core/wallet", "core/wallet/ledger"),
	core("pricing", "core/types", "core/digest", "core/accounting"),
	core("flow", "core/types", "core/digest", "core/command", "core/event", "core/record", "core/plane", "core/storage", "core/wallet", "core/accounting", "core/pricing"),
	core("invoice", "core/types", "core/digest", "core/accounting", "core/pricing"),
	core("node", "core"),
	core("gateway/policycheck", "core"),

	{Path: "models", Pure: true, Imports: []string{"core/types"}, Std: []string{"math/big"},
		Modules: []string{"github.com/anishathalye/porcupine"}},

	adapter("fs").modules("golang.org/x/sys"),
	adapter("provider", "adapters/fs"),
	adapter("httpcheck"),
	adapter("bucket", "adapters/fs", "adapters/httpcheck", "adapters/provider").modules("github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go"), // the SDK signs requests and reads answers; its retries are off
	adapter("journalfile", "core/record", "core/digest", "adapters/fs"),
	adapter("snapshot", "core/record", "core/digest", "core/state", "adapters/fs"),
	adapter("erasure", "core/coding", "core/digest").modules("github.com/klauspost/reedsolomon"),
	adapter("objectstore", "core/coding", "core/digest", "core/placement", "core/share", "core/storage", "adapters/erasure", "adapters/fs", "adapters/provider"),
	adapter("objectio", "core/digest", "core/storage", "adapters/objectstore"),
	adapter("checksum"),
	adapter("sigv4"),
	adapter("s3", "core/storage", "adapters/checksum", "adapters/objectio", "adapters/objectstore", "adapters/sigv4"),
	adapter("recovery", "core/record", "core/state", "adapters/fs", "adapters/journalfile", "adapters/snapshot"),
	adapter("archive", "adapters/fs").modules("github.com/klauspost/compress"),
	adapter("readmodel", "core/accounting", "core/digest", "core/export", "core/flow", "core/plane", "core/storage", "core/record", "core/wallet/receipt", "core/state"),
	adapter("index", "core/accounting", "core/digest", "core/record", "core/storage").modules("github.com/cockroachdb/pebble/v2"),
	adapter("durable", "adapters/fs"),
	adapter("epochs", "adapters/fs"),
	adapter("backup", "core/record", "adapters/durable", "adapters/fs", "adapters/journalfile"),
	adapter("loop", "core/record"),
	adapter("hostclock").modules("golang.org/x/sys"),
	adapter("services"),
	adapter("audit", "core/rejection"),
	adapter("metering", "core/accounting", "core/flow", "adapters/hostclock").modules("golang.org/x/sync"),
	adapter("export", "adapters/fs", "adapters/httpcheck").modules("github.com/go-json-experiment/json", "github.com/jackc/pgx/v5", "github.com/nats-io/nats.go",
		"github.com/twmb/franz-go", "github.com/nats-io/nats-server/v2", "github.com/nats-io/jwt/v2", "github.com/nats-io/nkeys"), // the last three for tests only
	adapter("decisions"),
	adapter("accesslog"),
	adapter("nodedir", "core/digest", "adapters/fs").modules("github.com/go-json-experiment/json"),
	adapter("config", "core/accounting", "core/coding", "core/pricing", "adapters/fs", "adapters/httpcheck").modules("github.com/knadh/koanf", "github.com/go-json-experiment/json"),
	adapter("registry"), // data: queues, limits, deadlines and metrics
	adapter("metrics", "adapters/registry").modules("github.com/prometheus/client_golang"),
	adapter("httpserver", "core/rejection", "adapters/fs").modules("golang.org/x/sys"),
	adapter("inflate").modules("github.com/klauspost/compress"),
	adapter("proxy", "core/share", "adapters/inflate", "adapters/httpcheck").modules("golang.org/x/net/http2"),
	adapter("httpapi", "core/accounting", "core/digest", "core/flow", "core/plane", "core/share", "core/storage", "core/wallet/receipt", "adapters/inflate", "adapters/httpcheck", "adapters/objectio", "adapters/objectstore", "adapters/s3").
		modules("github.com/labstack/echo/v4", "github.com/go-json-experiment/json"),
	adapter("client", "core/digest", "adapters/httpcheck").modules("github.com/oapi-codegen/runtime", "github.com/go-json-experiment/json"),
	adapter("adminapi", "core/wallet/receipt").modules("github.com/go-json-experiment/json"),
	adapter("plane", "core/plane", "core/record", "adapters/config", "adapters/httpapi", "adapters/index", "adapters/registry").
		modules("github.com/go-json-experiment/json"),
	adapter("fstest", "adapters/fs", "adapters/provider"),
	adapter("nettest"), // for tests only
	adapter("natstest").modules("github.com/nats-io/nats-server/v2", "github.com/nats-io/nats.go"), // for tests only
	adapter("kafkatest").modules("github.com/twmb/franz-go"),                                       // for tests only

	{Path: "examples/counter", Pure: true, Imports: []string{"core"}}, // a plane that the product does not link
	{Path: "examples/counternode", Imports: []string{"core", "adapters", "examples/counter"}, Modules: []string{"github.com/go-json-experiment/json"}},

	{Path: "examples/meter", Pure: true, Imports: []string{"core"}}, // the accounting inside of another program

	{Path: "chaos", Imports: []string{"core", "adapters", "models", "examples/counter", "chaos"},
		Modules: []string{"github.com/anishathalye/porcupine", "github.com/hanwen/go-fuse", "github.com/aws/aws-sdk-go-v2", "github.com/nats-io/nats.go", "github.com/twmb/franz-go"}},
	{Path: "fuzz", Imports: []string{"core", "adapters", "models", "chaos"}},

	{Path: "cmd/internal/jsonerror", Modules: []string{"github.com/go-json-experiment/json"}},
	{Path: "cmd/internal/usagefile", Imports: []string{"core/types", "core/digest", "core/accounting", "core/pricing", "core/invoice", "cmd/internal/jsonerror"},
		Modules: []string{"github.com/go-json-experiment/json"}},
	{Path: "cmd/verify-usage", Imports: []string{"core/types", "core/accounting", "core/pricing", "core/invoice", "cmd/internal/usagefile"}}, // no adapter: a reader of its source sees all that it trusts
	command("exit"),
	command("datadir", "core", "adapters"),
	command("settings", "core", "adapters", "cmd/macronode/internal/datadir"),
	command("explain", "core", "adapters"),
	command("offline", "core", "adapters", "cmd/macronode/internal/exit", "cmd/macronode/internal/datadir", "cmd/macronode/internal/settings"),
	command("testkit", "core", "adapters", "cmd/macronode/internal/datadir", "cmd/macronode/internal/settings", "cmd/macronode/internal/testkit"), // for tests only: no other layer names it

	command("server", "core", "adapters", "cmd/macronode/internal/exit", "cmd/macronode/internal/datadir", "cmd/macronode/internal/settings").
		modules("github.com/coreos/go-systemd/v22", "golang.org/x/sync"),
	command("cli", "core", "adapters", "cmd/internal/jsonerror", "cmd/internal/usagefile", "cmd/macronode/internal/exit", "cmd/macronode/internal/datadir", "cmd/macronode/internal/settings",
		"cmd/macronode/internal/explain", "cmd/macronode/internal/offline", "cmd/macronode/internal/server").
		modules("github.com/alecthomas/kong", "github.com/go-json-experiment/json"),
	{Path: "cmd/macronode", Imports: []string{"cmd/macronode/internal/cli"}}, // main; links no test code
	{Path: "cmd", Imports: []string{"core", "adapters", "models", "chaos"}, Goroutines: AnyFunc,
		Modules: []string{"github.com/alecthomas/kong"}},

	{Path: "ci", Imports: []string{"core/types", "ci"}, Modules: []string{"golang.org/x/tools"}},
}

// core is a layer of deterministic rules: the same input always gives the same output.
func core(name string, imports ...string) Layer {
	return Layer{Path: "core/" + name, Pure: true, Imports: imports}
}

// machine is one state machine of core. Machines do not import each other; core/node composes them.
func machine(name string, imports ...string) Layer {
	return core(name, append(imports, "core/types", "core/share", "core/digest", "core/table", "core/queue", "core/clock", "core/command", "core/event", "core/record")...)
}

// adapter translates between the core and one external interface. It never imports a machine.
func adapter(name string, imports ...string) Layer {
	path := "adapters/" + name
	return Layer{Path: path, Imports: append([]string{"core/types", "core/command", "core/event", path}, imports...), Goroutines: Runners}
}

// command is a part of the program macronode. Only parts above it in the list are named in imports.
func command(name string, imports ...string) Layer {
	return Layer{Path: "cmd/macronode/internal/" + name, Imports: imports, Goroutines: AnyFunc}
}

func (l Layer) modules(paths ...string) Layer { l.Modules = paths; return l }
func (l Layer) std(names ...string) Layer     { l.Std = names; return l }

// pureStd lists the standard packages without side effects. Of time only Duration is allowed, of
// fmt only functions that return a value, of maps only calls sorted at once.
var pureStd = []string{
	"bytes", "cmp", "encoding/binary", "encoding/hex", "errors", "fmt", "maps", "math", "math/bits", "slices",
	"strconv", "strings", "time", "unicode/utf8", "unique",
}
