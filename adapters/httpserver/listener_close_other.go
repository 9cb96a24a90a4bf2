//go:build !linux

package httpserver

import "net"

// ignoreHandshakes is implemented for Linux only. Elsewhere new connections are accepted until
// the listener is closed.
func ignoreHandshakes(*net.TCPListener) {}

// unread returns false: received data cannot be detected here.
func unread(net.Conn) bool { return false }
