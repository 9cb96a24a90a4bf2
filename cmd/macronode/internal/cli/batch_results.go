package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-json-experiment/json"

	"macronode/adapters/client"
	"macronode/cmd/macronode/internal/exit"
)

// A resultsFile has the result of each line of a batch file. An earlier run of the same file with the same prefix may
// have written it: then the results that the node returns again replace it.
//
//	open ─► begin ─┬─ replayed: empty the file ─► write each result
//	               └─ not replayed, because the keys have expired: append
type resultsFile struct {
	file    *os.File
	to      *outputWriter // writes to file
	earlier int64         // bytes of the earlier run; 0 after begin
}

// A resultLine is one line of the file.
type resultLine struct {
	Line    int             `json:"line"`
	Key     string          `json:"key"` // of its batch
	Receipt *client.Receipt `json:"receipt,omitzero"`
	Problem *client.Problem `json:"problem,omitzero"`
}

// openResults opens the file of --results. It refuses the file of the operations, and any file that is not of an earlier
// run with the same prefix. It changes nothing in the file.
func (v *batchCmd) openResults(c *Console, from io.Reader) (*resultsFile, error) {
	flags := os.O_RDWR | os.O_CREATE | os.O_EXCL
	old, err := os.Stat(v.Results)
	switch {
	case err != nil: // opening it gives the reason
	case !old.Mode().IsRegular():
		flags = os.O_WRONLY // a pipe or a device
	default:
		flags = os.O_RDWR
	}
	f, err := os.OpenFile(v.Results, flags, 0o600)
	if err != nil {
		return nil, exit.Unable(fmt.Errorf("--results: %w", err))
	}
	r := &resultsFile{file: f, to: c.output(f)}
	if flags == os.O_RDWR {
		if v.File == "-" {
			from = c.in
		}
		r.earlier, err = v.checkResults(f, from)
	}
	if err != nil {
		return nil, exit.Unable(errors.Join(fmt.Errorf("--results %s %w; nothing was sent", v.Results, err), f.Close()))
	}
	return r, nil
}

// checkResults returns the size of an existing file, or why it may not be written.
func (v *batchCmd) checkResults(f *os.File, from io.Reader) (int64, error) {
	is, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if source, ok := from.(*os.File); ok {
		if in, err := source.Stat(); err == nil && os.SameFile(is, in) {
			return 0, errors.New("is the file with the operations")
		}
	}
	if is.Size() == 0 {
		return 0, nil
	}
	first, _ := bufio.NewReader(io.NewSectionReader(f, 0, 2*maxLine)).ReadBytes('\n')
	var l struct {
		Key string `json:"key"`
	}
	if json.Unmarshal(first, &l) != nil || strings.TrimRight(l.Key, "0123456789") != v.Key+"." {
		return 0, fmt.Errorf("exists, and has no results of the prefix %s: name a new file", v.Key)
	}
	return is.Size(), nil
}

// begin prepares the file for the results of the first batch.
func (r *resultsFile) begin(isReplayed bool) (err error) {
	size, last := r.earlier, make([]byte, 1)
	r.earlier = 0
	switch {
	case size == 0:
		return nil
	case isReplayed:
		err = r.file.Truncate(0)
	default:
		_, err = r.file.ReadAt(last, size-1)
		_, end := r.file.Seek(0, io.SeekEnd)
		err = errors.Join(err, end)
	}
	if err != nil {
		r.to.fail(err)
		return err
	}
	if !isReplayed && last[0] != '\n' { // the earlier run ended within a line
		_, err = r.to.Write([]byte("\n"))
	}
	return err
}

func (r *resultsFile) write(l *resultLine) error {
	text, err := line(l)
	if err == nil {
		_, err = r.to.Write(append(text, '\n'))
	}
	return err
}
