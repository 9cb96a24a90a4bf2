// Package kafkatest runs a broker of Kafka for tests.
package kafkatest

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A Server is a broker in this process, that speaks the protocol of Kafka. It syncs each record before it acknowledges it.
type Server struct {
	t       testing.TB
	options []kfake.Opt

	up   sync.Mutex // held while it is restarted; guards what follows
	of   *kfake.Cluster
	port int
}

// New starts a server, which ends with the test. It has an address and a directory of its own.
func New(t testing.TB, options ...kfake.Opt) *Server {
	t.Helper()
	s := &Server{t: t, options: append(options, kfake.NumBrokers(1), kfake.DataDir(t.TempDir()), kfake.SyncWrites())}
	s.start()
	t.Cleanup(func() { s.of.Close() })
	return s
}

func (s *Server) start() {
	of, err := kfake.NewCluster(append(s.options, kfake.Ports(s.port))...)
	if err != nil {
		s.t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(of.ListenAddrs()[0])
	if err == nil {
		s.port, err = strconv.Atoi(port)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.of = of
}

// Restart stops the server, and starts it at its address with what it has on disk.
func (s *Server) Restart() {
	s.up.Lock()
	defer s.up.Unlock()
	s.of.Close()
	s.start()
}

// Cluster returns what runs now.
func (s *Server) Cluster() *kfake.Cluster {
	s.up.Lock()
	defer s.up.Unlock()
	return s.of
}

// Address returns the host and port. It waits until the server is up.
func (s *Server) Address() string { return s.Cluster().ListenAddrs()[0] }

// Create creates a topic. configs may be nil.
func (s *Server) Create(topic string, partitions int32, configs map[string]string) {
	s.t.Helper()
	if err := s.Cluster().CreateTopic(topic, partitions, configs); err != nil {
		s.t.Fatal(err)
	}
}

// Records passes the records of a topic, those of each partition in their order.
func (s *Server) Records(topic string, each func(*kgo.Record), options ...kgo.Opt) {
	s.t.Helper()
	var left int64
	for _, p := range s.Cluster().PartitionInfos(topic) {
		left += p.HighWatermark - p.LogStartOffset
	}
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(s.Address()), kgo.ConsumeTopics(topic))...)
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	for left > 0 {
		read := client.PollFetches(context.Background())
		if err := read.Err(); err != nil {
			s.t.Fatal(err)
		}
		read.EachRecord(func(r *kgo.Record) {
			left--
			each(r)
		})
	}
}
