package proxy

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// Conns limits the connections to all endpoints: this process has so many files for them. Proxies that follow each other share it.
type Conns struct {
	limit int64
	files atomic.Int64
}

// NewConns returns a limit of connections.
func NewConns(limit int) *Conns { return &Conns{limit: int64(limit)} }

// filesOfDial is how many files a connection has while it is opened: two look-ups of its name, or two attempts.
const filesOfDial = 2

// Depth returns how many files connections have, and their limit.
func (c *Conns) Depth() (depth, limit int) { return int(c.files.Load()), int(c.limit) }

// maxIdle returns how many connections are kept idle in pools of one kind. There are two kinds: a third is left for requests.
func (c *Conns) maxIdle() int64 {
	if c == nil {
		return MaxIdleConns
	}
	return max(1, min(MaxIdleConns, c.limit/3)) // 0 is no limit of http.Transport
}

// limited returns a dial function that fails as if the process had no file left, if the limit is reached.
func (c *Conns) limited(dial dialFunc) dialFunc {
	if c == nil {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if c.files.Add(filesOfDial) > c.limit {
			c.files.Add(-filesOfDial)
			return nil, &net.OpError{Op: "dial", Net: network, Err: fmt.Errorf("%d connections to upstreams are open: %w", c.limit, syscall.EMFILE)}
		}
		conn, err := dial(ctx, network, address)
		if tcp, ok := conn.(*net.TCPConn); err == nil && ok {
			c.files.Add(1 - filesOfDial)
			return &limitedConn{TCPConn: tcp, of: c}, nil
		}
		c.files.Add(-filesOfDial)
		return conn, err
	}
}

// limitedConn is a connection that counts until it is closed.
type limitedConn struct {
	*net.TCPConn
	of   *Conns
	once sync.Once
}

func (c *limitedConn) Close() error {
	err := c.TCPConn.Close()
	c.once.Do(func() { c.of.files.Add(-1) })
	return err
}

// idleConns counts the idle connections of pools.
type idleConns struct {
	atomic.Int64
	most int64 // may be exceeded by a few
}

func (i *idleConns) isFull() bool { return i.Load() >= i.most }
func (i *idleConns) isOver() bool { return i.Load() > i.most }
