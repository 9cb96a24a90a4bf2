package httpserver

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// ignoreHandshakes makes the kernel drop what would begin a connection, and nothing
// else: SYN without ACK. A client that was dropped so tries again, and is then
// refused by a closed port. Where the kernel does not take the filter, newcomers
// come in until the listener is closed.
func ignoreHandshakes(l *net.TCPListener) {
	const flags, syn, ack = 13, 0x02, 0x10 // offset in a TCP header; bits there
	raw, err := l.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.AttachLsf(int(fd), []syscall.SockFilter{ //nolint:staticcheck // its successor is a module more, and the kernel's interface is the same
			{Code: syscall.BPF_LD | syscall.BPF_B | syscall.BPF_ABS, K: flags},
			{Code: syscall.BPF_ALU | syscall.BPF_AND | syscall.BPF_K, K: syn | ack},
			{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, Jf: 1, K: syn},
			{Code: syscall.BPF_RET | syscall.BPF_K, K: 0},
			{Code: syscall.BPF_RET | syscall.BPF_K, K: 1 << 16},
		})
	})
}

// unread reports that a client has sent what was not read yet.
func unread(c net.Conn) bool {
	of, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := of.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }) // nothing of one that is closed
	return n > 0
}
