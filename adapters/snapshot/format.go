// Package snapshot stores the state as of a frame, so that a start need not fold all earlier
// frames. A snapshot is a function of the journal: all snapshots of a frame have the same bytes.
// A start works without one.
//
//	file:   0000000000001234.snap: head · blocks · end            the number is the frame's
//	item:   magic 4 · length 4 · payload · CRC32C 4 of all before
//
//	head    format version 4 · journal id 8 · LSN 8 · At 8 · root of the chain there 32
//	block   (length 2 · row as core/state dumps it)…
//	end     rows 8 · hash of the state 8 · BLAKE3 32, chained over the payloads before
//
// All numbers are little-endian. The format is frozen. A file gets its name when all of it is on
// disk. A file with any invalid byte is rejected.
package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"

	"macronode/adapters/fs"
	"macronode/core/digest"
	"macronode/core/types"
)

// ErrDoubt reports an invalid snapshot: an older one may be valid.
var ErrDoubt = errors.New("snapshot: invalid")

const (
	version  = 1
	suffix   = ".snap"
	leftover = suffix + ".tmp" // suffix of a file without its final name
	most     = 64 << 10        // largest payload, in bytes
)

// A magic is the first four bytes of an item: MNP1, MNR1, MNE1.
type magic uint32

const (
	headMagic  magic = 0x31504e4d
	blockMagic magic = 0x31524e4d
	endMagic   magic = 0x31454e4d
)

const (
	prefixSize = 4 + 4
	sumSize    = 4
	headSize   = 4 + 3*8 + 32
	endSize    = 2*8 + 32
	rowPrefix  = 2
)

// A Head identifies the state of a snapshot: the frame LSN of a journal, its time At, and the
// root after it. The zero value is before the first frame.
type Head struct {
	LSN     types.LSN
	At      types.Time
	Journal types.JournalID
	Root    types.Root
}

func (h Head) String() string { return fmt.Sprintf("%v of journal %016x", h.LSN, uint64(h.Journal)) }

// Name returns the file name of the snapshot as of a frame.
func Name(lsn types.LSN) string { return fmt.Sprintf("%016d%s", uint64(lsn), suffix) }

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func u32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func u64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// put adds an item to buf.
func put(buf []byte, m magic, payload []byte) []byte {
	at := len(buf)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(m))
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(payload)))
	buf = append(buf, payload...)
	return binary.LittleEndian.AppendUint32(buf, crc32.Checksum(buf[at:], castagnoli()))
}

func (h Head) put() []byte {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, headSize), version)
	for _, n := range [...]uint64{uint64(h.Journal), uint64(h.LSN), uint64(h.At)} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return append(b, h.Root[:]...)
}

func head(b []byte) (h Head, err error) {
	switch {
	case len(b) >= 4 && u32(b) != version:
		return h, fmt.Errorf("%w: it is of format %d", ErrDoubt, u32(b))
	case len(b) != headSize:
		return h, fmt.Errorf("%w: its head is invalid", ErrDoubt)
	}
	return Head{LSN: types.LSN(u64(b[12:])), At: types.Time(u64(b[20:])), Journal: types.JournalID(u64(b[4:])), Root: types.Root(b[28:])}, nil
}

// An end is the last item.
type end struct {
	rows  uint64
	state types.Hash64
	chain types.Root
}

func (e end) put() []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, endSize), e.rows)
	b = binary.LittleEndian.AppendUint64(b, uint64(e.state))
	return append(b, e.chain[:]...)
}

func (e *end) add(scratch, payload []byte) []byte {
	e.chain, scratch = digest.Chain(scratch, e.chain, payload)
	return scratch
}

// List returns the frames of the snapshots in a directory, the newest first, by file name.
func List(fsys fs.FS) (all []types.LSN, err error) {
	names, err := fsys.List()
	if err != nil {
		return nil, fmt.Errorf("snapshot: list: %w", err)
	}
	for _, name := range names {
		digits, ok := strings.CutSuffix(name, suffix)
		if n, err := strconv.ParseUint(digits, 10, 64); ok && err == nil && name == Name(types.LSN(n)) {
			all = append(all, types.LSN(n))
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all, nil
}
