package nodedir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/digest"
	"macronode/core/types"
)

func draw(seed byte) *bytes.Reader { return bytes.NewReader(bytes.Repeat([]byte{seed}, 40)) }

func TestKeyText(t *testing.T) {
	k, err := NewKey(draw(0xfb))
	if err != nil {
		t.Fatal(err)
	}
	const secret = "-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_s"
	if k.Text() != "mk_fbfbfbfbfbfbfbfb_"+secret || uint64(k.ID) != 0xfbfbfbfbfbfbfbfb {
		t.Fatal(k.Text())
	}
	if k.Hash() != digest.Sum([]byte(secret)) {
		t.Fatal("the hash is not that of the secret's text")
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("made", "key", k)
	slog.New(slog.NewTextHandler(&log, nil)).Info("made", "key", k)
	if reported := fmt.Sprintf("%v %s %+v", k, k, k) + log.String(); strings.Contains(reported, secret) {
		t.Fatal("printed: ", reported)
	}
	for _, random := range []io.Reader{strings.NewReader("too little"), draw(0)} {
		if k, err := NewKey(random); err == nil || k != (Key{}) {
			t.Fatal("drawn from too little: ", k)
		}
	}
}

func TestKeysRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := append([]byte{rapid.ByteMin(1).Draw(t, "id")}, rapid.SliceOfN(rapid.Byte(), 39, 39).Draw(t, "random")...)
		k, err := NewKey(bytes.NewReader(random))
		if err != nil {
			t.Fatal(err)
		}
		if back, err := ParseKey(k.Text()); err != nil || back != k {
			t.Fatal(back, err)
		}
	})
}

// TestParseKeyAcceptsOneText: a key has exactly one text.
func TestParseKeyAcceptsOneText(t *testing.T) {
	k, _ := NewKey(draw(0xab))
	good := k.Text()
	for _, text := range []string{
		"", "mk_", good[:len(good)-1], good + "A", " " + good, "xx" + good[2:],
		strings.ToUpper(good[:19]) + good[19:], // MK_
		"mk_ABABABABABABABAB" + good[19:],      // upper-case digits
		"mk_+bababababababab" + good[19:],      // a sign
		"mk_gbababababababab" + good[19:],      // not a digit
		good[:19] + "-" + good[20:],            // no underscore
		good[:len(good)-1] + "t",               // bits beyond the 32nd byte
		good[:len(good)-1] + "=",               // padding
		good[:len(good)-1] + "+",               // the other alphabet
		"mk_0000000000000000" + good[19:],      // reserved for the node itself
	} {
		if k, err := ParseKey(text); !errors.Is(err, ErrKey) {
			t.Errorf("%q is %v, %v", text, k, err)
		}
	}
}

func TestBootstrapReturnsSameKey(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadKey(dir); !errors.Is(err, ErrNoKey) {
		t.Fatal(err)
	}
	made, err := Bootstrap(dir, draw(1))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "bootstrap.key")
	if text, err := os.ReadFile(path); err != nil || string(text) != made.Text()+"\n" {
		t.Fatal(string(text), err)
	}
	if m := mode(t, path); m != 0o600 {
		t.Fatal(m)
	}
	if left := names(t, dir); len(left) != 1 {
		t.Fatal("left behind: ", left)
	}
	// The node stopped before the record: the next start uses the same key.
	for range 2 {
		if adopted, err := Bootstrap(dir, draw(2)); err != nil || adopted != made {
			t.Fatal(adopted, err)
		}
	}
	if read, err := ReadKey(dir); err != nil || read != made {
		t.Fatal(read, err)
	}
}

// A start that stops between writing and linking leaves a temporary file that is never used.
func TestUnlinkedKeyIsNotUsed(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bootstrap.key.new"), []byte("mk_0000"), 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := Bootstrap(dir, draw(3))
	if want, _ := NewKey(draw(3)); err != nil || made != want {
		t.Fatal(made, err)
	}
	if left := names(t, dir); len(left) != 1 {
		t.Fatal("left behind: ", left)
	}
}

