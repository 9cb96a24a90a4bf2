package nodedir

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"macronode/core/digest"
	"macronode/core/types"
)

// Why a key is none, or none to be trusted.
var (
	ErrKey    = errors.New("nodedir: no API key: wants mk_, 16 hexadecimal digits, _ and 43 characters")
	ErrNoKey  = errors.New("nodedir: no bootstrap.key here")
	ErrShared = errors.New("nodedir: bootstrap.key is not its owner's alone: wants a plain file of mode 0600")
	ErrSpent  = errors.New("nodedir: the key of bootstrap.key was revoked: keys recover makes another")
	errNobody = errors.New("chance gave the id of nobody")
)

const (
	keyName   = "bootstrap.key"
	oldName   = "bootstrap.key.old" // what Recover found in its place
	keyPrefix = "mk_"
	idLen     = 16 // hexadecimal digits of 8 bytes
	secretLen = 43 // characters of 32 bytes
	keyLen    = len(keyPrefix) + idLen + 1 + secretLen
)

// A Key is an API key as its holder knows it. Its text is mk_<id>_<secret>; the
// secret may hold an underscore itself, and leaves by Text alone. No key has the ID 0:
// that is how the node calls itself.
type Key struct {
	ID     types.KeyID
	secret string // base64url of 32 bytes
}

// NewKey draws a key.
func NewKey(random io.Reader) (Key, error) {
	var drawn [8 + 32]byte
	if _, err := io.ReadFull(random, drawn[:]); err != nil {
		return Key{}, fmt.Errorf("draw an API key: %w", err)
	}
	id := binary.BigEndian.Uint64(drawn[:8])
	if id == 0 {
		return Key{}, fmt.Errorf("draw an API key: %w", errNobody)
	}
	return Key{types.KeyID(id), base64.RawURLEncoding.EncodeToString(drawn[8:])}, nil
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
	if err != nil || id == 0 {
		return Key{}, ErrKey
	}
	k := Key{types.KeyID(id), text[keyLen-secretLen:]}
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
	return writeKey(dir, random, func() error { return nil })
}

// Recover is Bootstrap for who has lost the key, or lost trust in it: a new one stands
// in bootstrap.key when it returns, durable, and what stood there in bootstrap.key.old.
// No node runs in dir, and none may start: the caller holds its lock. The next start
// makes the key known, in the place of the first one on record: until then, that one
// is good. Where it fails half way there may be no bootstrap.key; it is done again then.
func Recover(dir string, random io.Reader) (Key, error) {
	return writeKey(dir, random, func() error {
		err := os.Rename(filepath.Join(dir, keyName), filepath.Join(dir, oldName))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// writeKey draws a key and leaves it in dir, where none is once room was made.
func writeKey(dir string, random io.Reader, makeRoom func() error) (Key, error) {
	k, err := NewKey(random)
	if err != nil {
		return Key{}, err
	}
	temp, err := spare(dir, keyName, []byte(k.Text()+"\n"))
	if err != nil {
		return Key{}, err
	}
	if err = makeRoom(); err == nil {
		err = os.Link(temp, filepath.Join(dir, keyName)) // it refuses to replace; a rename would not
	}
	if err = errors.Join(err, os.Remove(temp)); err != nil {
		return Key{}, fmt.Errorf("create %s: %w", keyName, err)
	}
	return k, syncDir(dir)
}

// Owed is the key of dir that a journal shall know and does not: one that an earlier
// start, or Recover, left before it could be recorded, or a new one where neither dir
// nor the journal has any. It is durable, so the record can follow; where the journal is
// bootstrapped, which is to have a first key that is not revoked, the new one comes
// instead. Known looks for a key in the journal, revoked ones included.
//
// With nothing owed, the error says what there is to say of the file: ErrNoKey when it is
// gone, for good reasons perhaps, ErrSpent when nothing it holds lets anyone in.
func Owed(dir string, random io.Reader, bootstrapped bool, known func(types.KeyID) bool) (k Key, owed bool, err error) {
	k, err = ReadKey(dir)
	switch {
	case errors.Is(err, ErrNoKey) && !bootstrapped:
		k, err = Bootstrap(dir, random)
	case err != nil:
	case !known(k.ID):
		err = syncKey(dir)
	case !bootstrapped:
		return Key{}, false, ErrSpent
	default:
		return k, false, nil
	}
	if err != nil {
		return Key{}, false, err
	}
	return k, true, nil
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
