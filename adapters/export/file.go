package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// fileBytes is the size at which a file is complete and the next one begins.
const fileBytes = 64 << 20

// fileSink appends items to files, one JSON object a line. Each stream has files of its own, so that all lines of a file are alike:
//
//	usage-00000001.ndjson, usage-00000002.ndjson, …
//
// A line is synced before its outcome is ok, so after a crash only the last line can be torn. It is cut off and delivered again.
// A whole line that was not acknowledged is found in the tail of the files when it is delivered again, and is not repeated.
// Only the file with the highest number changes; the others are complete and can be moved away.
type fileSink struct {
	name  string
	limit int64
	disk  disker
	mu    sync.Mutex
	dir   directory
	at    map[string]*lines // by stream
}

// lines is the file of a stream with the highest number.
type lines struct {
	stream string
	number uint64 // 0: unknown
	path   string
	file   file // nil: to be opened
	size   int64
	failed bool // the file may have more than size, which is not durable
	tail   tail // nil: not read yet
	behind bool // the tail ends before what was delivered: it is read again when the file has changed
	goesOn bool // an operator has made a new file, so what earlier ones lack is given up
}

func newFile(c *Config, limit int64, disk disker) *fileSink {
	return &fileSink{name: c.Name, dir: directory{path: c.Dir, holder: "sink " + c.Name, reserved: c.Reserved, disk: disk}, limit: limit, disk: disk, at: map[string]*lines{}}
}

// Close closes the files, and then unlocks the directory.
func (f *fileSink) Close() (err error) {
	for _, l := range f.at {
		err = errors.Join(err, l.close())
	}
	return errors.Join(err, f.dir.close())
}

// Deliver appends a line, unless a crash has left it in the files. After an error the file is opened again, and cut to its last
// durable line.
func (f *fileSink) Deliver(_ context.Context, item *Item) Result {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.at[item.Stream]
	if l == nil {
		l = &lines{stream: item.Stream}
		f.at[item.Stream] = l
	}
	line := append(bytes.Clone(item.Body), '\n')
	err := f.open(l, item)
	if err == nil {
		err = f.checkFollows(l, item)
	}
	if err == nil && f.has(l, item, line) {
		return Result{Outcome: Duplicate}
	}
	if err == nil {
		err = l.append(line)
	}
	if err != nil {
		_ = l.close() // the error before it is the cause
		return retryable("%v", plain(err))
	}
	return Result{Outcome: OK}
}

// has reports whether the files had the line of an item when they were opened, and have it still.
func (f *fileSink) has(l *lines, item *Item, line []byte) bool {
	number, had := l.tail.take(subjectOf(item), item.Seq, line[:len(line)-1])
	return had && f.disk.has(f.pathOf(l.stream, number))
}

// append appends a line, and syncs it. If that fails, the file is cut: the system may have lost the line, and report it once.
func (l *lines) append(line []byte) error {
	_, err := l.file.WriteAt(line, l.size)
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		l.failed = true
		cut := l.file.Truncate(l.size)
		l.failed = cut != nil
		return errors.Join(err, cut)
	}
	l.size += int64(len(line))
	return nil
}

// open opens the file with the highest number, or the next one if that is full. If the file is open, and it was not moved, removed or
// changed, open does nothing.
func (f *fileSink) open(l *lines, item *Item) error {
	if l.file != nil {
		if l.size < f.limit && l.isHere() {
			return nil
		}
		if err := l.close(); err != nil {
			return err
		}
	}
	if err := f.checkHere(); err != nil {
		return errors.Join(err, f.dir.release())
	}
	if err := f.dir.open(); err != nil {
		return err
	}
	all, err := f.numbers(l.stream)
	if err != nil {
		return err
	}
	if len(all) == 0 && l.tail == nil {
		if err := f.checkBegins(item); err != nil {
			return errors.Join(err, f.dir.close()) // another directory may be mounted over it
		}
	}
	last := uint64(1)
	if len(all) > 0 {
		last = all[0]
	}
	number, size := l.number, l.size
	for number := last; ; number++ {
		if err := l.openFile(f.disk, number, f.pathOf(l.stream, number)); err != nil {
			return err
		}
		if l.size < f.limit {
			break
		}
		if err := l.close(); err != nil {
			return err
		}
	}
	l.goesOn = l.goesOn || number > 0 && last > number || number == 0 && l.number == last && l.size == 0
	if l.behind && (l.number != number || l.size != size) {
		l.tail, l.behind = nil, false // what was missing may be there
	}
	if err := f.disk.syncDir(f.dir.path); err != nil || l.tail != nil {
		return err
	}
	l.tail, err = f.readTail(l.stream, all)
	return err
}

