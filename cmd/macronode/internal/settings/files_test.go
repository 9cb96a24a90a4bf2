package settings

import (
	"strings"
	"testing"

	"macronode/cmd/macronode/internal/testkit"
)

// TestFilesDependOnTheConfiguration: what a key adds to the files of the node, and to what is needed.
func TestFilesDependOnTheConfiguration(t *testing.T) {
	of := func(sets ...string) (own int, needed uint64) {
		f := FilesOf(testkit.Config(t, append([]string{"permits.storage=10", "storage.uploads=4"}, sets...)...))
		return f.OwnFiles(), f.Needed()
	}
	own, needed := of()
	const two = `storage.providers=[{"name":"a","path":"/a"},{"name":"b","path":"/b"}]`
	for set, want := range map[string][2]int{ // of the node itself, and of all
		"listen.max_conns=8193":    {0, 1},
		"listen.s3=127.0.0.1:80":   {0, 8192},
		"listen.max_conns=10":      {0, -8182 - 2*246},
		"permits.proxy=257":        {0, 3},
		"permits.streams=257":      {0, 1},
		"storage.uploads=5":        {copyFiles, copyFiles},
		"storage.uploads=100":      {6 * copyFiles, 6 * copyFiles},
		"permits.storage=11":       {readFiles, readFiles},
		two:                        {(4+3)*copyFiles + providerFiles, (4+3)*copyFiles + providerFiles},
		"storage.repair.workers=3": {copyFiles + readFiles, copyFiles + readFiles},
		`exports.sinks=[{"name":"a","kind":"http","url":"http://127.0.0.1:9","inflight":60}]`: {sinkFiles + 120 - sinksFiles, sinkFiles + 120 - sinksFiles},
		`exports.sinks=[{"name":"a","kind":"file","dir":"out"}]`:                              {0, 0},
	} {
		if o, n := of(set); o != own+want[0] || int(n)-int(needed) != want[1] {
			t.Errorf("%s: %d more, %d more of all; want %v", set, o-own, int(n)-int(needed), want)
		}
	}
}

// TestFilesAreShared: with the defaults, a limit of 1024 leaves connections to every use, and all of them fit. Below what is required the
// error names the remedy.
func TestFilesAreShared(t *testing.T) {
	c := testkit.Config(t)
	f := FilesOf(c)
	s, err := f.Share(1024)
	if err != nil {
		t.Fatal(err)
	}
	start := NewStart(c)
	start.LimitFiles(s)
	public, admin := start.Listeners.Public.MaxConns, start.Listeners.Admin.MaxConns
	if used := f.OwnFiles() + public + 2*admin + start.Upstreams + start.Index.Limits.Files; used > 1024 || used < 1024-6 {
		t.Errorf("%d of 1024 files are used", used)
	}
	if public < LeastConns || admin < leastAdminConns || start.Upstreams < leastProxyConns || public > 300 {
		t.Errorf("%+v", s)
	}
	if all, err := f.Share(f.Needed()); err != nil || all.Public != 8192 || all.Admin != 256 || all.Proxy != start.Dispatcher.Upstream+2048 || all.Index != 256 {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := f.Share(f.Required() - 1); err == nil || !strings.Contains(err.Error(), "raise LimitNOFILE (ulimit -n) to ") || !strings.Contains(err.Error(), "permits.storage") {
		t.Error(err)
	}
}
