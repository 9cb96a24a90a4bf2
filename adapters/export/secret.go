package export

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// secretFile is the path of a file with secrets, one a line. It is read at each attempt, so that secrets can be replaced while the
// node runs. Errors have neither the secrets nor other contents of the file.
type secretFile string

// Limits of secrets.
const (
	maxSecretFile = 16 << 10 // bytes
	maxSecrets    = 2        // of a webhook: the new one and the old one
	minKey        = 24       // bytes of a key of signatures
	maxKey        = 64
	secretPrefix  = "whsec_"
)

var errKeys = fmt.Errorf("the secret file must have one or two lines with %s and the base64 of %d to %d bytes", secretPrefix, minKey, maxKey)

// lines returns the lines that are not empty.
func (f secretFile) lines() ([]string, error) {
	text, err := readFile(string(f), maxSecretFile)
	if err != nil {
		return nil, fmt.Errorf("the secret file %w", err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all, nil
}

// readFile returns a file of at most limit bytes. A file that could not end, such as a pipe, is not read. Errors have no path.
func readFile(path string, limit int64) ([]byte, error) {
	is, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", plain(err))
	}
	if !is.Mode().IsRegular() || is.Size() > limit {
		return nil, fmt.Errorf("must be a regular file of at most %d bytes", limit)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", plain(err))
	}
	return text, nil
}

// plain returns an error without the path.
func plain(err error) error {
	if at := new(os.PathError); errors.As(err, &at) {
		return at.Err
	}
	return err
}

// keys returns the keys of signatures.
func (f secretFile) keys() (keys [][]byte, err error) {
	lines, err := f.lines()
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 || len(lines) > maxSecrets {
		return nil, errKeys
	}
	for _, line := range lines {
		text, ok := strings.CutPrefix(line, secretPrefix)
		key, err := base64.StdEncoding.DecodeString(text)
		if !ok || err != nil || len(key) < minKey || len(key) > maxKey {
			return nil, errKeys
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// bearer returns a header with the token, or an empty header if there is no file.
func (f secretFile) bearer() (http.Header, error) {
	if f == "" {
		return http.Header{}, nil
	}
	lines, err := f.lines()
	switch {
	case err != nil:
		return nil, err
	case len(lines) != 1 || strings.ContainsFunc(lines[0], func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, errors.New("the secret file must have one line with a token of printable ASCII")
	}
	return http.Header{"Authorization": {"Bearer " + lines[0]}}, nil
}

var errPassword = errors.New("the secret file must have one line with the password")

// password returns the password of a database. It is empty if there is no file.
func (f secretFile) password() (string, error) {
	if f == "" {
		return "", nil
	}
	lines, err := f.lines()
	if err != nil {
		return "", fmt.Errorf("%w: %w", errPassword, err)
	}
	if len(lines) != 1 {
		return "", errPassword
	}
	return lines[0], nil
}

var errUser = errors.New("the secret file must have two lines: a user and a password")

// userPassword returns the user and the password of a file.
func (f secretFile) userPassword() (user, password string, err error) {
	lines, err := f.lines()
	if err != nil {
		return "", "", err
	}
	if len(lines) != 2 {
		return "", "", errUser
	}
	return lines[0], lines[1], nil
}

// CheckSecrets returns why the secret file of a sink cannot be used now.
func (c *Config) CheckSecrets() error {
	f := secretFile(c.SecretFile)
	var err error
	switch c.Kind {
	case KindWebhook:
		_, err = f.keys()
	case KindPostgres:
		_, err = f.password()
	case KindNATS:
		_, err = f.natsSecret()
	case KindKafka:
		if f != "" {
			_, _, err = f.userPassword()
		}
	default:
		_, err = f.bearer()
	}
	return err
}
