package nodedir

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"macronode/core/types"
)

// secretName is the file of the S3 secret.
const secretName = "s3.secret"

// An S3Secret is what the secret access keys of a node are derived from. Neither the journal nor a backup contains
// it, so a copy of them does not sign requests.
type S3Secret [32]byte

// ErrSecret reports a file that is not an S3 secret.
var ErrSecret = errors.New("must contain 64 hexadecimal digits; remove it to create another one, which changes all secret access keys")

// S3SecretPath returns the path of the S3 secret of a directory.
func S3SecretPath(dir string) string { return filepath.Join(dir, secretName) }

// HasS3Secret reports whether a directory has an S3 secret, or something in its place.
func HasS3Secret(dir string) bool {
	_, err := os.Lstat(S3SecretPath(dir))
	return !errors.Is(err, fs.ErrNotExist)
}

// OpenS3Secret reads the S3 secret of a directory, or creates it. It is durable when OpenS3Secret returns. Its errors
// are ErrSecret, ErrShared if others than the owner may read the file, or that of the file system.
func OpenS3Secret(dir string, random io.Reader) (s S3Secret, err error) {
	path := S3SecretPath(dir)
	is, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return createS3Secret(dir, random)
	}
	if err != nil {
		return s, fmt.Errorf("read %s: %w", secretName, err)
	}
	if !is.Mode().IsRegular() || is.Mode().Perm()&0o077 != 0 {
		return s, fmt.Errorf("%s: %w", path, ErrShared)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return s, fmt.Errorf("read %s: %w", secretName, err)
	}
	raw, err := hex.DecodeString(strings.TrimSuffix(string(text), "\n"))
	if err != nil || len(raw) != len(s) {
		return S3Secret{}, fmt.Errorf("%s: %w", path, ErrSecret)
	}
	copy(s[:], raw)
	return s, syncDir(dir)
}

func createS3Secret(dir string, random io.Reader) (s S3Secret, err error) {
	if _, err := io.ReadFull(random, s[:]); err != nil {
		return s, fmt.Errorf("create %s: %w", secretName, err)
	}
	temp, err := spare(dir, secretName, []byte(hex.EncodeToString(s[:])+"\n"))
	if err != nil {
		return s, err
	}
	if err := os.Rename(temp, filepath.Join(dir, secretName)); err != nil {
		return s, fmt.Errorf("create %s: %w", secretName, errors.Join(err, os.Remove(temp)))
	}
	return s, syncDir(dir)
}

// AccessKey returns the secret access key of the API key with an ID and the digest of its secret: 43 characters.
func (s S3Secret) AccessKey(id types.KeyID, hash [32]byte) string {
	h := hmac.New(sha256.New, s[:])
	h.Write([]byte("macronode s3 1"))
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(id)))
	h.Write(hash[:])
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
