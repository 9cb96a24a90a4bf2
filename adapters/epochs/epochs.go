// Package epochs records which processes have written a journal, in a file outside of its segments. So the segments of a copy that was started,
// too, are not mistaken for those of the journal.
//
//	start of a writer ──Next──► a random epoch, recorded before its first segment
//	file ──Read──► all epochs ──journalfile.Own──► the segments that they wrote
package epochs

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"strconv"
	"strings"

	"macronode/adapters/fs"
	"macronode/core/types"
)

// Name is the file in a data directory, and in a backup.
const Name = "epochs"

// ErrFormat reports a file from which an epoch is missing.
var ErrFormat = errors.New("epochs: the file is damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// lines returns a list as text. The first line has its length.
func lines(all []types.Epoch) string {
	var b strings.Builder
	line := func(format string, value uint64) {
		text := fmt.Sprintf(format, value)
		fmt.Fprintf(&b, "%s %08x\n", text, crc32.Checksum([]byte(text), castagnoli))
	}
	line("epochs %d", uint64(len(all)))
	for _, e := range all {
		line("%016x", uint64(e))
	}
	return b.String()
}

// Write replaces the file. It has the list twice: one damaged place loses no epoch.
func Write(dir fs.FS, all []types.Epoch) error {
	if err := fs.Replace(dir, Name, lines(all)+lines(all)); err != nil {
		return fmt.Errorf("epochs: %w", err)
	}
	return nil
}

// Read returns the epochs of the file, in the order in which they were recorded; none if there is no file. With ErrFormat, the file has no list
// from which none is missing.
func Read(dir fs.FS) (all []types.Epoch, err error) {
	text, err := fs.ReadAll(dir, Name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("epochs: %w", err)
	}
	count := 0
	for line := range strings.Lines(string(text)) {
		value, sum, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if value == "epochs" {
			n, crc, _ := strings.Cut(sum, " ")
			value, sum = value+" "+n, crc
		}
		if sum != fmt.Sprintf("%08x", crc32.Checksum([]byte(value), castagnoli)) {
			continue
		}
		if n, isCount := strings.CutPrefix(value, "epochs "); isCount {
			if count, err = strconv.Atoi(n); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrFormat, err)
			}
			continue
		}
		e, err := strconv.ParseUint(value, 16, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		all = append(all, types.Epoch(e))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if count == 0 || len(all) != count {
		return nil, fmt.Errorf("%w: it has %d of %d", ErrFormat, len(all), count)
	}
	return all, nil
}

// A List are the epochs of a journal that a process opens for writing.
type List struct {
	Dir    fs.FS         // of the file
	All    []types.Epoch // of the earlier writers; nil: there are none
	Random func() uint64 // so that two copies of a journal draw different epochs
}

// most is the distance between two epochs: 2³² starts fit.
const most = 1 << 31

// Next draws the epoch of a new writer, which is higher than last, and records it with the earlier ones. It must be durable before the first
// segment of the writer, which is not read without it.
func (l List) Next(last types.Epoch) (types.Epoch, error) {
	e := last + 1 + types.Epoch(l.Random()%most)
	all := append(slices.Clone(l.All), e)
	slices.Sort(all)
	return e, Write(l.Dir, slices.Compact(all))
}
