// Package durable stores the last durable frame of a journal outside of its segments. So frames
// that the segments have lost are not mistaken for frames that were never written.
//
//	synced frames ─► Mark ─Write─► a file, replaced atomically ─Read─► Mark
package durable

import (
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strconv"
	"strings"

	"macronode/adapters/fs"
	"macronode/core/types"
)

// Name is the file in a data directory, and in a copy of a journal that had lost frames.
const Name = "durable"

// ErrFormat reports a damaged file.
var ErrFormat = errors.New("durable: the file is damaged")

// A Mark is the last frame of a journal that is known to be durable. The zero Mark means none.
type Mark struct {
	Journal types.JournalID
	LSN     types.LSN
	Root    types.Root // of the chain, at that frame
	At      types.Time
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Write replaces the file of that name. If it returns nil, the mark survives a power loss;
// otherwise the file has this mark or the previous one.
func (m Mark) Write(to fs.FS, name string) error {
	text := fmt.Sprintf("%016x %d %d %x", uint64(m.Journal), uint64(m.LSN), int64(m.At), m.Root)
	return replace(to, name, fmt.Sprintf("%s %08x\n", text, crc32.Checksum([]byte(text), castagnoli)))
}

// WriteUnknown replaces the file of that name by one that Read reports as damaged: which frame
// was durable last is unknown.
func WriteUnknown(to fs.FS, name string) error { return replace(to, name, "unknown\n") }

func replace(to fs.FS, name, text string) error {
	if err := fs.Replace(to, name, text); err != nil {
		return fmt.Errorf("durable: %w", err)
	}
	return nil
}

// Read returns the mark of a file, or the zero Mark if there is no file.
func Read(from fs.FS, name string) (m Mark, err error) {
	f, err := from.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, fmt.Errorf("durable: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	text := make([]byte, 256)
	n, err := f.ReadAt(text, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return m, fmt.Errorf("durable: %w", err)
	}
	return parse(string(text[:n]))
}

// parse parses the text of a file. Old copies have no checksum.
func parse(text string) (m Mark, err error) {
	part := strings.Fields(text)
	if len(part) == 5 && part[4] == fmt.Sprintf("%08x", crc32.Checksum([]byte(strings.Join(part[:4], " ")), castagnoli)) {
		part = part[:4]
	}
	if len(part) != 4 || len(part[3]) != 2*len(m.Root) {
		return Mark{}, ErrFormat
	}
	id, err1 := strconv.ParseUint(part[0], 16, 64)
	lsn, err2 := strconv.ParseUint(part[1], 10, 48)
	at, err3 := strconv.ParseInt(part[2], 10, 64)
	_, err4 := hex.Decode(m.Root[:], []byte(part[3]))
	if errors.Join(err1, err2, err3, err4) != nil {
		return Mark{}, ErrFormat
	}
	m.Journal, m.LSN, m.At = types.JournalID(id), types.LSN(lsn), types.Time(at)
	return m, nil
}
