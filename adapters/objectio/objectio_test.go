package objectio_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"macronode/adapters/fs"
	"macronode/adapters/objectio"
	"macronode/adapters/objectstore"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/storage"
)

func open(t *testing.T, l objectstore.Limits) (*objectstore.Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "objects")
	dir, err := fs.Make(path)
	if err != nil {
		t.Fatal(err)
	}
	return objectstore.New(dir, l), path
}

// upload stores content and returns its address and its row.
func upload(t *testing.T, s *objectstore.Store, content string) (storage.Address, storage.Object) {
	t.Helper()
	up, err := s.Begin(1)
	if err != nil {
		t.Fatal(err)
	}
	defer up.Done()
	var seen bytes.Buffer
	if err := objectio.Receive(up, strings.NewReader(content), uint64(len(content)), &seen); err != nil || seen.String() != content {
		t.Fatalf("received %d bytes: %v", seen.Len(), err)
	}
	a, err := up.Sum()
	if err = errors.Join(err, up.Store(a)); err != nil {
		t.Fatal(err)
	}
	return a, storage.Object{Size: up.Size(), File: up.File()}
}

func TestReceiveStopsAtLimit(t *testing.T) {
	s, _ := open(t, objectstore.Limits{Uploads: 4, Object: 200_000})
	broken := errors.New("broken")
	for name, want := range map[string]struct {
		body  io.Reader
		limit uint64
		err   error
	}{
		"at the limit":      {strings.NewReader("12345"), 5, nil},
		"above the limit":   {strings.NewReader("123456"), 5, objectio.ErrLimit},
		"a broken body":     {io.MultiReader(strings.NewReader("123"), iotest.ErrReader(broken)), 5, broken},
		"an object too big": {strings.NewReader(strings.Repeat("x", 200_001)), 1 << 20, objectstore.ErrTooLong},
	} {
		up, err := s.Begin(1)
		if err != nil {
			t.Fatal(err)
		}
		err = objectio.Receive(up, want.body, want.limit)
		up.Done()
		if !errors.Is(err, want.err) {
			t.Errorf("%s: %v, want %v", name, err, want.err)
		}
		if _, is := errors.AsType[*objectio.WriteError](err); is != errors.Is(want.err, objectstore.ErrTooLong) {
			t.Errorf("%s: %T", name, err)
		}
	}
}

// TestReceiveOfWholeGroups: a body that ends after its last byte, and not with it, has the same address.
func TestReceiveOfWholeGroups(t *testing.T) {
	for groups := range 3 {
		s, _ := open(t, objectstore.Limits{Uploads: 4, Object: 1 << 20})
		content := strings.Repeat("x", groups*digest.Group)
		a, row := upload(t, s, content)
		if a != storage.Address(digest.Sum([]byte(content))) || row.Size != uint64(len(content)) {
			t.Errorf("%d groups: address %v of %d bytes", groups, a, row.Size)
		}
	}
}

func TestDiskProblemNamesFullDisk(t *testing.T) {
	for _, want := range []struct {
		err  error
		p    event.Problem
		full bool
	}{{objectstore.ErrTooLong, event.PayloadTooLarge, false}, {objectstore.ErrNoSpace, event.Unavailable, true}, {io.ErrClosedPipe, event.Unavailable, false}} {
		if p, full := objectio.DiskProblem(want.err); p != want.p || full != want.full {
			t.Errorf("%v: %v, %v", want.err, p, full)
		}
	}
}

