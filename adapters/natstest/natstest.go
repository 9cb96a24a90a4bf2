// Package natstest runs a real server of NATS for tests.
package natstest

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A Server is a server with JetStream in this process. It syncs each message before it acknowledges it.
type Server struct {
	t       testing.TB
	options natsd.Options

	up sync.Mutex // held while it is restarted; guards what follows
	of *natsd.Server
}

// New starts a server, which ends with the test. It has an address of its own, and the options that change sets; change may be nil.
func New(t testing.TB, change func(*natsd.Options)) *Server {
	t.Helper()
	s := &Server{t: t, options: natsd.Options{Host: "127.0.0.1", Port: natsd.RANDOM_PORT, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(), SyncAlways: true}}
	if change != nil {
		change(&s.options)
	}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *Server) start() {
	options := s.options
	of, err := natsd.NewServer(&options)
	if err != nil {
		s.t.Fatal(err)
	}
	of.Start()
	if !of.ReadyForConnections(time.Minute) {
		s.t.Fatal("the server of NATS does not start")
	}
	s.of, s.options.Port = of, of.Addr().(*net.TCPAddr).Port
}

func (s *Server) stop() {
	s.of.Shutdown()
	s.of.WaitForShutdown()
}

// Restart stops the server, and starts it at its address with what it has on disk.
func (s *Server) Restart() {
	s.up.Lock()
	defer s.up.Unlock()
	s.stop()
	s.start()
}

// Address returns the host and port. It waits until the server is up.
func (s *Server) Address() string {
	s.up.Lock()
	defer s.up.Unlock()
	return s.of.Addr().String()
}

// Use calls use with a connection of its own. An error ends the test.
func (s *Server) Use(use func(jetstream.JetStream) error, options ...nats.Option) {
	s.t.Helper()
	conn, err := nats.Connect("nats://"+s.Address(), options...)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err == nil {
		err = use(js)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// Create creates a stream on disk with all subjects that begin with its name.
func (s *Server) Create(name string, change func(*jetstream.StreamConfig), options ...nats.Option) {
	s.t.Helper()
	of := jetstream.StreamConfig{Name: name, Subjects: []string{name + ".>"}, Storage: jetstream.FileStorage}
	if change != nil {
		change(&of)
	}
	s.Use(func(js jetstream.JetStream) error {
		_, err := js.CreateStream(context.Background(), of)
		return err
	}, options...)
}

// Messages passes the messages of a stream in their order.
func (s *Server) Messages(stream string, each func(*jetstream.RawStreamMsg)) {
	s.t.Helper()
	s.Use(func(js jetstream.JetStream) error {
		of, err := js.Stream(context.Background(), stream)
		if err != nil {
			return err
		}
		for at := uint64(1); at <= of.CachedInfo().State.LastSeq; at++ {
			m, err := of.GetMsg(context.Background(), at)
			if err != nil {
				return err
			}
			each(m)
		}
		return nil
	})
}
