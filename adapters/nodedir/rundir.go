// Package nodedir is what a running node leaves in its directory for those who want
// to reach it.
//
//	run.json       who runs here, where it listens, and a token to be let in; gone after a clean exit
//	bootstrap.key  the first API key, made once in the life of a journal, or recovered
//
// Both are readable by their owner alone, and are there whole or not at all.
package nodedir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/go-json-experiment/json"
)

// Why there is no node to be found in a directory.
var (
	ErrNobody = errors.New("nodedir: no node runs here")              // start one
	ErrStale  = errors.New("nodedir: the node that ran here is dead") // start it again
)

const runName = "run.json"

// Run says who runs in a directory and how to reach it. Token is drawn anew at each
// start; whoever has it is let in to the admin listener.
type Run struct {
	PID     int    `json:"pid"`
	Version string `json:"version"`
	Listen  Listen `json:"listen"`
	Token   string `json:"token"`
}

// Listen is where a node listens: host:port, with the port that it got.
type Listen struct {
	HTTP  string `json:"http"`
	Admin string `json:"admin"`
	TLS   TLS    `json:"tls,omitzero"`
}

// TLS says which listeners speak it, where they are reached by TCP, and the SHA-256 of the
// certificate that they show.
type TLS struct {
	HTTP        bool   `json:"http"`
	Admin       bool   `json:"admin"`
	Certificate string `json:"certificate"`
}

// Write leaves r in dir, in the place of an older one.
func Write(dir string, r Run) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write %s: %w", runName, err)
	}
	temp, err := spare(dir, runName, append(text, '\n'))
	if err != nil {
		return err
	}
	if err := os.Rename(temp, filepath.Join(dir, runName)); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", runName, err), os.Remove(temp))
	}
	return syncDir(dir)
}

// Remove takes back what r's node left in dir, unless it is another's by now.
func Remove(dir string, r Run) error {
	there, err := read(dir)
	if errors.Is(err, ErrNobody) || err == nil && there.Token != r.Token {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, runName)); err != nil {
		return fmt.Errorf("remove %s: %w", runName, err)
	}
	return syncDir(dir)
}

// Read finds the node that runs in dir: ErrNobody where none does, ErrStale where it
// died without taking its word back; then r is what it said.
func Read(dir string) (r Run, err error) {
	if r, err = read(dir); err != nil {
		return r, err
	}
	if !Alive(r.PID) {
		return r, ErrStale
	}
	return r, nil
}

// Alive reports that a process of this number exists, and has not ended: one that
// its parent has not looked after yet is dead all the same.
func Alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	if pid <= 0 || err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true // it cannot be told more
	}
	_, state, _ := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(" "))
	return !bytes.HasPrefix(state, []byte("Z")) && !bytes.HasPrefix(state, []byte("X"))
}

func read(dir string) (r Run, err error) {
	text, err := os.ReadFile(filepath.Join(dir, runName))
	if errors.Is(err, fs.ErrNotExist) {
		return r, ErrNobody
	}
	if err != nil {
		return r, fmt.Errorf("read %s: %w", runName, err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read %s: %w", runName, err)
	}
	return r, nil
}

// spare writes a file beside name, durable and private, for it to become name. Only
// the node that holds the directory comes here, so one that is there is a dead one's.
func spare(dir, name string, content []byte) (path string, err error) {
	path = filepath.Join(dir, name+".new")
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("create %s: %w", name, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("create %s: %w", name, err)
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("write %s: %w", name, err), os.Remove(path))
	}
	return path, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
