package faults_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"macronode/adapters/provider"
	"macronode/chaos/faults"
	"macronode/core/digest"
	"macronode/core/storage"
)

// objectNode is a node with two providers of objects. Provider a is a directory, provider b is a disk that fails on request.
type objectNode struct {
	*faultyNode
	a, b      string // the directories, below a disk
	providers string // the setting
	made      atomic.Int64
	stored    []string // contents that were acknowledged, without those of clients
}

// newObjectNode starts a node, and stores a few objects.
func newObjectNode(t *testing.T, settings ...string) *objectNode {
	t.Helper()
	n := prepareObjectNode(t)
	n.begin(n.a, filepath.Join(filepath.Dir(n.Data), "disk-b"), settings...)
	return n
}

// prepareObjectNode mounts the disk of provider b.
func prepareObjectNode(t *testing.T) *objectNode {
	t.Helper()
	h := newPlainNode(t)
	n := &objectNode{faultyNode: h}
	n.a = filepath.Join(filepath.Dir(h.Data), "a")
	n.b, h.disk = n.mountProvider("b")
	t.Cleanup(h.killAll) // before the disk is closed
	return n
}

// mountProvider mounts a disk at disk-NAME. It returns the directory below it.
func (n *objectNode) mountProvider(name string) (below string, disk *faults.Disk) {
	n.t.Helper()
	below = filepath.Join(filepath.Dir(n.Data), "below-"+name)
	at := filepath.Join(filepath.Dir(n.Data), "disk-"+name)
	if err := errors.Join(os.Mkdir(below, 0o700), os.Mkdir(at, 0o700)); err != nil {
		n.t.Fatal(err)
	}
	return below, mount(n.t, below, at)
}

// begin starts the node with providers in two directories. The node probes and counts the copies every 50 ms.
func (n *objectNode) begin(a, b string, settings ...string) {
	n.t.Helper()
	n.providers = fmt.Sprintf(`storage.providers=[{"name":"a","path":%q},{"name":"b","path":%q}]`, a, b)
	n.set(append([]string{n.providers, "storage.repair.interval=50ms", "storage.collect_interval=50ms"}, settings...)...)
	n.start()
	n.putObjects(10)
	n.checkObjects()
}

// objectSizes are the sizes of objects: of one group of the hash tree, and of several.
var objectSizes = [...]int{64, 1000, 65536, 65537, 150_000}

// newContent returns the content of another object.
func (n *objectNode) newContent() string {
	i := int(n.made.Add(1))
	line, size := fmt.Sprintf("object %d\n", i), objectSizes[i%len(objectSizes)]
	return strings.Repeat(line, size/len(line)+1)[:size]
}

// objectAddress returns the address of a content, without its prefix: files are named by it.
func objectAddress(content string) string {
	a := storage.Address(digest.Sum([]byte(content)))
	return strings.TrimPrefix(a.String(), "b3:")
}

func (n *objectNode) object(method, content string) answer {
	url, body := n.HTTP+"/o/b3:"+objectAddress(content), ""
	if method == http.MethodPut {
		body = content
	}
	return n.ask(method, url, "", body)
}

// upload sends an object, and again if its connection ends first: an upload that is rejected before its body was read is answered, but a client that
// is still sending may not get to read that.
func (n *objectNode) upload(content string) answer {
	for {
		a := n.object(http.MethodPut, content)
		if !errors.Is(a.err, syscall.ECONNRESET) && !errors.Is(a.err, syscall.EPIPE) {
			return a
		}
	}
}

// put stores an object.
func (n *objectNode) put(content string) error {
	if a := n.object(http.MethodPut, content); a.err != nil || a.status != http.StatusCreated {
		return errors.Join(fmt.Errorf("put of %d bytes: %d %s", len(content), a.status, a.body), a.err)
	}
	return nil
}

// errWrongBytes reports a complete response that is not the object.
var errWrongBytes = errors.New("the response has other bytes than the object")

