package nettest

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
)

// TestRefusingAddressRefuses: a connection is refused, and no other socket can bind the address.
func TestRefusingAddressRefuses(t *testing.T) {
	address := strings.TrimPrefix(RefusingAddress(t), "http://")
	if c, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v, %v", c, err)
	}
	if l, err := net.Listen("tcp", address); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("%v, %v", l, err)
	}
}
