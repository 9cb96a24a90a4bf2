//go:build !linux

package fs

// Sync makes the file durable.
func (f file) Sync() error { return f.File.Sync() }
