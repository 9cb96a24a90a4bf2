package rundir

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"macronode/core/digest"
	"macronode/core/words"
)

// Why a key is none, or none to be trusted.
var (
	ErrKey    = errors.New("rundir: no API key: wants mk_, 16 hexadecimal digits, _ and 43 characters")
	ErrNoKey  = errors.New("rundir: no bootstrap.key here")
	ErrShared = errors.New("rundir: bootstrap.key is not its owner's alone: wants a plain file of mode 0600")
)

const (
	keyName   = "bootstrap.key"
	keyPrefix = "mk_"
	idLen     = 16 // hexadecimal digits of 8 bytes
	secretLen = 43 // characters of 32 bytes
	keyLen    = len(keyPrefix) + idLen + 1 + secretLen
)

// A Key is an API key as its holder knows it. Its text is mk_<id>_<secret>; the
// secret may hold an underscore itself, and leaves by Text alone.
type Key struct {
	ID     words.KeyID
	secret string // base64url of 32 bytes
}

// NewKey draws a key.
func NewKey(random io.Reader) (Key, error) {
	var drawn [8 + 32]byte
	if _, err := io.ReadFull(random, drawn[:]); err != nil {
		return Key{}, fmt.Errorf("draw an API key: %w", err)
	}
	id, _ := strconv.ParseUint(hex.EncodeToString(drawn[:8]), 16, 64)
	return Key{words.KeyID(id), base64.RawURLEncoding.EncodeToString(drawn[8:])}, nil
}

// Text is what the holder says. It is a secret.
func (k Key) Text() string { return fmt.Sprintf("%s%016x_%s", keyPrefix, uint64(k.ID), k.secret) }

// String names k without giving it away.
func (k Key) String() string { return fmt.Sprintf("%s%016x_…", keyPrefix, uint64(k.ID)) }

// Hash is what a node remembers of k.
func (k Key) Hash() [32]byte { return digest.Sum([]byte(k.secret)) }

// ParseKey reads what Text wrote, and nothing else.
func ParseKey(text string) (Key, error) {
	if len(text) != keyLen || !strings.HasPrefix(text, keyPrefix) {
		return Key{}, ErrKey
	}
	id, err := strconv.ParseUint(text[len(keyPrefix):len(keyPrefix)+idLen], 16, 64)
	if err != nil {
		return Key{}, ErrKey
	}
	k := Key{words.KeyID(id), text[keyLen-secretLen:]}
	if _, err := base64.RawURLEncoding.Strict().DecodeString(k.secret); err != nil || k.Text() != text {
		return Key{}, ErrKey
	}
	return k, nil
}

// ReadKey reads the bootstrap key of dir: ErrNoKey where there is none, ErrShared
// where others than its owner could know it.
func ReadKey(dir string) (Key, error) {
	path := filepath.Join(dir, keyName)
	is, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Key{}, ErrNoKey
	case err != nil:
		return Key{}, fmt.Errorf("read %s: %w", keyName, err)
	case !is.Mode().IsRegular() || is.Mode().Perm()&0o077 != 0:
		return Key{}, ErrShared
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Key{}, fmt.Errorf("read %s: %w", keyName, err)
	}
	k, err := ParseKey(strings.TrimSuffix(string(text), "\n"))
	if err != nil {
		return Key{}, fmt.Errorf("read %s: %w", keyName, err)
	}
	return k, nil
}

// Bootstrap is the first key of a journal that has none on record: the one in dir,
// which an earlier start left before it could be recorded, or a new one. When it
// returns, file and directory are durable, so the record can follow. A start that
// finds the record does not come here: the file may be gone for good reasons.
func Bootstrap(dir string, random io.Reader) (Key, error) {
	k, err := ReadKey(dir)
	if err == nil {
		return k, syncKey(dir)
	}
	if !errors.Is(err, ErrNoKey) {
		return Key{}, err
	}
	if k, err = NewKey(random); err != nil {
		return Key{}, err
	}
	temp, err := spare(dir, keyName, []byte(k.Text()+"\n"))
	if err != nil {
		return Key{}, err
	}
	// A link refuses to replace; a rename would not.
	err = errors.Join(os.Link(temp, filepath.Join(dir, keyName)), os.Remove(temp))
	if err != nil {
		return Key{}, fmt.Errorf("create %s: %w", keyName, err)
	}
	return k, syncDir(dir)
}

// syncKey makes a key durable that an earlier start may have left half way.
func syncKey(dir string) error {
	f, err := os.Open(filepath.Join(dir, keyName))
	if err != nil {
		return fmt.Errorf("sync %s: %w", keyName, err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", keyName, err)
	}
	return syncDir(dir)
}
