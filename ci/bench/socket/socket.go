// Package socket is TCP on loopback for single-threaded programs: epoll, and non-blocking calls.
package socket

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"
	"unsafe"
)

// Poll waits for many sockets. Each has a number, which Wait reports.
type Poll struct {
	fd     int
	events []syscall.EpollEvent
}

// New returns a poll without sockets.
func New() (*Poll, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	return &Poll{fd: fd, events: make([]syscall.EpollEvent, 256)}, nil
}

// Add adds fd: until it can be read, or also until it is connected.
func (p *Poll) Add(fd, number int, connecting bool) error {
	return p.set(syscall.EPOLL_CTL_ADD, fd, number, connecting)
}

// Watch changes what is waited for: until fd can be read, or also until it can be written.
func (p *Poll) Watch(fd, number int, writing bool) error {
	return p.set(syscall.EPOLL_CTL_MOD, fd, number, writing)
}

func (p *Poll) set(how, fd, number int, writing bool) error {
	e := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(number)}
	if writing {
		e.Events |= syscall.EPOLLOUT
	}
	if err := syscall.EpollCtl(p.fd, how, fd, &e); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

const epollPwait2 = 441 // on every architecture; package syscall is older

// Wait calls each with the number of every ready socket. quiet reports that none was ready within
// d.
func (p *Poll) Wait(d time.Duration, each func(number int) error) (quiet bool, err error) {
	span := syscall.NsecToTimespec(int64(max(0, d)))
	n, _, errno := syscall.Syscall6(epollPwait2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)),
		uintptr(unsafe.Pointer(&span)), 0, 0)
	switch {
	case errno == syscall.EINTR:
		return false, nil
	case errno != 0:
		return false, fmt.Errorf("epoll: %w", errno)
	}
	for _, e := range p.events[:n] {
		if err := each(int(e.Fd)); err != nil {
			return false, err
		}
	}
	return n == 0, nil
}

// Close closes the poll, but not its sockets.
func (p *Poll) Close() {
	_ = syscall.Close(p.fd) // nothing is in flight
}

// Dial starts a connection, which may still be connecting.
func Dial(to netip.AddrPort) (fd int, connecting bool, err error) {
	fd, err = stream()
	if err != nil {
		return 0, false, err
	}
	err = syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
	if errors.Is(err, syscall.EINPROGRESS) {
		return fd, true, nil
	}
	if err != nil {
		return 0, false, errors.Join(fmt.Errorf("connect: %w", err), syscall.Close(fd))
	}
	return fd, false, nil
}

// Failed returns the result of a connection attempt; nil: connected.
func Failed(fd int) error {
	n, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ERROR)
	if err == nil && n != 0 {
		err = syscall.Errno(n)
	}
	return err
}

// Listen listens on a free port of 127.0.0.1.
func Listen() (fd, port int, err error) {
	fd, err = stream()
	if err != nil {
		return 0, 0, err
	}
	err = errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 4096))
	at, err1 := syscall.Getsockname(fd)
	if err = errors.Join(err, err1); err != nil {
		return 0, 0, errors.Join(fmt.Errorf("listen: %w", err), syscall.Close(fd))
	}
	return fd, at.(*syscall.SockaddrInet4).Port, nil
}

// Accept returns the next connection, if there is one.
func Accept(listener int) (fd int, ok bool, err error) {
	fd, _, err = syscall.Accept4(listener, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR), errors.Is(err, syscall.ECONNABORTED):
		return 0, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("accept: %w", err)
	}
	return fd, true, atOnce(fd)
}

func stream() (int, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("socket: %w", err)
	}
	return fd, atOnce(fd)
}

// atOnce disables Nagle's algorithm.
func atOnce(fd int) error {
	return syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
}

// Again reports that there is nothing to read yet, or no room to write.
func Again(err error) bool {
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR)
}
