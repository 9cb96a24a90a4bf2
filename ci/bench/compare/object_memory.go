package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"macronode/ci/bench/gauge"
	"macronode/ci/bench/objplan"
	"macronode/ci/bench/s3sign"
)

// An objectMemory is what streams that stand still take of a server's memory.
type objectMemory struct {
	server   string
	get, put float64 // KiB a stream
}

const (
	standing = 32       // streams, as many as one tenant may have
	halfway  = 16 << 20 // bytes of each upload that have arrived
	settle   = time.Second
)

// measureMemory lets streams stand still in a new server, and looks at its resident memory.
func (o *objects) measureMemory(ctx context.Context) error {
	for _, name := range o.names {
		m := objectMemory{server: name}
		for _, put := range [...]bool{false, true} {
			s, err := o.objectServer(ctx, name)
			if err != nil {
				return err
			}
			used, err := s.memoryOfStreams(ctx, put)
			if err != nil {
				return fmt.Errorf("%s, memory: %w", name, err)
			}
			if put {
				m.put = used
			} else {
				m.get = used
			}
			if err := s.close(); err != nil {
				return err
			}
		}
		o.memory = append(o.memory, m)
	}
	return nil
}

// memoryOfStreams returns KiB a stream.
func (s *objectServer) memoryOfStreams(ctx context.Context, put bool) (float64, error) {
	path, err := s.store(ctx, 1, rangeHuge.size/4)
	if err != nil {
		return 0, err
	}
	before, err := gauge.Resident(s.pid())
	if err != nil {
		return 0, err
	}
	conns := make([]net.Conn, 0, standing)
	defer func() {
		for _, c := range conns {
			_ = c.Close() // in the midst of a stream
		}
	}()
	for n := range standing {
		c, err := net.Dial("tcp", s.addr.String())
		if err != nil {
			return 0, err
		}
		conns = append(conns, c)
		_ = c.SetDeadline(time.Now().Add(stallLimit)) // the next call reports a closed connection
		if put {
			err = s.beginUpload(c, n)
		} else {
			err = s.beginDownload(c, path)
		}
		if err != nil {
			return 0, err
		}
	}
	if !pause(ctx, settle) {
		return 0, context.Cause(ctx)
	}
	after, err := gauge.Resident(s.pid())
	return float64(after-before) / standing / 1024, err
}

const stallLimit = 30 * time.Second

// beginDownload reads the first bytes of an object.
func (s *objectServer) beginDownload(c net.Conn, path string) error {
	if _, err := c.Write(append(s.head(http.MethodGet, path), "\r\n"...)); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, c, 1<<20)
	return err
}

// beginUpload sends a part of an object.
func (s *objectServer) beginUpload(c net.Conn, n int) error {
	p := s.puts(uint64(n))
	path := p.Prefix
	if !p.Fixed {
		path += "standing"
	}
	head := fmt.Appendf(s.head(p.Method, path), "Content-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n", rangeHuge.size)
	if _, err := c.Write(head); err != nil {
		return err
	}
	content := objplan.Content(1 << 20)
	objplan.Stamp(content, uint64(n), 1)
	for range halfway / len(content) {
		if _, err := c.Write(content); err != nil {
			return err
		}
	}
	return nil
}

// head returns the begin of a request.
func (s *objectServer) head(method, path string) []byte {
	head := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, path, s.addr)
	if s.bearer != "" {
		head = append(head, "Authorization: Bearer "+s.bearer+"\r\n"...)
	}
	if s.s3 != nil {
		head = s3sign.New(*s.s3, s.addr.String()).Append(head, method, path, time.Now())
	}
	return head
}
