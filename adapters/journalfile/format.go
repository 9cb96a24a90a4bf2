// Package journalfile stores the journal in segment files.
//
//	journal:  00000001.seg · 00000002.seg · …      each ends where its successor begins
//	segment:  start · (batch · frame…)… · zeros
//	item:     magic 4 · length 4 · payload · root 32 (frames only) · CRC32C 4 of all before
//
//	start     format version 4 · journal id 8 · first LSN 8 · known durable LSN 8 · epoch 8 · root before it 32
//	batch     known durable LSN 8 · epoch 8 · first LSN 8 · bytes of its frames 4 · their count 4
//	frame     body as in core/record; its root is that of the chain after it
//
// All numbers are little-endian. The format is frozen. A segment gets its name only when its
// first frames are on disk. Nothing is changed or truncated in place.
package journalfile

import (
	"encoding/binary"
	"hash/crc32"

	"macronode/core/types"
)

// version is the format version. Segments of other versions are not touched.
const version = 1

// A magic is the first four bytes of an item: MNS1, MNB1, MNF1.
type magic uint32

const (
	startMagic magic = 0x31534e4d
	batchMagic magic = 0x31424e4d
	frameMagic magic = 0x31464e4d
)

const (
	prefixSize = 4 + 4
	rootSize   = 32
	sumSize    = 4
	startSize  = 4 + 4*8 + rootSize // of payloads
	batchSize  = 3*8 + 2*4

	maxStart = 4096 // of any format version

	startItem  = prefixSize + startSize + sumSize
	batchItem  = prefixSize + batchSize + sumSize
	frameExtra = prefixSize + rootSize + sumSize // bytes of a frame in addition to its body
)

// A start is the header of a segment. Known is at least the last frame before the segment; it is
// more if the frames that follow were made durable with the segment.
type start struct {
	version uint32
	journal types.JournalID
	first   types.LSN
	known   types.LSN
	epoch   types.Epoch
	prev    types.Root
}

// A batch is the header of the frames that one sync makes durable.
type batch struct {
	known        types.LSN // last durable LSN when the batch was written
	epoch        types.Epoch
	first        types.LSN
	bytes, count uint32
}

// An item is a part of a segment. Size 0 means no item.
type item struct {
	magic   magic
	payload []byte
	root    []byte // of a frame
	size    int64
}

// castagnoli is a function because Go caches that table.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func u32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func u64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

func (s start) put(to []byte) []byte {
	b := make([]byte, 0, startSize)
	b = binary.LittleEndian.AppendUint32(b, s.version)
	for _, n := range [...]uint64{uint64(s.journal), uint64(s.first), uint64(s.known), uint64(s.epoch)} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return put(to, startMagic, append(b, s.prev[:]...), nil)
}

// isStart reports whether an item is the start of a segment.
func (it item) isStart() bool { return it.magic == startMagic && len(it.payload) == startSize }

func (it item) start() start {
	b := it.payload
	return start{u32(b), types.JournalID(u64(b[4:])), types.LSN(u64(b[12:])), types.LSN(u64(b[20:])),
		types.Epoch(u64(b[28:])), types.Root(b[36:])}
}

func (h batch) put(to []byte) []byte {
	b := make([]byte, 0, batchSize)
	for _, n := range [...]uint64{uint64(h.known), uint64(h.epoch), uint64(h.first)} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	b = binary.LittleEndian.AppendUint32(b, h.bytes)
	return put(to, batchMagic, binary.LittleEndian.AppendUint32(b, h.count), nil)
}

func (it item) batch() batch {
	b := it.payload
	return batch{types.LSN(u64(b)), types.Epoch(u64(b[8:])), types.LSN(u64(b[16:])), u32(b[24:]), u32(b[28:])}
}

// plausible reports whether h could have been written: a batch cannot know frames durable that
// come after it.
func (h batch) plausible() bool {
	least := uint64(h.count) * (frameExtra + 1)
	return h.known < h.first && h.first <= types.MaxLSN && h.count > 0 && uint64(h.bytes) >= least
}

// put adds an item to buf.
func put(buf []byte, m magic, payload, root []byte) []byte {
	at := len(buf)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(m))
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(payload)))
	buf = append(append(buf, payload...), root...)
	return binary.LittleEndian.AppendUint32(buf, crc32.Checksum(buf[at:], castagnoli()))
}

// extent returns the length of an item from its first bytes; 0 if they are not an item.
func extent(prefix []byte) int64 {
	if len(prefix) < prefixSize {
		return 0
	}
	length := u32(prefix[4:])
	switch magic(u32(prefix)) {
	case startMagic: // a later format may have more after its version
		if length >= 4 && length <= maxStart {
			return int64(length) + prefixSize + sumSize
		}
	case batchMagic:
		if length == batchSize {
			return batchItem
		}
	case frameMagic:
		if length <= types.MaxFrame {
			return int64(length) + frameExtra
		}
	}
	return 0
}

// take parses the item that fills buf.
func take(buf []byte) item {
	end := len(buf) - sumSize
	if crc32.Checksum(buf[:end], castagnoli()) != u32(buf[end:]) {
		return item{}
	}
	it := item{magic: magic(u32(buf)), size: int64(len(buf))}
	body := prefixSize + int(u32(buf[4:]))
	it.payload, it.root = buf[prefixSize:body:body], buf[body:end:end]
	return it
}
