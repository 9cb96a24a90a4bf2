package export

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
)

// Limits of what a file sink reads when it opens the files of a stream.
const (
	// FileWindow is the number of lines of a lane that are found again: those that were not settled before a crash, and one that was
	// being delivered.
	FileWindow = 64 + 1

	fileLanes = 8192                   // lanes whose lines are found again
	fileTail  = fileLanes * FileWindow // lines that are read
	fileLine  = 1 << 20                // bytes of a line; nothing is read before a longer one
	filePart  = 64 << 10               // bytes that are read at once
)

// FileBytes is the memory of a tail.
const FileBytes = fileTail*40 + fileLanes*256 + fileLine

// tail has the last lines of each lane that the files of a stream had when the sink opened them, by the subject of the lane. A
// lane leaves it when it goes on after them, or begins elsewhere: an operator can deliver the same lines once more.
type tail map[string]*run

// A run is the last lines of a lane whose positions follow one another.
type run struct {
	last  uint64   // position of the last line
	lines []tailed // the last line first
	ended bool     // the line before has another position: it belongs to an earlier delivery
}

// A tailed is a line of a run.
type tailed struct {
	hash [sha256.Size / 2]byte
	file uint64 // number of the file that has it
}

func hashLine(line []byte) (h [sha256.Size / 2]byte) {
	sum := sha256.Sum256(line)
	copy(h[:], sum[:])
	return h
}

// take returns the number of the file that has a line, and removes the line and those of its lane before it.
func (t tail) take(lane string, seq uint64, line []byte) (number uint64, had bool) {
	r := t[lane]
	if r == nil {
		return 0, false
	}
	if seq > r.last || r.last-seq >= uint64(len(r.lines)) || r.lines[r.last-seq].hash != hashLine(line) {
		delete(t, lane)
		return 0, false
	}
	number = r.lines[r.last-seq].file
	if r.lines = r.lines[:r.last-seq]; seq == r.last {
		delete(t, lane)
	}
	return number, true
}

// add adds a line before those that were added.
func (t tail) add(lane string, seq uint64, line []byte, number uint64) {
	r := t[lane]
	switch {
	case r == nil && len(t) >= fileLanes:
		return
	case r == nil:
		r = &run{last: seq}
		t[lane] = r
	}
	if r.ended = r.ended || seq != r.last-uint64(len(r.lines)); !r.ended && len(r.lines) < FileWindow {
		r.lines = append(r.lines, tailed{hashLine(line), number})
	}
}

// readTail reads the last lines of the files of a stream, whose numbers are sorted from the highest one on.
func (f *fileSink) readTail(stream string, numbers []uint64) (tail, error) {
	t, left := tail{}, fileTail
	for _, number := range numbers {
		if left == 0 {
			break
		}
		if err := f.readFile(t, stream, number, &left); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// readFile adds the lines of a file to a tail, the last one first, for as long as there are some left to read.
func (f *fileSink) readFile(t tail, stream string, number uint64, left *int) error {
	from, err := f.disk.read(f.pathOf(stream, number))
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission), errors.Is(err, errRegular): // it was moved away, or is another's
		return nil
	case err != nil:
		return err
	}
	size, err := from.Size()
	if err == nil {
		size, err = lineEnd(from, size)
	}
	if err == nil {
		err = eachLine(from, size, func(line []byte) bool {
			if lane, seq, ok := laneOfLine(stream, line); ok {
				t.add(lane, seq, line, number)
			}
			*left--
			return *left > 0
		})
	}
	if errors.Is(err, errLongLine) {
		*left, err = 0, nil
	}
	return errors.Join(err, from.Close())
}

var errLongLine = fmt.Errorf("a line has more than %d bytes", fileLine)

// lineEnd returns the end of the last line before an offset.
func lineEnd(f io.ReaderAt, end int64) (int64, error) {
	for part := make([]byte, filePart); end > 0; {
		from := max(0, end-filePart)
		n, err := readAt(f, part[:end-from], from)
		if err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part[:n], '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		end = from
	}
	return 0, nil
}

// eachLine passes the lines before the end of a line, without their ends, the last one first, until more returns false.
func eachLine(f io.ReaderAt, end int64, more func(line []byte) bool) error {
	var rest []byte // ends with the end of a line
	for end > 0 {
		from := max(0, end-filePart)
		part := make([]byte, end-from, int(end-from)+len(rest))
		if n, err := readAt(f, part, from); err != nil || n < len(part) {
			return errors.Join(err, io.ErrUnexpectedEOF)
		}
		rest, end = append(part, rest...), from
		for {
			i := bytes.LastIndexByte(rest[:len(rest)-1], '\n')
			if len(rest)-1-max(0, i) > fileLine {
				return errLongLine
			}
			if i < 0 {
				break
			}
			if !more(rest[i+1 : len(rest)-1]) {
				return nil
			}
			rest = rest[:i+1]
		}
	}
	if len(rest) > 0 {
		more(rest[:len(rest)-1])
	}
	return nil
}

// readAt reads as many bytes as there are.
func readAt(f io.ReaderAt, b []byte, at int64) (int, error) {
	n, err := f.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// laneOfLine returns the subject and the position of the item of a line. The lines begin with the tenant, and the names in it need no
// escape. A text of JSON has no quote without a backslash before it, so what looks like the name of a member is one.
func laneOfLine(stream string, line []byte) (lane string, seq uint64, ok bool) {
	tenant, rest, ok := textAfter(line, `{"tenant":"`)
	if !ok || !bytes.HasPrefix(line, []byte(`{"tenant":"`)) {
		return "", 0, false
	}
	of := Item{Stream: stream, Tenant: tenant}
	if stream == Usage {
		if of.Dimension, rest, ok = textAfter(rest, `,"dimension":"`); !ok {
			return "", 0, false
		}
	}
	_, rest, ok = bytes.Cut(rest, []byte(`,"seq":`))
	digits := bytes.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if !ok || digits < 0 {
		return "", 0, false
	}
	seq, err := strconv.ParseUint(string(rest[:digits]), 10, 64)
	return subjectOf(&of), seq, err == nil && seq > 0
}

// textAfter returns the text between the end of a mark and the next quote, and what follows.
func textAfter(line []byte, mark string) (text string, rest []byte, ok bool) {
	_, rest, ok = bytes.Cut(line, []byte(mark))
	between, rest, ended := bytes.Cut(rest, []byte{'"'})
	return string(between), rest, ok && ended
}
