package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"macronode/adapters/client"
)

const (
	mostLine  = 64 << 10  // bytes of a line of a file
	mostBatch = 1<<20 - 1 // bytes of a batch, as the node takes them
)

// A wish is what a line of a file says is to be done.
type wish struct {
	line int
	client.BatchItem
	size int // bytes of it in a batch
}

// wishes reads a file line by line; an error is the last that it yields, and says which
// line it is about.
func wishes(from io.Reader, format string) iter.Seq2[wish, error] {
	return func(yield func(wish, error) bool) {
		buffered := bufio.NewReaderSize(from, mostLine)
		if format == "auto" {
			if format = "csv"; looksLikeJSON(buffered) {
				format = "ndjson"
			}
		}
		read := readJSON
		if format == "csv" {
			read = readCSV
		}
		read(buffered, func(i wish, err error) bool {
			if err != nil {
				yield(i, fmt.Errorf("line %d: %w", i.line, err))
				return false
			}
			raw, err := json.Marshal(i.BatchItem)
			i.size = len(raw) + 1
			return yield(i, err) && err == nil
		})
	}
}

// looksLikeJSON reports that the first thing that is no space is a brace.
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

func readJSON(from io.Reader, yield func(wish, error) bool) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, mostLine)
	n := 0
	for lines.Scan() {
		n++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		i := wish{line: n}
		err := json.Unmarshal(text, &i.BatchItem, json.RejectUnknownMembers(true))
		if err = jsonError(err); err == nil {
			err = i.known()
		}
		if !yield(i, err) || err != nil {
			return
		}
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("the line is longer than %d bytes", mostLine)
	}
	if err != nil {
		yield(wish{line: n + 1}, err)
	}
}

// jsonError says what a line is wrong in, and nothing of the types that it was read into.
func jsonError(err error) error {
	if at := new(jsontext.SyntacticError); errors.As(err, &at) {
		return fmt.Errorf("invalid JSON: %w", at.Err)
	}
	at := new(json.SemanticError)
	if !errors.As(err, &at) {
		return err
	}
	name := strings.TrimPrefix(string(at.JSONPointer), "/")
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return fmt.Errorf("unknown member %q", name)
	case name == "":
		return errors.New("it is no object")
	}
	return fmt.Errorf("%s: invalid value", name)
}

func readCSV(from io.Reader, yield func(wish, error) bool) {
	rows := csv.NewReader(from)
	rows.ReuseRecord = true
	heads, err := rows.Read()
	if err != nil {
		yield(wish{line: 1}, csvError(err))
		return
	}
	heads = append([]string(nil), heads...)
	for {
		cells, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		i := wish{}
		if i.line, _ = rows.FieldPos(0); err == nil {
			err = i.fill(heads, cells)
		} else if at := new(csv.ParseError); errors.As(err, &at) {
			i.line = at.StartLine
		}
		if !yield(i, csvError(err)) || err != nil {
			return
		}
	}
}

// csvError leaves away the line, which is said already.
func csvError(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the file is empty; a CSV file starts with the column names")
	}
	if at := new(csv.ParseError); errors.As(err, &at) {
		return at.Err
	}
	return err
}

// fill reads a row. An empty cell says nothing.
func (i *wish) fill(heads, cells []string) (err error) {
	for at, name := range heads {
		text := cells[at]
		switch name = strings.TrimSpace(name); {
		case text == "" && csvMembers[name]:
		case name == "nonce":
			i.Nonce, err = strconv.ParseInt(text, 10, 64)
		case name == "expires_at":
			i.ExpiresAt, err = time.Parse(time.RFC3339, text)
		default:
			to := map[string]*string{"op": (*string)(&i.Op), "from": &i.From, "to": &i.To, "beneficiary": &i.Beneficiary, "asset": &i.Asset, "amount_minor": &i.AmountMinor,
				"hold_id": &i.HoldID, "ref": &i.Ref, "memo": &i.Memo}[name]
			if to == nil {
				return fmt.Errorf("unknown column %q: the columns are op, from, to, beneficiary, asset, amount_minor, nonce, hold_id, expires_at, ref and memo", name)
			}
			*to = text
		}
		if err != nil {
			return fmt.Errorf("%s: invalid value %q", name, text)
		}
	}
	return i.known()
}

// known says why a wish is none.
func (i *wish) known() error {
	if !i.Op.Valid() {
		return fmt.Errorf("op: %q must be issue, transfer, burn, hold, capture or release", string(i.Op))
	}
	return nil
}

var csvMembers = map[string]bool{"op": true, "from": true, "to": true, "beneficiary": true, "asset": true, "amount_minor": true, "nonce": true,
	"hold_id": true, "expires_at": true, "ref": true, "memo": true}
