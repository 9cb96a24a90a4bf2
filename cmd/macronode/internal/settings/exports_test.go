package settings

import (
	"fmt"
	"strings"
	"testing"

	"macronode/adapters/export"
	"macronode/cmd/macronode/internal/testkit"
)

// TestSinksKeepOutOfTheNode checks which directories of file sinks their paths show to be those of the node.
func TestSinksKeepOutOfTheNode(t *testing.T) {
	for dir, want := range map[string]string{
		".": "the data directory", "journal": "the directory of the journal", "./snapshots/": "the directory of snapshots", "index/x": "the directory of the index",
		"x/../objects": "the directory of objects", "/disk": "the directory of provider one", "/archive": "the archive of the journal",
		"exports": "", "journals": "", "..x": "", "/data/..": "", "/disk/exports": "", "/archive/exports": "", "/": "",
	} {
		c := testkit.Config(t, "data=/data", "journal.archive=/archive", `storage.providers=[{"name":"one","path":"/disk"}]`,
			fmt.Sprintf(`exports.sinks=[{"name":"a","kind":"file","dir":%q}]`, dir))
		err := CheckSinks(c)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", dir, err, want)
		}
	}
}

// TestOptionsOfSinksAreChecked: config check, a start and a reload reject an option of a database that cannot be parsed. They do not
// read the files that a sink names, which may be there later.
func TestOptionsOfSinksAreChecked(t *testing.T) {
	for options, want := range map[string]string{
		"sslmode=verify-full&sslrootcert=/nowhere&sslcert=/nowhere&sslkey=/nowhere&passfile=/nowhere&servicefile=/nowhere&service=x": "",
		"connect_timeout=5s":         `exports.sinks[1].database has the option connect_timeout with the value "5s": must be a number of seconds`,
		"statement_cache_capacity=x": "exports.sinks[1].database has the option statement_cache_capacity",
		"sslmode=full":               "exports.sinks[1].database has the option sslmode",
	} {
		c := testkit.Config(t, fmt.Sprintf(`exports.sinks=[{"name":"a","kind":"http","url":"http://127.0.0.1:9"},{"name":"b","kind":"postgres","database":"postgres://a@127.0.0.1/db?%s"}]`, options))
		err := CheckSinks(c)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", options, err, want)
		}
	}
}

// TestTenantLeavesRoomInSink: the deliveries of a sink are shared, unless it has one tenant.
func TestTenantLeavesRoomInSink(t *testing.T) {
	for tenants, want := range map[string]int{"": 0, `,"tenants":["2"]`: 5, `,"tenants":["2","3"]`: 0} {
		c := testkit.Config(t, fmt.Sprintf(`exports.sinks=[{"name":"a","kind":"http","url":"http://127.0.0.1:9","inflight":5%s}]`, tenants))
		if l := sinks(c)[0].LaneLimits(10); l.Inflight != 5 || l.Tenant != want {
			t.Errorf("%s: %+v, want %d of a tenant", tenants, l, want)
		}
	}
}

// TestFilesFindWhatIsNotSettled: a file sink finds as many lines of a lane again as a crash can leave unsettled, and one in delivery.
func TestFilesFindWhatIsNotSettled(t *testing.T) {
	if l := new(Sink).LaneLimits(1 << 20); l.Window+1 > export.FileWindow {
		t.Errorf("%d lines of a lane are found, %d can be unsettled", export.FileWindow, l.Window+1)
	}
}
