package main

import (
	"errors"
	"fmt"
	"syscall"

	"macronode/ci/bench/socket"
)

// poll waits for all connections.
type poll struct {
	sockets *socket.Poll
	conns   []conn
}

func newPoll(p *Plan) (*poll, error) {
	sockets, err := socket.New()
	if err != nil {
		return nil, err
	}
	l := &poll{sockets: sockets}
	for i := range p.Conns {
		c := newConn(p, i)
		c.sockets = sockets
		if c.fd, err = dial(p); err != nil {
			l.close()
			return nil, fmt.Errorf("connection %d of %d: %w", i+1, p.Conns, err)
		}
		l.conns = append(l.conns, c)
		if err := sockets.Add(c.fd, i, false); err != nil {
			l.close()
			return nil, err
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

// wait calls each for every readable connection.
func (l *poll) wait(each func(*conn) error) error {
	quiet, err := l.sockets.Wait(stall, func(number int) error { return each(&l.conns[number]) })
	if quiet {
		return errStalled
	}
	return err
}

func (l *poll) close() {
	for i := range l.conns {
		_ = syscall.Close(l.conns[i].fd) // nothing is in flight
	}
	l.sockets.Close()
}
