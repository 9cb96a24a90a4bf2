package cli

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"macronode/adapters/client"
	"macronode/adapters/client/wire"
	"macronode/cmd/internal/jsonerror"
)

const (
	byteOrderMark = "\xef\xbb\xbf" // spreadsheets begin a file with it

	maxLine  = 64 << 10  // bytes of a line of a file
	maxBatch = 1<<20 - 1 // bytes of a batch, as the node accepts them
)

// A batchLine is the operation of a line of a file.
type batchLine struct {
	line int
	client.BatchItem
	size int // bytes in a batch
}

// A malformedLineError is the error of one line. The lines behind it can be read.
type malformedLineError struct{ error }

// Unwrap returns the error without the type.
func (e *malformedLineError) Unwrap() error { return e.error }

// batchLines reads a file line by line. An error names its line. One that is no *malformedLineError is the last value.
func batchLines(from io.Reader, format string) iter.Seq2[batchLine, error] {
	return func(yield func(batchLine, error) bool) {
		buffered := bufio.NewReaderSize(from, maxLine)
		if mark, err := buffered.Peek(len(byteOrderMark)); err == nil && string(mark) == byteOrderMark {
			_, _ = buffered.Discard(len(mark)) // it is buffered
		}
		if format == "auto" {
			if format = "csv"; looksLikeJSON(buffered) {
				format = "ndjson"
			}
		}
		read := readJSON
		if format == "csv" {
			read = readCSV
		}
		read(buffered, func(i batchLine, err error) bool {
			if err != nil {
				return yield(i, fmt.Errorf("line %d: %w", i.line, err))
			}
			raw, err := json.Marshal(i.BatchItem)
			i.size = len(raw) + 1
			return yield(i, err) && err == nil
		})
	}
}

// looksLikeJSON reports whether the first character that is not a space is a brace.
func looksLikeJSON(from *bufio.Reader) bool {
	for n := 1; ; n++ {
		ahead, err := from.Peek(n)
		if err != nil {
			return false
		}
		if c := ahead[n-1]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c == '{'
		}
	}
}

func readJSON(from io.Reader, yield func(batchLine, error) bool) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		n++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		i := batchLine{line: n}
		err := json.Unmarshal(text, &i.BatchItem, json.RejectUnknownMembers(true))
		if err = jsonerror.Describe(err); err == nil {
			err = i.validate()
		}
		if err != nil {
			err = &malformedLineError{err}
		}
		if !yield(i, err) {
			return
		}
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = errLongRow
	}
	if err != nil {
		yield(batchLine{line: n + 1}, err)
	}
}

func readCSV(from io.Reader, yield func(batchLine, error) bool) {
	limited := &rowReader{from: from}
	limited.next()
	rows := csv.NewReader(limited)
	rows.ReuseRecord = true
	heads, err := readHeads(rows)
	if err != nil {
		yield(batchLine{line: 1}, csvError(err))
		return
	}
	for {
		limited.next()
		cells, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		i := batchLine{}
		if i.line, _ = rows.FieldPos(0); err == nil {
			if err = i.setCells(heads, cells); err != nil {
				err = &malformedLineError{err}
			}
		} else if at := new(csv.ParseError); errors.As(err, &at) {
			i.line = at.StartLine
		}
		if yields := yield(i, csvError(err)); !yields || err != nil && !errors.As(err, new(*malformedLineError)) {
			return
		}
	}
}

// readHeads reads the names of the columns. Each is known, and occurs once.
func readHeads(rows *csv.Reader) (heads []string, err error) {
	cells, err := rows.Read()
	for _, name := range cells {
		name = strings.TrimSpace(name)
		switch {
		case !csvMembers[name]:
			return nil, fmt.Errorf("unknown column %q: the columns are op, from, to, beneficiary, asset, amount_minor, nonce, hold_id, expires_at, ref and memo", name)
		case slices.Contains(heads, name):
			return nil, fmt.Errorf("the column %q occurs twice", name)
		}
		heads = append(heads, name)
	}
	return heads, err
}

// rowReader reads rows of at most maxLine bytes.
type rowReader struct {
	from io.Reader
	left int
}

var errLongRow = fmt.Errorf("the line is longer than %d bytes", maxLine)

// next begins a row. What is read ahead of it counts for the one before.
func (r *rowReader) next() { r.left = maxLine }

func (r *rowReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, errLongRow
	}
	n, err := r.from.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}

// csvError removes the line number, which is added later.
func csvError(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the file is empty; a CSV file starts with the column names")
	}
	if at := new(csv.ParseError); errors.As(err, &at) {
		return at.Err
	}
	return err
}

// setCells sets the fields from a row. Empty cells are ignored.
func (i *batchLine) setCells(heads, cells []string) (err error) {
	for at, name := range heads {
		text := cells[at]
		switch {
		case text == "":
		case name == "nonce":
			i.Nonce, err = strconv.ParseInt(text, 10, 64)
		case name == "expires_at":
			i.ExpiresAt, err = time.Parse(time.RFC3339, text)
		default:
			*map[string]*string{"op": (*string)(&i.Op), "from": &i.From, "to": &i.To, "beneficiary": &i.Beneficiary, "asset": &i.Asset, "amount_minor": &i.AmountMinor,
				"hold_id": &i.HoldID, "ref": &i.Ref, "memo": &i.Memo}[name] = text
		}
		if err != nil {
			return fmt.Errorf("%s: invalid value %q", name, text)
		}
	}
	return i.validate()
}

// validate returns an error unless the operation is known and takes effect at most once for ever, also after the node
// has removed its idempotency key: a debit has a nonce, an issue a ref, and a hold ends once.
func (i *batchLine) validate() error {
	switch i.Op {
	case wire.ItemOpIssue:
		if i.Ref == "" {
			return errors.New("ref: is missing: an issue without one takes effect again when the node has removed its idempotency key")
		}
	case wire.ItemOpTransfer, wire.ItemOpBurn, wire.ItemOpHold:
		if i.Nonce < 1 {
			return fmt.Errorf("nonce: must be the next nonce of the debited account, at least 1, not %d", i.Nonce)
		}
	case wire.ItemOpCapture, wire.ItemOpRelease:
		if i.HoldID == "" {
			return errors.New("hold_id: is missing")
		}
	default:
		return fmt.Errorf("op: %q must be issue, transfer, burn, hold, capture or release", string(i.Op))
	}
	return nil
}

var csvMembers = map[string]bool{"op": true, "from": true, "to": true, "beneficiary": true, "asset": true, "amount_minor": true, "nonce": true,
	"hold_id": true, "expires_at": true, "ref": true, "memo": true}
