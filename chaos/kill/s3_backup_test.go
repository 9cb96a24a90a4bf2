package kill_test

import (
	"sync"
	"testing"
)

// collectInterval lets a backup copy the objects of a frame now and then before their files are removed: the clients
// replace all objects several times in a second.
const collectInterval = "1s"

// TestBackupsOfS3Objects copies a running node again and again while clients write keys that have a price. Each backup,
// restored, has the objects of one moment during the copy: they are listed and readable, and their prices are paid.
func TestBackupsOfS3Objects(t *testing.T) {
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	n, h, copied := newPaidNode(t, binary, t.TempDir(), collectInterval), newKeyHistory(), t.TempDir()
	all := newS3Clients(t, n, h, 4)
	n.issue(t, 3000)
	errs := make(chan error, len(all))
	var running sync.WaitGroup
	for _, c := range all {
		running.Go(func() { errs <- c.run(t.Context()) })
	}
	total, backups := 0, 1+max(1, *kills/20)
	for range backups {
		awaitFolded(t, &n.Node, folded(t, &n.Node)+100)
		began := h.now()
		var backup struct {
			Objects struct {
				Objects    int `json:"objects"`
				Unreadable int `json:"unreadable"`
			} `json:"objects"`
		}
		run(t, &backup, binary, "--json", "backup", copied, "--data", n.Data)
		found := checkRestored(t, binary, copied, n, h, len(all), began)
		if backup.Objects.Unreadable > 0 || backup.Objects.Objects < len(found)/2 {
			t.Fatalf("%+v with %v", backup, found)
		}
		total += len(found)
	}
	n.Kill()
	running.Wait()
	for range all {
		if err := <-errs; err != nil {
			t.Fatalf("%v\n%s", err, n.Output())
		}
	}
	if total < 5 {
		t.Fatalf("%d objects were copied: no load", total)
	}
	t.Logf("%d objects in %d backups, %d writes", total, backups, len(h.all))
}

// checkRestored restores a backup that was made since a time, and compares it with the writes. It returns the ETags.
func checkRestored(t *testing.T, binary, copied string, source *paidNode, h *keyHistory, clients int, began uint64) map[string]string {
	t.Helper()
	ended, data := h.now(), t.TempDir()
	var restored struct{ Done bool }
	run(t, &restored, binary, "--json", "restore", copied, "--source-data", source.Data, "--data", data)
	var verified struct{ OK bool }
	run(t, &verified, binary, "--json", "verify", "--data", data)
	if !restored.Done || !verified.OK {
		t.Fatalf("%+v, %+v", restored, verified)
	}
	n := newPaidNode(t, binary, data, collectInterval)
	n.issued = source.issued
	reader := newS3Client(clients, &n.credential, h)
	defer reader.http.CloseIdleConnections()
	keys := allKeys(clients)
	found := readObjects(t, reader, keys)
	for _, key := range keys {
		if err := h.check(key, found[key], began, ended); err != nil {
			t.Fatal(err)
		}
	}
	holds, revenue := n.checkMoney(t, clients) // each client has at most one open request
	if output, code := n.Stop(); code != 0 {
		t.Fatalf("exit %d:\n%s", code, output)
	}
	checkJournal(t, n, found, holds, revenue)
	return found
}
