package main

import (
	"errors"
	"fmt"
	"syscall"
)

// poll waits for all connections at once.
type poll struct {
	fd     int
	conns  []conn
	events []syscall.EpollEvent
}

func newPoll(p *Plan) (*poll, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	l := &poll{fd: fd, events: make([]syscall.EpollEvent, 256)}
	for i := range p.Conns {
		c := newConn(p, i)
		if c.fd, err = dial(p); err != nil {
			l.close()
			return nil, fmt.Errorf("connection %d of %d: %w", i+1, p.Conns, err)
		}
		l.conns = append(l.conns, c)
		if err := syscall.EpollCtl(fd, syscall.EPOLL_CTL_ADD, c.fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(i)}); err != nil {
			l.close()
			return nil, fmt.Errorf("epoll: %w", err)
		}
	}
	return l, nil
}

func dial(p *Plan) (fd int, err error) {
	fd, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("socket: %w", err)
	}
	err = errors.Join(
		syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(p.Addr.Port()), Addr: p.Addr.Addr().As4()}),
		syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1),
		syscall.SetNonblock(fd, true))
	if err != nil {
		return 0, errors.Join(fmt.Errorf("connect: %w", err), syscall.Close(fd))
	}
	return fd, nil
}

// wait calls each for every connection that has something to read.
func (l *poll) wait(each func(*conn) error) error {
	n, err := syscall.EpollWait(l.fd, l.events, int(stall.Milliseconds()))
	switch {
	case err == syscall.EINTR:
		return nil
	case err != nil:
		return fmt.Errorf("epoll: %w", err)
	case n == 0:
		return errStalled
	}
	for _, e := range l.events[:n] {
		if err := each(&l.conns[e.Fd]); err != nil {
			return err
		}
	}
	return nil
}

func (l *poll) close() {
	for i := range l.conns {
		_ = syscall.Close(l.conns[i].fd) // nothing is owed any more
	}
	_ = syscall.Close(l.fd)
}
