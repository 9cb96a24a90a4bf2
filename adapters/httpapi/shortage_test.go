package httpapi_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"macronode/adapters/fs"
	"macronode/adapters/httpapi"
	"macronode/adapters/objectstore"
	"macronode/chaos/world"
)

// shortDisk is a disk whose files cannot be opened or made while err is set.
type shortDisk struct {
	fs.FS
	err error
}

func (d *shortDisk) Create(name string) (fs.File, error) {
	if d.err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: d.err}
	}
	return d.FS.Create(name)
}

func (d *shortDisk) Open(name string) (fs.File, error) {
	if d.err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: d.err}
	}
	return d.FS.Open(name)
}

// TestTooManyOpenFiles: a request for an object gets 503 while the node has too many open files, and succeeds later.
func TestTooManyOpenFiles(t *testing.T) {
	disk := &shortDisk{FS: world.NewDisk()}
	s := serve(t, build(t), func(c *httpapi.Config) {
		c.Contents = objectstore.New(disk, objectstore.Limits{Uploads: 3, Object: 2 << 20})
	})
	if a := s.send(s.request("POST", "/o", "hello")); a.status != 201 {
		t.Fatal(a.status, a.body)
	}
	at := "/o/" + addressOf("hello")
	disk.err = syscall.EMFILE
	for _, r := range [][3]string{{"GET", at, ""}, {"POST", "/o", "other"}, {"PUT", "/o/" + addressOf(large), large}} {
		a := s.send(s.request(r[0], r[1], r[2]))
		if a.status != 503 || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, `"code":"unavailable"`) || !strings.Contains(a.body, "too many open files") {
			t.Errorf("%s: %d %v %s", r[0], a.status, a.header, a.body)
		}
	}
	disk.err = nil
	if a := s.send(s.request("GET", at, "")); a.status != 200 || a.body != "hello" {
		t.Errorf("later: %d %s", a.status, a.body)
	}
}
