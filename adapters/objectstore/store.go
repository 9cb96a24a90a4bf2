// Package objectstore keeps the bytes of objects in files of providers:
//
//	upload:  N.part ──► sync ──► ADDRESS-N.object ──► flush of its name ──► row ──► reply
//	         a content of one group: ADDRESS-N ──► sync ──► flush of its name ──► row ──► reply
//	read:    row ──► ADDRESS-N.object, each group verified against the address ──► client
//	collect: a file that no row names and no upload is writing ──► removed
//
// The files of an object have one of three layouts:
//
//	one group:    ADDRESS-N                        the content
//	few groups:   ADDRESS-N.object                 the content, then the nodes of its hash tree
//	many groups:  ADDRESS-N and ADDRESS-N.nodes    the content, and the nodes
//
// N is the number of the upload. It is never used again, so a collector never removes the file of an upload
// that stores the same content, and no upload waits for the collector.
//
// With several providers an object has copies:
//
//	upload:  each group is written to all chosen providers; each syncs, then the row
//	read:    a group that cannot be read or does not verify is read from another copy
//	repair:  a copy that is missing or damaged is written again from a good one
//
// With a scheme, an object that is larger than a stripe has shards instead of copies. Each is a file in a provider of its own:
//
//	data:    ADDRESS-N.rs6-3-0 …    its groups, then the nodes of the hash tree of the whole object
//	parity:  ADDRESS-N.rs6-3-6 …    its blocks, each with a checksum, then the nodes
//	         ….nodes                many nodes
//
// Each shard is verified without the others. An object is read from any as many shards as it has of data.
package objectstore

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"macronode/adapters/erasure"
	"macronode/adapters/fs"
	"macronode/adapters/provider"
	"macronode/core/coding"
	"macronode/core/digest"
	"macronode/core/placement"
	"macronode/core/storage"
	"macronode/core/types"
)

// Errors of uploads and reads.
var (
	ErrBusy    = errors.New("objectstore: too many uploads")
	ErrNoSpace = errors.New("objectstore: the free space of the disk is reserved")
	ErrTooLong = errors.New("objectstore: longer than the largest object")
	ErrDamaged = errors.New("objectstore: the file does not contain the object")
	ErrGone    = errors.New("objectstore: the file is not there")

	// ErrUnavailable reports a read that failed because a provider cannot be reached now, or has failed. Its copy may be good.
	ErrUnavailable = provider.ErrUnavailable
)

// Limits of a Store.
type Limits struct {
	Uploads int    // of all tenants at once, including those with an unknown outcome
	Reserve uint64 // bytes of the disk that are kept free
	Object  uint64 // bytes of the largest object
}

// Store keeps the files of objects.
type Store struct {
	providers []*member
	table     placement.Table
	far       placement.Set // the providers that are read last
	copies    Copies
	limits    Limits
	appended  int // nodes that are appended to the content at most
	defect    func(storage.Stored)
	schemes   atomic.Pointer[[]coding.Scheme] // of objects, first that of uploads
	owner     Owner                           // the node that has claimed the directories; journal 0: none has
	written   atomic.Uint64                   // bytes of uploads since the last collection
	moved     atomic.Uint64                   // parts that were removed after others had replaced them
	full      chan struct{}                   // has a value if a collection is wanted now
	refused   atomic.Pointer[string]          // why the last upload failed for lack of space since Refused was called; nil: none did

	removal sync.Mutex // held while files of objects are removed

	mu      sync.Mutex
	next    storage.File
	first   storage.File          // of the uploads since the start; 0: there was none
	uploads map[storage.File]bool // that have not ended
	tenants map[types.Tenant]int  // how many of them each tenant has
	kept    map[storage.File]bool // of uploads, those whose outcome is unknown
	repairs map[storage.File]bool // copies that are being written again
	codecs  map[coding.Scheme]*erasure.Codec
}

// New returns a store of the files in one directory. Recover must be called before its first upload.
func New(dir fs.FS, l Limits) *Store {
	return NewCopies([]Provider{{Provider: placement.Provider{Name: "local", Domain: "local", Weight: 1}, Port: provider.Dir{FS: dir}}}, Copies{Count: 1, Required: 1}, l)
}

