// Package nodedir has the files in a node's directory through which others reach the node.
//
//	run.json       process, listeners, and the token of the admin listener; removed at a clean exit
//	bootstrap.key  the first API key, made once per journal, or by a recovery
//
// Only their owner can read them, and they are written atomically.
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

	file "macronode/adapters/fs"
)

// Why a directory has no running node.
var (
	ErrNotRunning = errors.New("nodedir: no node runs here")              // start one
	ErrStale      = errors.New("nodedir: the node that ran here is dead") // start it again
)

const runName = "run.json"

// Run describes the node that runs in a directory. Token is random for each start; it gives
// access to the admin listener.
type Run struct {
	PID     int    `json:"pid"`
	Version string `json:"version"`
	Listen  Listen `json:"listen"`
	Token   string `json:"token"`
}

// Listen has the addresses of the listeners: host:port, with the actual port.
type Listen struct {
	HTTP  string `json:"http"`
	Admin string `json:"admin"`
	S3    string `json:"s3,omitzero"`
	TLS   TLS    `json:"tls,omitzero"`
}

// TLS has the TCP listeners that use TLS, and the SHA-256 of their certificate.
type TLS struct {
	HTTP        bool   `json:"http"`
	Admin       bool   `json:"admin"`
	Certificate string `json:"certificate"`
}

// Write writes r to dir, replacing an older file.
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

// Remove removes the file of r's node from dir, unless another node has replaced it.
func Remove(dir string, r Run) error {
	there, err := read(dir)
	if errors.Is(err, ErrNotRunning) || err == nil && there.Token != r.Token {
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

// Read returns the node that runs in dir: ErrNotRunning if there is none; ErrStale if it died without
// removing its file, and then r is that file. The lock on dir decides, because another process can have
// the PID of a node that died. If no process has the PID, the lock is not tried: a trial can make a start fail.
func Read(dir string) (r Run, err error) {
	if r, err = read(dir); err != nil {
		return r, err
	}
	if !Alive(r.PID) {
		return r, ErrStale
	}
	switch runs, err := file.HeldBy(file.Dir(dir), r.PID); {
	case err != nil:
		return r, fmt.Errorf("read %s: %w", runName, err)
	case !runs:
		return r, ErrStale
	}
	return r, nil
}

// Alive reports whether a process exists and has not ended. A zombie counts as ended.
func Alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	if pid <= 0 || err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true // assume that it is alive
	}
	_, state, _ := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(" "))
	return !bytes.HasPrefix(state, []byte("Z")) && !bytes.HasPrefix(state, []byte("X"))
}

func read(dir string) (r Run, err error) {
	text, err := file.ReadRegular(filepath.Join(dir, runName))
	if errors.Is(err, fs.ErrNotExist) {
		return r, ErrNotRunning
	}
	if err != nil {
		return r, fmt.Errorf("read %s: %w", runName, err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read %s: %w", runName, err)
	}
	return r, nil
}

// spare writes a durable private file beside name that will be renamed to it. Only the node that
// holds the directory calls it, so an existing one is left over.
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
