// Package epochs records which processes have written a journal, in a file outside of its segments. So the segments of a copy that was started,
// too, are not mistaken for those of the journal.
//
//	start of a writer ──Next──► a random epoch, recorded before its first segment
//	file ──Load──► all epochs ──journalfile.Own──► the segments that they wrote
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

// maxFile is the largest file that is read: over a million starts need less. A larger one is damaged.
const maxFile = 64 << 20

// A List has the epochs of a journal that a process opens for writing.
type List struct {
	Dir     fs.FS         // of the file
	All     []types.Epoch // of the earlier writers, in ascending order; nil: there are none
	Partial bool          // segments were missing or damaged when the list was made from the others: it may lack writers
	Random  func() uint64 // so that two copies of a journal draw different epochs
}

// text returns the list as text. The first line has its length, and whether it is partial.
func (l List) text() string {
	var b strings.Builder
	line := func(text string) { fmt.Fprintf(&b, "%s %s\n", text, checksum(text)) }
	begin := fmt.Sprintf("epochs %d", len(l.All))
	if l.Partial {
		begin += partial
	}
	line(begin)
	for _, e := range l.All {
		line(fmt.Sprintf("%016x", uint64(e)))
	}
	return b.String()
}

// partial is the end of the first line of a partial list.
const partial = " partial"

func checksum(text string) string {
	return fmt.Sprintf("%08x", crc32.Checksum([]byte(text), castagnoli))
}

// Write replaces the file. It has the list twice: one damaged place loses no epoch.
func (l List) Write() error {
	if err := fs.Replace(l.Dir, Name, l.text()+l.text()); err != nil {
		return fmt.Errorf("epochs: %w", err)
	}
	return nil
}

// Load returns the list of the file; an empty one if there is no file. With ErrFormat, the file has no list from which no epoch is missing.
func Load(dir fs.FS) (List, error) {
	none := List{Dir: dir}
	text, err := readFile(dir)
	if errors.Is(err, os.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("epochs: %w", err)
	}
	l, count := none, 0
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		at := strings.LastIndexByte(line, ' ')
		if at <= 0 || line[at+1:] != checksum(line[:at]) {
			continue
		}
		value := line[:at]
		if n, isCount := strings.CutPrefix(value, "epochs "); isCount {
			n, isPartial := strings.CutSuffix(n, partial)
			if count, err = strconv.Atoi(n); err != nil {
				return none, fmt.Errorf("%w: %w", ErrFormat, err)
			}
			l.Partial = l.Partial || isPartial
			continue
		}
		e, err := strconv.ParseUint(value, 16, 64)
		if err != nil {
			return none, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		l.All = append(l.All, types.Epoch(e))
	}
	slices.Sort(l.All)
	l.All = slices.Compact(l.All)
	if count == 0 || len(l.All) != count {
		return none, fmt.Errorf("%w: it has %d of %d", ErrFormat, len(l.All), count)
	}
	return l, nil
}

// readFile returns the text of the file; ErrFormat if it is larger than maxFile.
func readFile(dir fs.FS) (string, error) {
	f, err := dir.Open(Name)
	if err != nil {
		return "", err
	}
	size, err := f.Size()
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	if size > maxFile {
		return "", fmt.Errorf("%w: it has %d bytes, at most %d are read", ErrFormat, size, maxFile)
	}
	text, err := fs.ReadAll(dir, Name)
	return string(text), err
}

// most is the distance between two epochs: 2³² starts fit.
const most = 1 << 31

// Next draws the epoch of a new writer, which is higher than last, and records it with the earlier ones. It must be durable before the first
// segment of the writer, which is not read without it.
func (l List) Next(last types.Epoch) (types.Epoch, error) {
	e := last + 1 + types.Epoch(l.Random()%most)
	l.All = append(slices.Clone(l.All), e)
	slices.Sort(l.All)
	l.All = slices.Compact(l.All)
	return e, l.Write()
}
