package httpserver

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// ignoreHandshakes makes the kernel drop packets that begin a connection (SYN without ACK). A dropped client
// tries again and then finds the port closed. If the kernel rejects the filter, new connections are accepted
// until the listener is closed.
func ignoreHandshakes(l *net.TCPListener) {
	const flags, syn, ack = 13, 0x02, 0x10 // offset of the flags in a TCP header, and two of them
	raw, err := l.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.AttachLsf(int(fd), []syscall.SockFilter{ //nolint:staticcheck // the replacement needs another module for the same system call
			{Code: syscall.BPF_LD | syscall.BPF_B | syscall.BPF_ABS, K: flags},
			{Code: syscall.BPF_ALU | syscall.BPF_AND | syscall.BPF_K, K: syn | ack},
			{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, Jf: 1, K: syn},
			{Code: syscall.BPF_RET | syscall.BPF_K, K: 0},
			{Code: syscall.BPF_RET | syscall.BPF_K, K: 1 << 16},
		})
	})
}

// unread reports whether received data has not been read yet.
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
	_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }) // 0 if it is closed
	return n > 0
}
