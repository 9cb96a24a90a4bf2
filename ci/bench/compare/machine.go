package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"macronode/ci/bench/cluster"
	"macronode/ci/bench/sheet"
)

// facts returns the machine, the versions and the settings that affect the numbers.
func (b *bench) facts(ctx context.Context) ([]sheet.Fact, error) {
	disk, err := fileSystem(b.work)
	if err != nil {
		return nil, err
	}
	all := []sheet.Fact{
		{What: "machine", Is: fmt.Sprintf("%d cores, %s, %s", runtime.NumCPU(), field("/proc/cpuinfo", "model name"), memory())},
		{What: "system", Is: "Linux " + line(ctx, "uname", "-r") + ", " + disk + ", " + field("/etc/os-release", "PRETTY_NAME")},
		{What: "macronode", Is: revision(ctx)},
		{What: "Go", Is: runtime.Version() + ", garbage collector with default settings"},
	}
	all = append(all, postgresFacts(ctx)...)
	for _, p := range [...]struct{ what, name, arg string }{{"nginx", "nginx", "-v"}, {"HAProxy", "haproxy", "-v"}, {"Caddy", "caddy", "version"}} {
		if out, err := exec.CommandContext(ctx, p.name, p.arg).CombinedOutput(); err == nil {
			reply, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
			all = append(all, sheet.Fact{What: p.what, Is: reply})
		}
	}
	for _, m := range [...]struct{ what, program, module string }{
		{"pgx", "pgservice", "github.com/jackc/pgx/v5"}, {"pebble", "probe", "github.com/cockroachdb/pebble/v2"},
		{"x/time/rate", "reverse", "golang.org/x/time"}} {
		v, err := b.version(m.program, m.module)
		if err != nil {
			return nil, err
		}
		all = append(all, sheet.Fact{What: m.what, Is: m.module + " " + v})
	}
	return append(all, b.turns()), nil
}

// turns returns the rounds and their times.
func (b *bench) turns() sheet.Fact {
	return sheet.Fact{What: "this run", Is: fmt.Sprintf("rounds: %d; each turn %v, after %v that are not counted", b.rounds, b.time, b.warm)}
}

// postgresFacts returns the version and the settings of PostgreSQL, if it is there.
func postgresFacts(ctx context.Context) []sheet.Fact {
	bin, err := cluster.Find()
	if err != nil {
		return nil
	}
	return []sheet.Fact{{What: "PostgreSQL", Is: line(ctx, filepath.Join(bin, "postgres"), "--version") +
		"; fsync, synchronous_commit and full_page_writes on by default; changed from the defaults: " + strings.Join(settings, ", ")}}
}

// hostFacts returns the machine, its system, and the version of macronode with that of Go.
func (b *bench) hostFacts(ctx context.Context) ([]sheet.Fact, error) {
	disk, err := fileSystem(b.work)
	if err != nil {
		return nil, err
	}
	return []sheet.Fact{
		{What: "machine", Is: fmt.Sprintf("%d cores, %s, %s", runtime.NumCPU(), field("/proc/cpuinfo", "model name"), memory())},
		{What: "system", Is: "Linux " + line(ctx, "uname", "-r") + ", " + disk + ", " + field("/etc/os-release", "PRETTY_NAME")},
		{What: "macronode", Is: revision(ctx) + ", " + runtime.Version()},
	}, nil
}

// fileSystem returns the file system of dir. In memory a sync does nothing, so the numbers would
// be wrong.
func fileSystem(dir string) (string, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return "", fmt.Errorf("file system of %s: %w", dir, err)
	}
	switch st.Type {
	case 0x01021994, 0x858458f6:
		return "", fmt.Errorf("%s is in memory, where a sync does nothing: set TMPDIR to a directory on a disk", dir)
	case 0xEF53:
		return "ext4", nil
	case 0x58465342:
		return "xfs", nil
	case 0x9123683E:
		return "btrfs", nil
	case 0x794c7630:
		return "overlayfs", nil
	}
	return fmt.Sprintf("file system %#x", st.Type), nil
}

// field returns the value of the first line of a file with a given name.
func field(file, name string) string {
	raw, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	for l := range strings.Lines(string(raw)) {
		if at := strings.IndexAny(l, ":="); at > 0 && strings.TrimSpace(l[:at]) == name {
			return strings.Trim(strings.TrimSpace(l[at+1:]), `"`)
		}
	}
	return "unknown"
}

func memory() string {
	var kib int64
	if _, err := fmt.Sscan(field("/proc/meminfo", "MemTotal"), &kib); err != nil {
		return "memory unknown"
	}
	return fmt.Sprintf("%.0f GiB", float64(kib)/(1<<20))
}

// line returns the first line of a command's output, or "unknown".
func line(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func revision(ctx context.Context) string {
	at := line(ctx, "git", "rev-parse", "--short=12", "HEAD")
	if line(ctx, "git", "status", "--porcelain", "--untracked-files=no") != "" {
		return at + ", with changes"
	}
	return at
}

// version returns the version of a module in a program.
func (b *bench) version(program, module string) (string, error) {
	is, err := buildinfo.ReadFile(b.binary(program))
	if err != nil {
		return "", fmt.Errorf("version of %s: %w", module, err)
	}
	for _, d := range is.Deps {
		if d.Path == module {
			return d.Version, nil
		}
	}
	return "", fmt.Errorf("%s is built without %s", program, module)
}
