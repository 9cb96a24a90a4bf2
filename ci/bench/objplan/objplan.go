// Package objplan is what compare and the load generator of objects tell each other.
package objplan

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"time"

	"macronode/ci/bench/s3sign"
	"macronode/ci/bench/sample"
)

// Plan is what a load generator does.
type Plan struct {
	Addr  netip.AddrPort
	Conns int
	Warm  time.Duration // before answers count
	Time  time.Duration // in which they count

	Method string
	Status int      // that every answer has
	Prefix string   // of the paths of new objects; a connection and a number follow
	Fixed  bool     // every new object has the path Prefix: the server names it
	Paths  []string // of the objects that are read
	Size   uint64   // of each object
	Range  uint64   // bytes at a place by chance; 0: the whole object
	Salt   uint64   // makes the content of new objects differ from that of other runs

	Bearer string              // API key, or empty
	S3     *s3sign.Credentials // or nil
}

// Result is what it has seen.
type Result struct {
	sample.Sample
	Signing time.Duration // CPU of all signatures
}

// StampLen is the length of the begin of an object, which differs from that of every other object.
const StampLen = 16

// Content returns random bytes, the same each time.
func Content(size uint64) []byte {
	b := make([]byte, (size+7)/8*8)
	r := rand.New(rand.NewPCG(size, 1))
	for at := 0; at < len(b); at += 8 {
		binary.LittleEndian.PutUint64(b[at:], r.Uint64())
	}
	return b[:size]
}

// Stamp writes the begin of an object.
func Stamp(b []byte, salt, number uint64) {
	binary.LittleEndian.PutUint64(b, salt)
	binary.LittleEndian.PutUint64(b[8:], number)
}
