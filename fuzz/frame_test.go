package fuzz

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/wallet/receipt"
)

// goldenFrames are the frozen bodies of every kind of record.
func goldenFrames(tb testing.TB) (bodies [][]byte) {
	tb.Helper()
	files, err := filepath.Glob("../core/record/testdata/v1/*.hex")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no golden frames: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		var digits strings.Builder
		for line := range strings.Lines(string(text)) {
			if line[0] != '#' {
				digits.WriteString(strings.TrimSpace(line))
			}
		}
		body, err := hex.DecodeString(digits.String())
		if err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		bodies = append(bodies, body)
	}
	return bodies
}

// wholeBatch returns a batch followed by its items.
func wholeBatch(atomic bool) []byte {
	b := tape(bytes.Repeat([]byte{3, 5, 2, 250, 9}, 40))
	head := record.Record{Kind: record.Batched, Op: event.Batch, Tenant: 1, Items: 3, Atomic: atomic}
	body, _ := record.Add(record.Begin(nil, 1, 0), 0, &head)
	for range head.Items {
		r := b.item(&head)
		body, _ = record.Add(body, 0, &r)
	}
	return body
}

// FuzzFrame: any bytes of a journal are rejected as a frame, or are the only encoding of their contents. A
// response is rendered only for outcomes of keys, and a change only for movements.
func FuzzFrame(f *testing.F) {
	var all []byte
	for _, body := range goldenFrames(f) {
		f.Add(body)
		all = append(all, body[19:]...) // the records of them all, in one frame
	}
	all = append(record.Begin(nil, 1, 0), all...)
	all[1] = byte(len(goldenFrames(f)))
	f.Add(all)
	f.Add(record.Begin(nil, 1, 0))
	for _, atomic := range []bool{true, false} {
		f.Add(wholeBatch(atomic))
	}

	f.Fuzz(func(t *testing.T, body []byte) {
		_, _, whole := record.OpenWhole(body)
		h, rest, err := record.Open(body)
		if err != nil {
			if !errors.Is(err, record.ErrFrame) {
				t.Fatalf("open: %v", err)
			}
			return
		}
		written, all := record.Begin(nil, h.LSN, h.At), []record.Record(nil)
		for i := range h.Count {
			var walked, found record.Record
			if rest, err = record.Next(rest, &walked); err != nil {
				if !errors.Is(err, record.ErrFrame) {
					t.Fatalf("record %d: %v", i, err)
				}
				if whole == nil {
					t.Fatalf("whole, but for record %d", i)
				}
				return
			}
			if _, err := record.Read(body, i, &found); err != nil {
				t.Fatalf("record %d is walked to and not found: %v", i, err)
			}
			all = append(all, walked)
			written, _ = record.Add(written, 0, &walked)
		}
		if (whole == nil) != (len(rest) == 0) {
			t.Fatalf("whole says %v of %d bytes behind", whole, len(rest))
		}
		if written = append(written, rest...); !bytes.Equal(written, body) {
			t.Fatalf("read from\n%x\nand written as\n%x", body, written)
		}
		for i := range all {
			sealed := record.Sealed{LSN: h.LSN, Body: body}
			if _, _, _, err := receipt.Render(nil, &sealed, uint16(i)); (err == nil) != answers(all[i:]) {
				t.Fatalf("record %d, a %v, renders with %v", i, all[i].Kind, err)
			}
			if _, _, err := receipt.Change(nil, &sealed, uint16(i)); (err == nil) != all[i].IsMovement() {
				t.Fatalf("record %d, a %v, changes with %v", i, all[i].Kind, err)
			}
		}
	})
}

// answers reports whether the first of some records is a response, with those after it.
func answers(all []record.Record) bool {
	head := &all[0]
	if head.Kind != record.Batched || head.Problem != event.None {
		return head.IsOutcome()
	}
	if len(all) <= int(head.Items) {
		return false
	}
	return !slices.ContainsFunc(all[1:1+head.Items], func(r record.Record) bool {
		return !r.IsOutcome() || r.Kind == record.Batched || r.Tenant != head.Tenant || head.Atomic && r.Kind == record.Rejected
	})
}
