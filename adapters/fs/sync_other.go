//go:build !linux

package fs

// Sync is whatever makes a file durable on this system.
func (f file) Sync() error { return f.File.Sync() }
