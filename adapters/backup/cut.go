package backup

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"macronode/adapters/fs"
	"macronode/core/words"
)

// cutName is the file of a copy that says where it ends: what of the copy is not whole to
// there is damaged, however short it is.
const cutName = "copy.cut"

// ErrCut says that a copy does not say where it ends.
var ErrCut = errors.New("backup: copy.cut is none")

// keep writes down where a copy ends, which is durable.
func (c Cut) keep(to fs.FS) error {
	if err := to.Remove(cutName + ".new"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("backup: %w", err)
	}
	f, err := to.Create(cutName + ".new")
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	text := fmt.Sprintf("%016x %d %d %x\n", uint64(c.Journal), uint64(c.LSN), int64(c.At), c.Root)
	_, err = f.WriteAt([]byte(text), 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return errors.Join(to.Rename(cutName+".new", cutName), to.SyncDir())
}

// CutOf is where a copy says that it ends; nowhere, where a directory is no copy.
func CutOf(from fs.FS) (c Cut, err error) {
	f, err := from.Open(cutName)
	if errors.Is(err, os.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("backup: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	text := make([]byte, 256)
	n, err := f.ReadAt(text, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return c, fmt.Errorf("backup: %w", err)
	}
	part := strings.Fields(string(text[:n]))
	if len(part) != 4 || len(part[3]) != 2*len(c.Root) {
		return c, ErrCut
	}
	id, err1 := strconv.ParseUint(part[0], 16, 64)
	lsn, err2 := strconv.ParseUint(part[1], 10, 48)
	at, err3 := strconv.ParseInt(part[2], 10, 64)
	_, err4 := hex.Decode(c.Root[:], []byte(part[3]))
	if errors.Join(err1, err2, err3, err4) != nil {
		return Cut{}, ErrCut
	}
	c.Journal, c.LSN, c.At = words.JournalID(id), words.LSN(lsn), words.Time(at)
	return c, nil
}