// get reads an object.
func (n *objectNode) get(content string) error {
	switch a := n.object(http.MethodGet, content); {
	case a.err != nil || a.status != http.StatusOK:
		return errors.Join(fmt.Errorf("get of %d bytes: %d %.200s", len(content), a.status, a.body), a.err)
	case string(a.body) != content:
		return fmt.Errorf("get of %d bytes: %w", len(content), errWrongBytes)
	}
	return nil
}

// putObjects stores new objects.
func (n *objectNode) putObjects(count int) {
	n.t.Helper()
	for range count {
		content := n.newContent()
		if err := n.put(content); err != nil {
			n.t.Fatalf("%v\n%s", err, n.Output())
		}
		n.stored = append(n.stored, content)
	}
}

// checkObjects reads all objects.
func (n *objectNode) checkObjects() {
	n.t.Helper()
	for _, content := range n.stored {
		if err := n.get(content); err != nil {
			n.t.Fatalf("%v\n%s", err, n.Output())
		}
	}
}

// objectClients put and get objects until they are ended.
type objectClients struct {
	node *objectNode
	over chan struct{}
	all  sync.WaitGroup
	errs [2]error
	puts atomic.Int64
}

// clientPuts is how many objects a client puts. Then it only reads.
const clientPuts = 15

func (n *objectNode) beginClients() *objectClients {
	c := &objectClients{node: n, over: make(chan struct{})}
	for i := range c.errs {
		c.all.Go(func() { c.errs[i] = c.run() })
	}
	return c
}

// run puts and gets objects. While provider a is good, no request fails.
func (c *objectClients) run() error {
	var stored []string
	for i := 0; ; i++ {
		select {
		case <-c.over:
			return nil
		default:
		}
		if len(stored) < clientPuts {
			content := c.node.newContent()
			if err := c.node.put(content); err != nil {
				return err
			}
			c.puts.Add(1)
			stored = append(stored, content)
		}
		if err := c.node.get(stored[i*7%len(stored)]); err != nil {
			return err
		}
	}
}

// end ends the clients, and checks that no request failed.
func (c *objectClients) end() {
	c.node.t.Helper()
	close(c.over)
	c.all.Wait()
	if err := errors.Join(c.errs[:]...); err != nil || c.puts.Load() == 0 {
		c.node.t.Fatalf("%d puts: %v\n%s", c.puts.Load(), err, c.node.Output())
	}
}

// isObjectFile reports whether a name is that of a complete file of an object: ADDRESS-NUMBER.
func isObjectFile(name string) bool {
	address, _, ok := strings.Cut(name, "-")
	return ok && len(address) == 64
}