// An untrusted or invalid file is never replaced.
func TestBootstrapKeepsInvalidFile(t *testing.T) {
	k, _ := NewKey(draw(4))
	for name, c := range map[string]struct {
		lay  func(path string) error
		want error
	}{
		"rubbish":  {func(p string) error { return os.WriteFile(p, []byte("rubbish"), 0o600) }, ErrKey},
		"empty":    {func(p string) error { return os.WriteFile(p, nil, 0o600) }, ErrKey},
		"readable": {func(p string) error { return errors.Join(os.WriteFile(p, []byte(k.Text()), 0o600), os.Chmod(p, 0o640)) }, ErrShared},
		"a link": {func(p string) error {
			return errors.Join(os.WriteFile(p+".else", []byte(k.Text()), 0o600), os.Symlink(p+".else", p))
		}, ErrShared},
		"a directory": {func(p string) error { return os.Mkdir(p, 0o700) }, ErrShared},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := c.lay(filepath.Join(dir, "bootstrap.key")); err != nil {
				t.Fatal(err)
			}
			before := mode(t, filepath.Join(dir, "bootstrap.key"))
			if got, err := Bootstrap(dir, draw(5)); !errors.Is(err, c.want) {
				t.Fatal(got, err)
			}
			if after := mode(t, filepath.Join(dir, "bootstrap.key")); after != before {
				t.Fatalf("was %v, is %v", before, after)
			}
		})
	}
}

// meanwhile is a random source that runs a function when it is read.
type meanwhile func() error

func (m meanwhile) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte{9}, len(p))), m() }

func TestBootstrapIsExclusive(t *testing.T) {
	dir := t.TempDir()
	other, _ := NewKey(draw(6))
	_, err := Bootstrap(dir, meanwhile(func() error {
		return os.WriteFile(filepath.Join(dir, "bootstrap.key"), []byte(other.Text()), 0o600)
	}))
	if !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	if k, err := ReadKey(dir); err != nil || k != other {
		t.Fatal(k, err)
	}
	if left := names(t, dir); len(left) != 1 {
		t.Fatal("left behind: ", left)
	}
}

// TestRecoverKeepsOldKey: the new key in its place, the old one beside it.
func TestRecoverKeepsOldKey(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "bootstrap.key")
	was, err := Bootstrap(dir, draw(1))
	if err != nil {
		t.Fatal(err)
	}
	for seed := byte(2); seed < 4; seed++ {
		made, err := Recover(dir, draw(seed))
		if want, _ := NewKey(draw(seed)); err != nil || made != want {
			t.Fatal(made, err)
		}
		if read, err := ReadKey(dir); err != nil || read != made || mode(t, path) != 0o600 {
			t.Fatal(read, err)
		}
		if text, err := os.ReadFile(path + ".old"); err != nil || string(text) != was.Text()+"\n" || mode(t, path+".old") != 0o600 {
			t.Fatal(string(text), err)
		}
		if left := names(t, dir); len(left) != 2 {
			t.Fatal("left behind: ", left)
		}
		was = made
	}
}

// TestRecoverFromAnyState: whatever is in place of the key, or left halfway.
func TestRecoverFromAnyState(t *testing.T) {
	write := func(path string) error { return os.WriteFile(path, []byte("rubbish"), 0o644) }
	for name, c := range map[string]struct {
		lay  func(path string) error
		left int
	}{
		"an empty directory":                {func(string) error { return nil }, 1},
		"rubbish":                           {write, 2},
		"a link":                            {func(p string) error { return errors.Join(write(p+".else"), os.Symlink(p+".else", p)) }, 3},
		"a directory":                       {func(p string) error { return os.Mkdir(p, 0o700) }, 2},
		"died before the old one was moved": {func(p string) error { return errors.Join(write(p), write(p+".new")) }, 2},
		"died before the new one stood":     {func(p string) error { return errors.Join(write(p+".old"), write(p+".new")) }, 2},
		"died before the spare was gone":    {func(p string) error { return errors.Join(write(p+".old"), write(p), write(p+".new")) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "bootstrap.key")
			if err := c.lay(path); err != nil {
				t.Fatal(err)
			}
			made, err := Recover(dir, draw(7))
			if read, also := ReadKey(dir); err != nil || also != nil || read != made {
				t.Fatal(made, read, err, also)
			}
			if left := names(t, dir); len(left) != c.left {
				t.Fatal(left)
			}
			if text, err := os.ReadFile(path + ".else"); err == nil && string(text) != "rubbish" {
				t.Fatalf("written through a link: %q", text)
			}
		})
	}
}

