package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/digest"
)

func draw(seed byte) *bytes.Reader { return bytes.NewReader(bytes.Repeat([]byte{seed}, 40)) }

func TestAKeyHasItsForm(t *testing.T) {
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
	if said := fmt.Sprintf("%v %s %+v", k, k, k) + log.String(); strings.Contains(said, secret) {
		t.Fatal("printed: ", said)
	}
	if _, err := NewKey(strings.NewReader("too little")); err == nil {
		t.Fatal("drawn from too little")
	}
}

func TestKeysReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rapid.SliceOfN(rapid.Byte(), 40, 40).Draw(t, "random")
		k, err := NewKey(bytes.NewReader(random))
		if err != nil {
			t.Fatal(err)
		}
		if back, err := ParseKey(k.Text()); err != nil || back != k {
			t.Fatal(back, err)
		}
	})
}

// A key has one text: whatever else there is beside it is none.
func TestWhatIsNoKey(t *testing.T) {
	k, _ := NewKey(draw(0xab))
	good := k.Text()
	for _, text := range []string{
		"", "mk_", good[:len(good)-1], good + "A", " " + good, "xx" + good[2:],
		strings.ToUpper(good[:19]) + good[19:], // MK_
		"mk_ABABABABABABABAB" + good[19:],      // digits in capitals
		"mk_+bababababababab" + good[19:],      // a sign
		"mk_gbababababababab" + good[19:],      // no digit
		good[:19] + "-" + good[20:],            // no underscore
		good[:len(good)-1] + "t",               // bits beyond the 32nd byte
		good[:len(good)-1] + "=",               // padding
		good[:len(good)-1] + "+",               // the other alphabet
	} {
		if k, err := ParseKey(text); !errors.Is(err, ErrKey) {
			t.Errorf("%q is %v, %v", text, k, err)
		}
	}
}

func TestBootstrapMakesOneKeyForEver(t *testing.T) {
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
	// The node died before the record: the next start adopts, and draws nothing.
	for range 2 {
		if adopted, err := Bootstrap(dir, draw(2)); err != nil || adopted != made {
			t.Fatal(adopted, err)
		}
	}
	if read, err := ReadKey(dir); err != nil || read != made {
		t.Fatal(read, err)
	}
}

// A start that dies between writing and linking leaves a spare that is never a key.
func TestAHalfMadeKeyIsNotAdopted(t *testing.T) {
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

// What is there and no trustworthy key stays there: nothing replaces it.
func TestBootstrapReplacesNothing(t *testing.T) {
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

// meanwhile is chance that lays something down while it is drawn from.
type meanwhile func() error

func (m meanwhile) Read(p []byte) (int, error) { return len(p), m() }

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
