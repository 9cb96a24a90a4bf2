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

// A resultsFile has the result of each line of a batch file. An earlier run of the same file with the same prefix may have written a part
// of it: then only the results that it lacks are added. Nothing that it has is changed: after the keys have expired, it may be the only
// place that says what was applied.
type resultsFile struct {
	file *os.File
	to   *outputWriter  // writes to file
	has  map[string]int // results by the key of their batch
	end  int64          // of its last whole line; -1: it ends with one
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
	r := &resultsFile{file: f, to: c.output(f), has: map[string]int{}, end: -1}
	if flags == os.O_RDWR {
		if v.File == "-" {
			from = c.in
		}
		err = v.readResults(r, from)
	}
	if err != nil {
		return nil, exit.Unable(errors.Join(fmt.Errorf("--results %s %w; nothing was sent", v.Results, err), f.Close()))
	}
	return r, nil
}

// readResults reads what the file has, or returns why it may not be written.
func (v *batchCmd) readResults(r *resultsFile, from io.Reader) error {
	is, err := r.file.Stat()
	if err != nil {
		return err
	}
	if source, ok := from.(*os.File); ok {
		if in, err := source.Stat(); err == nil && os.SameFile(is, in) {
			return errors.New("is the file with the operations")
		}
	}
	text := bufio.NewReaderSize(r.file, 2*maxLine)
	for end := int64(0); ; {
		whole, err := text.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(whole) == 0:
			return nil
		case errors.Is(err, io.EOF) && end > 0: // the earlier run ended within a line
			r.end = end
			return nil
		}
		var l struct {
			Key string `json:"key"`
		}
		if err != nil || json.Unmarshal(whole, &l) != nil || strings.TrimRight(l.Key, "0123456789") != v.Key+"." {
			return fmt.Errorf("exists, and has something else than results of the prefix %s: name a new file", v.Key)
		}
		r.has[l.Key]++
		end += int64(len(whole))
	}
}

// add adds those results of a batch that the file lacks.
func (r *resultsFile) add(batch []resultLine) error {
	lacks := batch[min(r.has[batch[0].Key], len(batch)):]
	if len(lacks) > 0 && r.end >= 0 {
		_, err := r.file.Seek(r.end, io.SeekStart)
		if err = errors.Join(err, r.file.Truncate(r.end)); err != nil {
			r.to.fail(err)
			return err
		}
		r.end = -1
	}
	for i := range lacks {
		if err := r.write(&lacks[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *resultsFile) write(l *resultLine) error {
	text, err := line(l)
	if err == nil {
		_, err = r.to.Write(append(text, '\n'))
	}
	return err
}