// checkFollows returns an error if the files lack items of a lane before this one that were delivered, as when a disk came back with an
// older copy. It compares with the last line of the lane that the files had when they were opened.
func (f *fileSink) checkFollows(l *lines, item *Item) error {
	r := l.tail[subjectOf(item)]
	if r == nil || l.goesOn || item.Seq <= r.last+1 || item.HasPrior == nil {
		return nil
	}
	prior, err := item.HasPrior()
	if err != nil || !prior {
		return err
	}
	l.behind = true
	stream, tenant := item.Stream, ""
	if stream == Usage {
		stream += "/" + item.Dimension
	}
	if item.Tenant != "default" {
		tenant = " --tenant " + item.Tenant
	}
	return fmt.Errorf("%s lacks items %d to %d of %s: bring them back, run macronode exports backfill %s %s %d%s, or create an empty %s",
		f.dir.path, r.last+1, item.Seq-1, stream, f.name, stream, r.last+1, tenant, filepath.Base(f.pathOf(l.stream, l.number+1)))
}

// checkHere returns an error if the directory does not have the lines of a stream that this sink has written: a file system may be
// unmounted. Nothing is written then, so that the files have no gap. If an operator has made a file with a higher number, the stream
// goes on there.
func (f *fileSink) checkHere() error {
	for _, l := range f.at { //nolint:maporder // any error will do
		if l.number == 0 {
			continue
		}
		all, err := f.numbers(l.stream)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if len(all) > 0 && all[0] > l.number {
			continue
		}
		const mend = "mount its disk, bring it back, or create an empty %s"
		path, next := f.pathOf(l.stream, l.number), filepath.Base(f.pathOf(l.stream, l.number+1))
		if len(all) == 0 || all[0] < l.number {
			return fmt.Errorf("%s is missing: "+mend, path, next)
		}
		switch size, err := f.sizeOf(path); {
		case err != nil:
			return err
		case size < l.size:
			return fmt.Errorf("%s has lost lines: "+mend, path, next)
		}
	}
	return nil
}

// sizeOf returns the size of a file.
func (f *fileSink) sizeOf(path string) (int64, error) {
	of, err := f.disk.read(path)
	if err != nil {
		return 0, err
	}
	size, err := of.Size()
	return size, errors.Join(err, of.Close())
}

// checkBegins returns an error if the directory has no file of a stream, although earlier items were delivered: a file that begins with this one
// would leave out what the others have, for ever.
func (f *fileSink) checkBegins(item *Item) error {
	if item.HasPrior == nil {
		return nil
	}
	prior, err := item.HasPrior()
	if err == nil && prior {
		err = fmt.Errorf("%s has no file of the stream %s, although items before %d were delivered: mount its disk or bring the files back, or create an empty %s to go on without them",
			f.dir.path, item.Stream, item.Seq, filepath.Base(f.pathOf(item.Stream, 1)))
	}
	return err
}

const fileEnd = ".ndjson"

func (f *fileSink) pathOf(stream string, number uint64) string {
	return filepath.Join(f.dir.path, fmt.Sprintf("%s-%08d%s", stream, number, fileEnd))
}

// numbers returns the numbers of the files of a stream, the highest one first.
func (f *fileSink) numbers(stream string) (numbers []uint64, err error) {
	all, err := f.disk.list(f.dir.path)
	for _, name := range all {
		text, ok := strings.CutPrefix(name, stream+"-")
		if text, end := strings.CutSuffix(text, fileEnd); ok && end {
			if n, err := strconv.ParseUint(text, 10, 63); err == nil && n > 0 && name == filepath.Base(f.pathOf(stream, n)) {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	slices.Reverse(numbers)
	return numbers, err
}

// openFile opens a file, and cuts off a last line that is not durable. The last line that is left is durable afterwards.
func (l *lines) openFile(from disker, number uint64, path string) error {
	f, err := from.open(path)
	if err != nil {
		return err
	}
	var size int64
	if l.failed && number == l.number {
		size = l.size
	} else {
		size, err = wholeLines(f)
	}
	if err == nil {
		err = errors.Join(f.Truncate(size), f.Sync())
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.number, l.path, l.file, l.size, l.failed = number, path, f, size, false
	return nil
}

// wholeLines returns the size of a file up to the end of its last whole line, which it writes again: if an earlier process could not
// sync it, the system shows it and does not have it on the disk. A line of which a crash has lost a part is not an object.
func wholeLines(f file) (int64, error) {
	size, err := f.Size()
	if err != nil {
		return 0, err
	}
	end, err := lineEnd(f, size)
	if err != nil || end == 0 {
		return 0, err
	}
	var last []byte
	err = eachLine(f, end, func(line []byte) (more bool) {
		last = line
		return false
	})
	from := end - int64(len(last)) - 1
	switch {
	case errors.Is(err, errLongLine):
		return end, nil
	case err != nil:
		return 0, err
	case !jsontext.Value(last).IsValid():
		return from, nil
	}
	_, err = f.WriteAt(append(bytes.Clone(last), '\n'), from)
	return end, err
}

func (l *lines) close() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// isHere reports whether the path still refers to the open file, and nothing else has changed its size.
func (l *lines) isHere() bool {
	size, err := l.file.Size()
	return err == nil && size == l.size && l.file.isAt(l.path)
}
