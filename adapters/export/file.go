package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"macronode/adapters/fs"
)

// fileBytes is the size at which a file is complete and the next one begins.
const fileBytes = 64 << 20

// fileSink appends items to files, one JSON object a line. Each stream has files of its own, so that all lines of a file are alike:
//
//	usage-00000001.ndjson, usage-00000002.ndjson, …
//
// A line is synced before its outcome is ok. After a crash the last line may be torn: it was never acknowledged, so it is
// cut off and delivered again. Only the file with the highest number changes; the others are complete and can be moved away.
type fileSink struct {
	limit int64
	disk  disker
	mu    sync.Mutex
	dir   directory
	at    map[string]*lines // by stream
}

// disker opens files and locks directories. A test replaces it to make them fail.
type disker interface {
	open(path string) (file, error)
	lock(dir fs.Dir, holder string) (*fs.Held, error)
}

type file interface {
	io.WriteCloser
	io.ReaderAt
	Stat() (os.FileInfo, error)
	Truncate(size int64) error
	Sync() error
}

// lines is the file of a stream with the highest number.
type lines struct {
	number uint64 // 0: unknown
	path   string
	file   file // nil: to be opened
	size   int64
}

func newFile(c *Config, limit int64, disk disker) *fileSink {
	return &fileSink{dir: directory{path: c.Dir, holder: "sink " + c.Name, reserved: c.Reserved, disk: disk}, limit: limit, disk: disk, at: map[string]*lines{}}
}

// Close closes the files, and then unlocks the directory.
func (f *fileSink) Close() (err error) {
	for _, l := range f.at {
		err = errors.Join(err, l.close())
	}
	return errors.Join(err, f.dir.close())
}

// Deliver appends a line. After an error the file is opened again, and cut to its last whole line.
func (f *fileSink) Deliver(_ context.Context, item *Item) Result {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.at[item.Stream]
	if l == nil {
		l = new(lines)
		f.at[item.Stream] = l
	}
	if err := f.append(l, item.Stream, item.Body); err != nil {
		_ = l.close() // the error before it is the cause
		return retryable("%v", plain(err))
	}
	return Result{Outcome: OK}
}

func (f *fileSink) append(l *lines, stream string, body []byte) error {
	if l.file != nil && !l.isHere() { // it was moved or removed
		if err := l.close(); err != nil {
			return err
		}
	}
	if l.file != nil && l.size >= f.limit {
		if err := l.close(); err != nil {
			return err
		}
	}
	if l.file == nil {
		if err := f.open(l, stream); err != nil {
			return err
		}
	}
	line := append(bytes.Clone(body), '\n')
	if _, err := l.file.Write(line); err != nil {
		return errors.Join(err, l.file.Truncate(l.size))
	}
	if err := l.file.Sync(); err != nil {
		return errors.Join(err, l.file.Truncate(l.size)) // the line is written again: the system may have lost it, and say so once
	}
	l.size += int64(len(line))
	return nil
}

// open opens the file with the highest number, or the next one if that is full or was removed.
func (f *fileSink) open(l *lines, stream string) error {
	if err := f.dir.open(); err != nil {
		return err
	}
	last, err := lastNumber(f.dir.path, stream)
	if err != nil {
		return err
	}
	if last < l.number { // a number is not used twice
		last = l.number + 1
	}
	for number := max(1, last); ; number++ {
		l.path = filepath.Join(f.dir.path, fmt.Sprintf("%s-%08d%s", stream, number, fileEnd))
		if err := l.open(f.disk); err != nil {
			return err
		}
		if l.size < f.limit {
			l.number = number
			return fs.Dir(f.dir.path).SyncDir()
		}
		if err := l.close(); err != nil {
			return err
		}
	}
}

const fileEnd = ".ndjson"

// lastNumber returns the highest number of the files of a stream; 0: there is none.
func lastNumber(dir, stream string) (last uint64, err error) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, e := range all {
		text, ok := strings.CutPrefix(e.Name(), stream+"-")
		if text, end := strings.CutSuffix(text, fileEnd); ok && end {
			if n, err := strconv.ParseUint(text, 10, 63); err == nil {
				last = max(last, n)
			}
		}
	}
	return last, nil
}

// open opens a file and cuts off a torn last line.
func (l *lines) open(from disker) error {
	f, err := from.open(l.path)
	if err != nil {
		return err
	}
	size, err := wholeLines(f)
	if err == nil {
		err = errors.Join(f.Truncate(size), f.Sync())
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.size = f, size
	return nil
}

// wholeLines returns the size of a file up to the end of its last whole line.
func wholeLines(f file) (int64, error) {
	is, err := f.Stat()
	if err != nil {
		return 0, err
	}
	part := make([]byte, 64<<10)
	for end := is.Size(); end > 0; {
		from := max(0, end-int64(len(part)))
		n, err := f.ReadAt(part[:end-from], from)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := bytes.LastIndexByte(part[:n], '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		end = from
	}
	return 0, nil
}

func (l *lines) close() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// isHere reports whether the path still refers to the open file.
func (l *lines) isHere() bool {
	is, err := l.file.Stat()
	at, also := os.Lstat(l.path)
	return err == nil && also == nil && os.SameFile(is, at)
}

// disk opens files of the operating system.
type disk struct{}

func (disk) lock(dir fs.Dir, holder string) (*fs.Held, error) { return fs.Lock(dir, holder) }

var errRegular = errors.New("a file of the export is not a regular file")

// open opens a file to append, or creates it.
func (disk) open(path string) (file, error) {
	if is, err := os.Lstat(path); err == nil && !is.Mode().IsRegular() {
		return nil, errRegular
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
}