func TestCheckIntactFindsDamage(t *testing.T) {
	s, path := open(t, objectstore.Limits{Uploads: 4, Object: 1 << 20})
	a, row := upload(t, s, "some content")
	if err := objectio.CheckIntact(context.Background(), s, a, row); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := objectio.CheckIntact(ended, s, a, row); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that ended: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(path, "*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.WriteFile(files[0], []byte("SOME content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := objectio.CheckIntact(context.Background(), s, a, row); !errors.Is(err, objectstore.ErrDamaged) {
		t.Errorf("a damaged file: %v", err)
	}
}

// TestOpenFollowsRow: an object that was put again while it was looked up has another file.
func TestOpenFollowsRow(t *testing.T) {
	s, _ := open(t, objectstore.Limits{Uploads: 4, Object: 1 << 20})
	a, row := upload(t, s, "some content")
	old, lost := storage.Object{Size: row.Size, File: 99}, storage.Object{Size: row.Size, File: 98}
	for name, want := range map[string]struct {
		row, again storage.Object
		held       bool
		err        error
	}{
		"as it was":         {row, row, true, nil},
		"put again":         {old, row, true, nil},
		"deleted":           {old, old, false, objectio.ErrNoObject},
		"lost":              {old, old, true, objectstore.ErrGone},
		"replaced for good": {old, lost, true, objectio.ErrMoving},
	} {
		calls := 0
		content, err := objectio.Open(s, a, want.row, func() (storage.Object, bool) {
			if calls++; calls > 1 {
				return storage.Object{File: 97}, want.held
			}
			return want.again, want.held
		})
		if !errors.Is(err, want.err) {
			t.Errorf("%s: %v, want %v", name, err, want.err)
		}
		if err == nil {
			content.Close()
		}
	}
}

func TestParseRange(t *testing.T) {
	const end = 1<<64 - 1
	for text, want := range map[string]struct {
		first, last uint64
		ok          bool
	}{
		"bytes=0-0": {0, 0, true}, "bytes=5-": {5, end, true}, "bytes=-3": {7, end, true}, "bytes=-30": {0, end, true}, "bytes=-0": {10, 10, true},
		"BYTES= 1-2": {1, 2, true}, "bytes=2-1": {}, "bytes=0-1,3-4": {}, "bytes=": {}, "bytes=-": {}, "x=0-1": {}, "bytes 0-1": {},
		"bytes=99999999999999999999-": {end, end, true},
	} {
		if first, last, ok := objectio.ParseRange(text, 10); first != want.first || last != want.last || ok != want.ok {
			t.Errorf("%s: %d, %d, %v", text, first, last, ok)
		}
	}
}

func TestRequestedRange(t *testing.T) {
	current := func(tag string) bool { return tag == "current" }
	for _, want := range []struct {
		header map[string][]string
		r      objectio.Range
		err    error
		value  string
	}{
		{nil, objectio.Range{Length: 10}, nil, ""},
		{map[string][]string{"Range": {"bytes=2-3"}}, objectio.Range{Off: 2, Length: 2, Partial: true}, nil, "bytes 2-3/10"},
		{map[string][]string{"Range": {"bytes=2-30"}}, objectio.Range{Off: 2, Length: 8, Partial: true}, nil, "bytes 2-9/10"},
		{map[string][]string{"Range": {"bytes=2-3"}, "If-Range": {"current"}}, objectio.Range{Off: 2, Length: 2, Partial: true}, nil, "bytes 2-3/10"},
		{map[string][]string{"Range": {"bytes=2-3"}, "If-Range": {"old"}}, objectio.Range{Length: 10}, nil, ""},
		{map[string][]string{"Range": {"bytes=2-3", "bytes=4-5"}}, objectio.Range{Length: 10}, nil, ""},
		{map[string][]string{"Range": {"bytes=10-"}}, objectio.Range{}, objectio.ErrRange, ""},
		{map[string][]string{"Range": {"bytes=-0"}}, objectio.Range{}, objectio.ErrRange, ""},
	} {
		r, err := objectio.RequestedRange(want.header, 10, current)
		if r != want.r || !errors.Is(err, want.err) {
			t.Errorf("%v: %v, %v", want.header, r, err)
		}
		if r.Partial && r.ContentRange(10) != want.value {
			t.Errorf("%v: %s", want.header, r.ContentRange(10))
		}
	}
}
