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

// Why a key is invalid or not trusted.
var (
	ErrKey        = errors.New("not an API key: must be mk_, 16 hexadecimal digits, _ and 43 characters")
	ErrNoKey      = errors.New("nodedir: no bootstrap.key here")
	ErrShared     = errors.New("must be a regular file that only its owner can access (mode 0600)")
	ErrSpent      = errors.New("nodedir: the key of bootstrap.key was revoked: keys recover makes another")
	errReservedID = errors.New("the random source returned the reserved ID 0")
)

const (
	keyName   = "bootstrap.key"
	oldName   = "bootstrap.key.old" // the previous key, after Recover
	keyPrefix = "mk_"
	idLen     = 16 // hexadecimal digits of 8 bytes
	secretLen = 43 // characters of 32 bytes
	keyLen    = len(keyPrefix) + idLen + 1 + secretLen
)

// A Key is an API key. Its text is mk_<id>_<secret>; the secret may contain an underscore, and
// only Text reveals it. ID 0 is reserved for the node itself.
type Key struct {
	ID     types.KeyID
	secret string // base64url of 32 bytes
}

// NewKey returns a random key.
func NewKey(random io.Reader) (Key, error) {
	var drawn [8 + 32]byte
	if _, err := io.ReadFull(random, drawn[:]); err != nil {
		return Key{}, fmt.Errorf("draw an API key: %w", err)
	}
	id := binary.BigEndian.Uint64(drawn[:8])
	if id == 0 {
		return Key{}, fmt.Errorf("draw an API key: %w", errReservedID)
	}
	return Key{types.KeyID(id), base64.RawURLEncoding.EncodeToString(drawn[8:])}, nil
}

// Text returns the full text, which is secret.
func (k Key) Text() string { return fmt.Sprintf("%s%016x_%s", keyPrefix, uint64(k.ID), k.secret) }

// String identifies k without its secret.
func (k Key) String() string { return fmt.Sprintf("%s%016x_…", keyPrefix, uint64(k.ID)) }

// Hash returns the hash that a node stores.
func (k Key) Hash() [32]byte { return digest.Sum([]byte(k.secret)) }

// ParseKey parses the result of Text.
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

// ReadKey reads the bootstrap key of dir: ErrNoKey if there is none, ErrShared if others than its
// owner can read it.
func ReadKey(dir string) (Key, error) {
	path := filepath.Join(dir, keyName)
	is, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Key{}, ErrNoKey
	case err != nil:
		return Key{}, fmt.Errorf("read the bootstrap key: %w", err)
	case !is.Mode().IsRegular() || is.Mode().Perm()&0o077 != 0:
		return Key{}, fmt.Errorf("%s: %w", path, ErrShared)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Key{}, fmt.Errorf("read the bootstrap key: %w", err)
	}
	k, err := ParseKey(strings.TrimSuffix(string(text), "\n"))
	if err != nil {
		return Key{}, fmt.Errorf("%s: %w; remove the file: a stopped node gets another key by macronode keys recover", path, err)
	}
	return k, nil
}

// Bootstrap returns the first key of a journal that has no bootstrap key record: the key in dir,
// if an earlier start stopped before recording it, or a new one. When it returns, file and
// directory are durable, so the record can follow. If the record exists, Bootstrap is not called:
// the file may have been removed.
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

// Recover is for a lost or leaked bootstrap key: when it returns, a new key is durable in
// bootstrap.key, and the previous content in bootstrap.key.old. The caller holds the lock of dir,
// so no node runs. The next start records the new key and replaces the old one, which is valid
// until then. If Recover fails halfway, bootstrap.key may be missing; repeat it.
func Recover(dir string, random io.Reader) (Key, error) {
	return writeKey(dir, random, func() error {
		err := os.Rename(filepath.Join(dir, keyName), filepath.Join(dir, oldName))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// writeKey writes a new key to dir, after makeRoom has removed the old one.
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
		err = os.Link(temp, filepath.Join(dir, keyName)) // fails if the name exists; a rename would replace it
	}
	if err = errors.Join(err, os.Remove(temp)); err != nil {
		return Key{}, fmt.Errorf("create %s: %w", keyName, err)
	}
	return k, syncDir(dir)
}

// Owed returns the key that a start must record: one that an earlier start or Recover left before
// it was recorded, or a new one if neither dir nor the journal has any. The key is durable, so
// the record can follow; if bootstrapped is set, it replaces the bootstrap key of the journal.
// known reports whether the journal has a key, even a revoked one.
//
// If there is nothing to record, the error describes the file: ErrNoKey if it is missing, which
// may be intended; ErrSpent if its key is not valid any more.
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

// syncKey makes a key durable that an earlier start may not have synced.
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
