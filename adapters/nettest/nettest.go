// Package nettest has network helpers for the tests of several packages. The program does not link it.
package nettest

import (
	"fmt"
	"syscall"
	"testing"
)

// RefusingAddress returns the URL of an address where no process listens. It stays bound until the
// test ends, so no other socket gets it.
func RefusingAddress(t testing.TB) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)
}