// objectFiles returns the names of the files of objects in a directory.
func objectFiles(dir string) (names []string, err error) {
	all, err := os.ReadDir(dir)
	for _, e := range all {
		if isObjectFile(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// sameCopies returns an error unless both directories have the same files.
func (n *objectNode) sameCopies() error {
	a, errA := objectFiles(n.a)
	b, errB := objectFiles(n.b)
	if err := errors.Join(errA, errB); err != nil || len(a) < len(n.stored) || !slices.Equal(a, b) {
		return errors.Join(fmt.Errorf("%d files, and %d", len(a), len(b)), err)
	}
	for _, name := range a {
		first, errA := os.ReadFile(filepath.Join(n.a, name))
		second, errB := os.ReadFile(filepath.Join(n.b, name))
		if err := errors.Join(errA, errB); err != nil || !bytes.Equal(first, second) {
			return errors.Join(fmt.Errorf("%s differs", name), err)
		}
	}
	return nil
}

// storageStatus is what the node reports about the copies.
type storageStatus struct {
	Providers []struct {
		Name    string `json:"name"`
		Failure string `json:"failure"`
		Errors  uint64 `json:"errors"`
		Missing uint64 `json:"missing_copies"`
		Damaged uint64 `json:"damaged_copies"`
	} `json:"providers"`
	Inventory struct {
		Lacking uint64 `json:"objects_lacking"`
	} `json:"inventory"`
	Scrub struct {
		Running bool   `json:"running"`
		Number  uint64 `json:"finished"`
	} `json:"scrub"`
	Waiting int `json:"repairs_waiting"`
	Running int `json:"repairs_running"`
}

func (n *objectNode) storage(method, path string) (s storageStatus) {
	n.t.Helper()
	a := n.ask(method, n.Admin+path, "", "")
	if err := json.Unmarshal(a.body, &s); err != nil || a.status >= 300 || len(s.Providers) != 2 {
		n.t.Fatalf("%s: %d %s (%v)", path, a.status, a.body, err)
	}
	return s
}

// awaitRepaired waits until every object has two copies, and checks that the node reports it. It reads all objects.
func (n *objectNode) awaitRepaired() {
	n.t.Helper()
	n.awaitCopies()
	n.checkObjects()
}

// awaitCopies is awaitRepaired without reads.
func (n *objectNode) awaitCopies() {
	n.t.Helper()
	n.until("every copy is restored", n.sameCopies)
	n.until("the node reports that no copy is missing", func() error {
		s := n.storage(http.MethodGet, "/storage")
		b := s.Providers[1]
		if b.Failure != "" || b.Missing != 0 || s.Inventory.Lacking != 0 || s.Waiting != 0 || s.Running != 0 {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	n.await(wellness)
	if failed := n.metric("storage_failed_providers"); failed != 0 {
		n.t.Fatalf("%v providers have failed", failed)
	}
}

// awaitDegraded waits until the node is degraded for a reason. Operations go on.
func (n *objectNode) awaitDegraded(why string) {
	n.t.Helper()
	n.until("it is degraded by "+why, func() error {
		if v := n.verbose(); !slices.Contains(v.Ailing, why) || !v.Ready {
			return fmt.Errorf("%+v", v)
		}
		return nil
	})
}

// scrub reads all copies.
func (n *objectNode) scrub() storageStatus {
	n.t.Helper()
	before := n.storage(http.MethodPost, "/storage/scrub").Scrub.Number
	var after storageStatus
	n.until("a scrub ends", func() error {
		if after = n.storage(http.MethodGet, "/storage"); after.Scrub.Number == before || after.Scrub.Running {
			return fmt.Errorf("%+v", after.Scrub)
		}
		return nil
	})
	return after
}

// finish stops the node, and checks that the command verify finds every copy.
func (n *objectNode) finish() {
	n.t.Helper()
	files, err := objectFiles(n.b)
	if err != nil {
		n.t.Fatal(err)
	}
	n.stop()
	out, code := n.command("verify", "--data", n.seen, "--set", n.providers)
	for _, name := range []string{"a", "b"} {
		if want := fmt.Sprintf("provider %s: %d copies intact, 0 missing, 0 damaged", name, len(files)); code != 0 || !strings.Contains(out, want) {
			n.t.Fatalf("verify: exit %d, not %q\n%s", code, want, out)
		}
	}
}

// TestProviderFails: while the disk of a provider fails, uploads and reads go on with the other one, and the node reports what it lacks.
// When the disk recovers, every copy is restored.
func TestProviderFails(t *testing.T) {
	t.Parallel()
	ofObjects := func(c faults.Call) bool { return isObjectFile(c.Name) } // probes succeed
	second := second()
	for _, group := range [][]struct {
		name     string
		troubles []faults.Trouble
		degraded string   // by what; empty: it need not last
		line     []string // of the log
	}{
		{
			{"EIO at a read", []faults.Trouble{{On: []faults.Op{faults.Read}, Err: syscall.EIO}}, "provider_failed", []string{"provider of objects has failed", "provider=b", "input/output error"}},
			{"EIO at a read of an object", []faults.Trouble{{On: []faults.Op{faults.Read}, Of: ofObjects, Err: syscall.EIO}}, "", nil},
			{"EIO at a write", []faults.Trouble{{On: []faults.Op{faults.Write}, Err: syscall.EIO}}, "provider_failed", []string{"provider of objects has failed", "provider=b", "input/output error"}},
			{"EIO at a sync", []faults.Trouble{{On: []faults.Op{faults.Sync}, Err: syscall.EIO}}, "provider_failed", nil},
			{"EIO at a sync, and the bytes are lost", []faults.Trouble{{On: []faults.Op{faults.Sync}, Err: syscall.EIO, Lose: true}}, "provider_failed", nil},
		},
		{
			{"no space at a write", []faults.Trouble{{On: []faults.Op{faults.Write}, Err: syscall.ENOSPC}}, "copies_missing", []string{"copy of an object not restored", "provider=b", "no space left on device"}},
			{"no space at a sync", []faults.Trouble{{On: []faults.Op{faults.Sync}, Err: syscall.ENOSPC}}, "copies_missing", nil},
			{"EIO at a sync of the directory", []faults.Trouble{{On: []faults.Op{faults.SyncDir}, Err: syscall.EIO}}, "provider_failed", nil},
			{"half a write, then EIO", []faults.Trouble{
				{On: []faults.Op{faults.Write}, Of: func(c faults.Call) bool { return c.Name == provider.ProbeName || second(c) }, Err: syscall.EIO},
				{On: []faults.Op{faults.Write}, Half: true}}, "provider_failed", nil},
			{"half of each write", []faults.Trouble{{On: []faults.Op{faults.Write}, Half: true}}, "", nil},
		},
	} {
		t.Run(group[0].name, func(t *testing.T) {
			t.Parallel()
			n := newObjectNode(t)
			for _, c := range group {
				t.Log(c.name)
				clients := n.beginClients()
				var first *faults.Trouble
				for i := range c.troubles {
					if begun := n.disk.Begin(c.troubles[i]); i == 0 {
						first = begun
					}
				}
				n.putObjects(4)
				n.checkObjects()
				<-first.Met()
				if c.degraded != "" {
					n.awaitDegraded(c.degraded)
					n.putObjects(1)
					n.checkObjects()
				}
				if c.line != nil {
					n.awaitLogLine(c.line...)
				}
				n.disk.Heal()
				clients.end()
				n.awaitRepaired()
			}
			if s := n.storage(http.MethodGet, "/storage"); s.Providers[0].Errors != 0 || s.Providers[1].Errors == 0 {
				t.Fatalf("the errors of the providers: %+v", s.Providers)
			}
			n.finish()
		})
	}
}

// TestProviderIsFull: without free space in a provider, uploads go on with the other one.
func TestProviderIsFull(t *testing.T) {
	t.Parallel()
	n := newObjectNode(t)
	clients := n.beginClients()
	n.putObjects(10)
	if n.missingLogLine("copies of objects are missing") == nil { // uploads in progress are not counted
		t.Fatalf("both disks are good, and copies are missing:\n%s", n.Output())
	}
	n.disk.Leave(0)
	n.putObjects(4)
	n.awaitDegraded("copies_missing")
	n.checkObjects()
	if out, code := n.command("storage", "status", "--data", n.seen); code != 0 || !strings.Contains(out, "; full: objectstore: the free space of the disk is reserved: 0 bytes are free, ") || strings.Count(out, "full") != 1 {
		t.Errorf("storage status: exit %d\n%s", code, out)
	}
	n.disk.Honest()
	clients.end()
	n.awaitRepaired()
	n.finish()
}

// TestBothCopiesRequired: if two copies are required, uploads are rejected while one disk fails, and reads go on.
func TestBothCopiesRequired(t *testing.T) {
	t.Parallel()
	n := newObjectNode(t, "storage.copies_required=2")
	n.disk.Begin(faults.Trouble{On: []faults.Op{faults.Write}, Err: syscall.EIO})
	content := n.newContent()
	n.checkAnswer(n.upload(content), http.StatusServiceUnavailable, "unavailable")
	n.awaitDegraded("uploads_refused")
	n.awaitDegraded("provider_failed")
	n.checkAnswer(n.upload(content), http.StatusServiceUnavailable, "unavailable")
	n.checkAnswer(n.object(http.MethodGet, content), http.StatusNotFound, "not_found")
	n.checkObjects()
	n.disk.Heal()
	n.await(wellness)
	n.putObjects(1)
	n.awaitRepaired()
	n.finish()
}

// TestProviderLosesFiles: files that vanish below a provider are restored: those of objects, then all of them.
func TestProviderLosesFiles(t *testing.T) {
	t.Parallel()
	n := newObjectNode(t)
	for _, all := range []bool{false, true} {
		const restored = `repair_copies_total{outcome="restored"}`
		before := n.metric(restored)
		clients := n.beginClients()
		files, err := objectFiles(n.b)
		if err != nil || len(files) < len(n.stored) {
			t.Fatal(files, err)
		}
		if all {
			files = append(files, "provider.id")
		}
		for _, name := range files {
			if err := os.Remove(filepath.Join(n.b, name)); err != nil {
				t.Fatal(err)
			}
		}
		n.checkObjects()
		n.putObjects(2)
		clients.end()
		n.awaitRepaired()
		if now := n.metric(restored); now < before+float64(len(n.stored)-2) {
			t.Fatalf("%v copies are restored, not %d", now-before, len(n.stored))
		}
		n.awaitLogLine("copy of an object restored", "provider=b")
	}
	n.finish()
}

// damage returns the bytes of a damaged file, in one of several ways.
func damage(way int, file []byte) []byte {
	file = bytes.Clone(file)
	switch way % 6 {
	case 0: // a bit of the first byte
		file[0] ^= 1
	case 1: // of the middle
		file[len(file)/2] ^= 0x80
	case 2: // of the last byte, which is one of the hash tree if there are several groups
		file[len(file)-1] ^= 4
	case 3: // half of a write
		file = file[:len(file)/2]
	case 4: // blocks that were never written
		clear(file[len(file)/2:])
	case 5:
		file = append(file, 0)
	}
	return file
}

// damageAll damages every copy of a provider below its disk.
func (n *objectNode) damageAll(dir string, way int) (files int) {
	n.t.Helper()
	names, err := objectFiles(dir)
	for i, name := range names {
		path := filepath.Join(dir, name)
		good, failed := os.ReadFile(path)
		err = errors.Join(err, failed, os.WriteFile(path, damage(way+i, good), 0o600))
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return len(names)
}

// TestProviderDamagesFiles: if bytes change below a provider, reads have the bytes of the other copy, and a read or a scrub has the
// damaged copy replaced.
func TestProviderDamagesFiles(t *testing.T) {
	t.Parallel()
	n := newObjectNode(t)
	for way := range 3 {
		files := n.damageAll(n.b, way)
		if s := n.scrub(); s.Providers[1].Damaged != uint64(files) || s.Providers[0].Damaged != 0 {
			t.Fatalf("%d copies were damaged: %+v", files, s)
		}
		n.awaitLogLine("copies of objects verified", fmt.Sprint("damaged_copies=", files))
		n.awaitRepaired()
		const restored = `repair_copies_total{outcome="restored"}`
		before := n.metric(restored)
		clients := n.beginClients()
		n.damageAll(n.b, way+3)
		n.checkObjects()
		n.until("a read has a copy restored", func() error {
			if n.metric(restored) == before {
				return errors.New("not yet")
			}
			return nil
		})
		clients.end()
		n.scrub()
		n.awaitRepaired()
	}
	n.finish()
}

// TestBothCopiesBad: if no copy of an object can be read, a read fails and never has other bytes. The node reports the object, and
// restores the second copy when there is a good one.
func TestBothCopiesBad(t *testing.T) {
	t.Parallel()
	n := newObjectNode(t)
	lost := n.stored[slices.IndexFunc(n.stored, func(c string) bool { return len(c) == 150_000 })]
	files, err := filepath.Glob(filepath.Join(n.a, objectAddress(lost)+"-*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	good, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	const reported = `repair_copies_total{outcome="lost"}`
	for way := range 3 { // the damage of the first way is in the first group: nothing was sent
		for _, dir := range []string{n.a, n.b} {
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(files[0])), damage(way, good), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before := n.metric(reported)
		if err := n.get(lost); err == nil || errors.Is(err, errWrongBytes) {
			t.Fatalf("a read of a lost object: %v", err)
		}
		n.until("the object is counted as lost", func() error {
			if n.metric(reported) == before {
				return errors.New("not yet")
			}
			return nil
		})
		n.awaitLogLine("object has no good copy", objectAddress(lost))
		trouble := n.disk.Begin(faults.Trouble{On: []faults.Op{faults.Read}, Err: syscall.EIO})
		if err := n.get(lost); err == nil || errors.Is(err, errWrongBytes) {
			t.Fatalf("a read of a lost object: %v", err)
		}
		trouble.End()
		n.until("provider b is used again", func() error { // a scrub does not read a failed one
			if b := n.storage(http.MethodGet, "/storage").Providers[1]; b.Failure != "" {
				return errors.New(b.Failure)
			}
			return nil
		})
		if err := os.WriteFile(files[0], good, 0o600); err != nil {
			t.Fatal(err)
		}
		n.scrub()
		n.awaitRepaired()
	}
	n.finish()
}

// readCounter counts the bytes that are read of objects.
type readCounter struct {
	mu    sync.Mutex
	reads []countedRead
}

type countedRead struct {
	at    time.Time
	bytes int
}

// count is Trouble.Of: it counts a call, and no call fails.
func (r *readCounter) count(c faults.Call) bool {
	if isObjectFile(c.Name) { // a probe reads other files
		r.mu.Lock()
		defer r.mu.Unlock()
		r.reads = append(r.reads, countedRead{time.Now(), c.Size})
	}
	return false
}

// TestRepairBudget: from its begin on, a repair has never read more than storage.repair.rate and .burst allow. Both providers are on
// disks that count. A read reaches the disk after it was granted, so a slow machine never exceeds the bound.
func TestRepairBudget(t *testing.T) {
	t.Parallel()
	const rate, burst = 1 << 20, 128 << 10
	n := prepareObjectNode(t)
	below, disk := n.mountProvider("a")
	n.a = below
	t.Cleanup(n.killAll) // before this disk is closed
	dir := filepath.Dir(n.Data)
	n.begin(filepath.Join(dir, "disk-a"), filepath.Join(dir, "disk-b"), "storage.repair.rate=1MiB", "storage.repair.burst=128KiB")
	n.putObjects(10)
	n.awaitRepaired()
	var counter readCounter
	for _, d := range []*faults.Disk{n.disk, disk} {
		d.Begin(faults.Trouble{On: []faults.Op{faults.Read}, Of: counter.count})
	}
	begin := time.Now()
	files, err := objectFiles(n.a)
	for _, name := range files {
		err = errors.Join(err, os.Remove(filepath.Join(n.a, name)))
	}
	if err != nil {
		t.Fatal(err)
	}
	n.awaitCopies()
	n.disk.Heal()
	disk.Heal()
	size := 0
	for _, content := range n.stored {
		size += len(content)
	}
	total := 0
	counter.mu.Lock()
	defer counter.mu.Unlock()
	for _, r := range counter.reads {
		total += r.bytes
		if allowed := rate*r.at.Sub(begin).Seconds() + burst; float64(total) > allowed {
			t.Fatalf("%d bytes were read after %v: the budget allows %.0f", total, r.at.Sub(begin), allowed)
		}
	}
	if total < 2*size { // it reads the good copy, and the one that it wrote
		t.Fatalf("a repair of %d bytes has read %d", size, total)
	}
	n.checkObjects()
	n.finish()
}