// TestFailedRecoverKeepsReadableKey changes nothing that can be read.
func TestFailedRecoverKeepsReadableKey(t *testing.T) {
	dir := t.TempDir()
	was, err := Bootstrap(dir, draw(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Recover(dir, strings.NewReader("too little")); err == nil {
		t.Fatal("drawn from too little")
	}
	if err := os.MkdirAll(filepath.Join(dir, "bootstrap.key.old", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if k, err := Recover(dir, draw(2)); err == nil || k != (Key{}) {
		t.Fatal("the old one could not be moved: ", k)
	}
	if read, err := ReadKey(dir); err != nil || read != was || len(names(t, dir)) != 2 {
		t.Fatal(read, err, names(t, dir))
	}
}

// TestOwedInEveryState covers every state of the file and the journal.
func TestOwedInEveryState(t *testing.T) {
	there, _ := NewKey(draw(3))
	drawn, _ := NewKey(draw(4))
	lay := func(k Key) func(dir string) error {
		return func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "bootstrap.key"), []byte(k.Text()+"\n"), 0o600)
		}
	}
	none := func(string) error { return nil }
	rubbish := func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "bootstrap.key"), []byte("rubbish"), 0o600)
	}
	for name, c := range map[string]struct {
		lay                 func(dir string) error
		bootstrapped, known bool
		owed                Key
		err                 error
	}{
		"a first start":                                   {none, false, false, drawn, nil},
		"a start that died before the record":             {lay(there), false, false, there, nil},
		"any other start":                                 {lay(there), true, true, Key{}, nil},
		"a key that was recovered":                        {lay(there), true, false, there, nil},
		"a file that is gone":                             {none, true, false, Key{}, ErrNoKey},
		"a key that a restore has revoked":                {lay(there), false, true, Key{}, ErrSpent},
		"rubbish before the record":                       {rubbish, false, false, Key{}, ErrKey},
		"an invalid file, and a valid key in the journal": {rubbish, true, true, Key{}, ErrKey},
	} {
		dir := t.TempDir()
		if err := c.lay(dir); err != nil {
			t.Fatal(err)
		}
		before := len(names(t, dir))
		k, owed, err := Owed(dir, draw(4), c.bootstrapped, func(id types.KeyID) bool { return c.known && id == there.ID })
		if owed != (c.owed != Key{}) || owed && k != c.owed || !errors.Is(err, c.err) || err != nil && c.err == nil {
			t.Errorf("%s: %v %v %v", name, k, owed, err)
		}
		if read, err := ReadKey(dir); owed && (err != nil || read != k) {
			t.Errorf("%s: owed, and not there: %v %v", name, read, err)
		}
		if after := len(names(t, dir)); !owed && after != before {
			t.Errorf("%s: left behind %v", name, names(t, dir))
		}
	}
}

// TestRecoveredKeyIsOwedOnce: after it is recorded, it is known.
func TestRecoveredKeyIsOwedOnce(t *testing.T) {
	dir := t.TempDir()
	var journal []types.KeyID
	known := func(id types.KeyID) bool { return slices.Contains(journal, id) }
	start := func(seed byte, want bool) {
		t.Helper()
		k, owed, err := Owed(dir, draw(seed), len(journal) > 0, known)
		if err != nil || owed != want {
			t.Fatal(k, owed, err)
		}
		if owed {
			journal = append(journal, k.ID)
		}
	}
	start(1, true)
	start(2, false)
	made, err := Recover(dir, draw(3))
	if err != nil {
		t.Fatal(err)
	}
	start(4, true)
	start(5, false)
	if len(journal) != 2 || journal[1] != made.ID {
		t.Fatal(journal, made)
	}
}
