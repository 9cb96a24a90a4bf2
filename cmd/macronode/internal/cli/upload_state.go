package cli

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"macronode/cmd/macronode/internal/exit"
)

// An uploadState is the file that keeps the ID of an unfinished upload for the next command. Its name is a digest of
// the node, the bucket and the address, so that another file, or a file that changed, has another one.
type uploadState string

// uploadState returns the state of the upload of an object.
func (v *putObjectCmd) uploadState(c *Console, address string) (uploadState, error) {
	node := v.URL
	if node == "" {
		cfg, err := c.node().load()
		if err != nil {
			return "", err
		}
		if node, err = filepath.Abs(cfg.Data); err != nil {
			return "", exit.Unable(err)
		}
	}
	home := v.StateHome
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", exit.Unable(fmt.Errorf("--state-home is needed to keep the state of the upload: %w", err))
		}
		home = filepath.Join(user, ".local", "state")
	}
	name := sha256.Sum256([]byte(node + "\x00" + v.Bucket + "\x00" + address))
	return uploadState(filepath.Join(home, "macronode", "uploads", fmt.Sprintf("%x", name))), nil
}

// read returns the ID of the upload; empty: there is none.
func (s uploadState) read() string {
	b, err := os.ReadFile(string(s)) // one that cannot be read is replaced
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// maxStateAge is the age after which the state of an upload that no command continued is removed.
const maxStateAge = 30 * 24 * time.Hour

// prune removes the states that are too old. One that cannot be removed stays.
func (s uploadState) prune(now time.Time) {
	list, _ := os.ReadDir(filepath.Dir(string(s)))
	for _, f := range list {
		if is, err := f.Info(); err == nil && now.Sub(is.ModTime()) > maxStateAge {
			_ = os.Remove(filepath.Join(filepath.Dir(string(s)), f.Name()))
		}
	}
}

// write keeps the ID of an upload. A crash leaves the old file or the new one.
func (s uploadState) write(id string) error {
	err := os.MkdirAll(filepath.Dir(string(s)), 0o700)
	if err == nil {
		err = os.WriteFile(string(s)+".new", []byte(id+"\n"), 0o600)
	}
	if err == nil {
		err = os.Rename(string(s)+".new", string(s))
	}
	if err != nil {
		return exit.Unable(fmt.Errorf("keep the state of the upload: %w", err))
	}
	return nil
}

// remove forgets the upload.
func (s uploadState) remove() error {
	if err := os.Remove(string(s)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return exit.Unable(fmt.Errorf("remove the state of the upload: %w", err))
	}
	return nil
}