// NewCopies returns a store of the files in several directories. There must be as many failure domains as copies.
func NewCopies(list []Provider, c Copies, l Limits) *Store {
	s := &Store{copies: c, limits: l, appended: maxAppended, defect: func(storage.Stored) {},
		full: make(chan struct{}, 1), uploads: map[storage.File]bool{}, tenants: map[types.Tenant]int{}, kept: map[storage.File]bool{}, repairs: map[storage.File]bool{}, codecs: map[coding.Scheme]*erasure.Codec{}}
	s.schemes.Store(new([]coding.Scheme))
	if c.Coding.IsSet() {
		s.noteScheme(c.Coding)
	}
	var places []placement.Provider
	for i, p := range list {
		if p.Far {
			s.far = s.far.With(i)
		}
		places = append(places, p.Provider)
		s.providers = append(s.providers, &member{Provider: p})
	}
	s.table = placement.New(places)
	return s
}

// OnDefect sets what is called with each object that lacks a copy, or has a bad one, also if it cannot be read. It must not block. It is
// set before the first upload.
func (s *Store) OnDefect(f func(storage.Stored)) { s.defect = f }

// Recover reads which numbers were used. It removes nothing. A directory that cannot be read is an error if no other one can be
// read.
func (s *Store) Recover() error {
	files, err := s.Files()
	if err != nil {
		return err
	}
	for _, names := range files.Names {
		s.reserveAll(names)
	}
	return nil
}

// reserveAll reserves the numbers in the names of files.
func (s *Store) reserveAll(names []string) {
	s.noteSchemes(names)
	for _, name := range names {
		if f, ok := parseName(name); ok {
			s.Reserve(f.file)
		}
	}
}

// Reserve makes later uploads have greater numbers than file. It is called with the greatest number of
// the state, whose file may be lost.
func (s *Store) Reserve(file storage.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = max(s.next, file)
}

// Settled returns a function that reports whether no upload was writing a file when Settled was called. A list of files that is made later
// has such a file, unless it is lost. An upload with an unknown outcome writes nothing any more.
func (s *Store) Settled() func(storage.File) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest, writing := s.next, map[storage.File]bool{}
	for f := range s.uploads {
		writing[f] = !s.kept[f]
	}
	return func(f storage.File) bool { return f <= newest && !writing[f] }
}

// Uploads returns how many uploads have not ended.
func (s *Store) Uploads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.uploads)
}

const (
	partSuffix   = provider.DraftSuffix
	nodesSuffix  = ".nodes"
	objectSuffix = ".object"
	numberLen    = 16 // hexadecimal digits
)

// maxAppended is how many nodes are appended to the content at most. An upload keeps as many in memory.
const maxAppended = 1024

// A layout says where the nodes of an object are.
type layout uint8

const (
	noNodes       layout = iota // there are none
	appendedNodes               // behind the content
	separateNodes               // in a file of their own
)

var (
	oneGroup      = []layout{noNodes}
	severalGroups = []layout{appendedNodes, separateNodes} // older versions wrote all nodes into files of their own
)

// layouts returns those that an object of a size may have.
func layouts(size uint64) []layout {
	if digest.Groups(size) == 1 {
		return oneGroup
	}
	return severalGroups
}

// suffix returns the end of the name of the file with the content.
func (l layout) suffix() string {
	if l == appendedNodes {
		return objectSuffix
	}
	return ""
}

// fileName is what the name of a file says.
type fileName struct {
	file    storage.File
	address storage.Address
	part    bool // not complete: it has no address
}

func number(f storage.File) string { return fmt.Sprintf("%0*x", numberLen, uint64(f)) }

func name(a storage.Address, f storage.File) string {
	return hex.EncodeToString(a[:]) + "-" + number(f)
}

