package fuzz

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"macronode/core/receipt"
	"macronode/core/record"
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

// FuzzFrame: whatever lies in a journal is refused as no frame, or is the one way to
// write what it says; and an answer can be rendered of money and refusals only.
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

	f.Fuzz(func(t *testing.T, body []byte) {
		_, _, whole := record.Whole(body)
		h, rest, err := record.Open(body)
		if err != nil {
			if !errors.Is(err, record.ErrFrame) {
				t.Fatalf("open: %v", err)
			}
			return
		}
		written := record.Begin(nil, h.LSN, h.At)
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
			answers := walked.Kind == record.Moved || walked.Kind == record.Refused
			if _, _, _, err := receipt.Render(nil, &record.Sealed{LSN: h.LSN, Body: body}, i); (err == nil) != answers {
				t.Fatalf("record %d, a %v, renders with %v", i, walked.Kind, err)
			}
			written, _ = record.Add(written, 0, &walked)
		}
		if (whole == nil) != (len(rest) == 0) {
			t.Fatalf("whole says %v of %d bytes behind", whole, len(rest))
		}
		if written = append(written, rest...); !bytes.Equal(written, body) {
			t.Fatalf("read from\n%x\nand written as\n%x", body, written)
		}
	})
}