func parseName(s string) (f fileName, ok bool) {
	rest, part := strings.CutSuffix(s, partSuffix)
	if withNodes, ok := strings.CutSuffix(rest, nodesSuffix); ok {
		rest = withNodes
	} else if !part {
		rest = strings.TrimSuffix(rest, objectSuffix)
	}
	if of, _, _, ok := cutShard(rest); ok && !part {
		rest = of
	}
	if !part {
		address, file, ok := strings.Cut(rest, "-")
		if n, err := hex.Decode(f.address[:], []byte(address[:min(len(address), 2*len(f.address))])); !ok || err != nil || n != len(f.address) || len(address) != 2*n {
			return f, false
		}
		rest = file
	}
	n, err := strconv.ParseUint(rest, 16, 64)
	f.file, f.part = storage.File(n), part
	return f, err == nil && len(rest) == numberLen
}

// Collected is what a collection removed.
type Collected struct {
	Files     int
	Bytes     uint64
	Unremoved int // files that could not be removed; the next collection tries again
}

// Collect removes the files that no row names and no upload is writing. live reports whether a row names
// a file; it must know every row whose upload was ended by Done. Collect never blocks an upload. A provider that fails
// does not stop it, nor does a file that cannot be removed. A bucket that forbids removals is asked for few of them. The error has the first
// file of each provider.
func (s *Store) Collect(live func(storage.Address, storage.File) bool) (c Collected, err error) {
	s.written.Store(0)
	s.mu.Lock()
	newest := s.next
	s.mu.Unlock()
	for _, p := range s.providers {
		err = errors.Join(err, s.collectIn(p, newest, live, &c))
	}
	return c, err
}

// Full has a value when a collection is wanted before its time: uploads since the last one have written a quarter of the
// space that uploads may use, or one was rejected for lack of space. Files of deleted objects may be most of that.
func (s *Store) Full() <-chan struct{} { return s.full }

// wantCollection gives Full a value if uploads since the last collection have written a quarter of the spare bytes.
func (s *Store) wantCollection(spare uint64) {
	if s.written.Load() < spare/4 {
		return
	}
	select {
	case s.full <- struct{}{}:
	default: // it is wanted already
	}
}

// collectIn collects the files of one provider whose numbers are not beyond newest.
func (s *Store) collectIn(p *member, newest storage.File, live func(storage.Address, storage.File) bool, c *Collected) (first error) {
	names, err := s.listClaimed(p)
	if err != nil {
		return fmt.Errorf("list objects: %w", err)
	}
	refused := 0 // removals in a row
	for _, n := range p.rotate(names) {
		f, ok := parseName(n)
		// The order matters: an upload that ended before the first question has its row.
		if !ok || f.file > newest || s.writes(f.file) || !f.part && live(f.address, f.file) {
			continue
		}
		if refused == maxRefusals {
			c.Unremoved++
			continue
		}
		size := p.size(n)
		if err := p.remove(n); err != nil {
			c.Unremoved++
			if first == nil {
				first = fmt.Errorf("remove a file without an object: %w", err)
			}
			if isForbidden(err) {
				refused++
				p.refused = n
			}
			if refused == maxRefusals { // the same error in each collection, which begin with different files
				first = fmt.Errorf("remove files without an object: provider %s forbids it: %w", p.Name, os.ErrPermission)
			}
			if isOfDevice(err) {
				return first
			}
			continue
		}
		c.Files++
		c.Bytes += size
		refused = 0
	}
	return first
}

// maxRefusals is how many removals in a row a bucket may forbid. Then it is asked for no other one in that collection: each is a request.
const maxRefusals = 8

// rotate returns sorted names from the one after the last that m has forbidden to remove. So each is tried in one of some collections.
func (m *member) rotate(names []string) []string {
	at, found := slices.BinarySearch(names, m.refused)
	if found {
		at++
	}
	return slices.Concat(names[at:], names[:at])
}

// listClaimed returns the names of all files of a provider. The files of another directory are not removed, so the identity is checked first.
func (s *Store) listClaimed(p *member) (names []string, err error) {
	if err = s.checkClaimed(p); err == nil {
		names, err = p.Port.List()
	}
	return names, p.note(err)
}

func (s *Store) writes(f storage.File) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uploads[f] || s.repairs[f]
}

// isOfThisRun reports whether an upload since the start had a number.
func (s *Store) isOfThisRun(f storage.File) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first > 0 && s.first <= f && f <= s.next
}
