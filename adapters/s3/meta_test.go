package s3

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"macronode/adapters/checksum"
	"macronode/core/storage"
)

// TestMetaIsGolden: objects keep their metadata for ever, so these bytes never change.
func TestMetaIsGolden(t *testing.T) {
	var m Meta
	for tag := tagContentType; tag <= tagExpires; tag++ {
		m.headers[tag] = fmt.Sprint("h", tag)
	}
	m.checksum = storedChecksum{checksum.CRC32, checksum.Composite, "1234"}
	m.partSize, m.user = 5<<20, []userField{{"a", ""}, {"b", "value"}}
	got, err := m.encode()
	const want = "01" + "01026831" + "02026832" + "03026833" + "04026834" + "05026835" + "06026836" + "0706010131323334" + "080480" + "80c002" + "09020161" + "0907016276616c7565"
	if hex.EncodeToString(got) != want || err != nil {
		t.Fatalf("%x, %v, want %s", got, err, want)
	}
	if none, err := new(Meta).encode(); none != nil || err != nil {
		t.Errorf("%x, %v", none, err)
	}
}

// TestMetaIsReadBack: every metadata has one form.
func TestMetaIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Meta
		for tag := tagContentType; tag <= tagExpires; tag++ {
			m.headers[tag] = rapid.SampledFrom([]string{"", "text/plain", "x"}).Draw(t, "header")
		}
		a := rapid.SampledFrom(checksum.Algorithms).Draw(t, "algorithm")
		c := storedChecksum{a, rapid.SampledFrom([]checksum.Type{checksum.Composite, checksum.FullObject}).Draw(t, "type"), strings.Repeat("s", a.Size()*rapid.IntRange(0, 1).Draw(t, "sum"))}
		if c.isPossible() || c.kind == checksum.FullObject && c.sum != "" {
			m.checksum = c
		}
		m.partSize = rapid.Uint64().Draw(t, "part size")
		for i := range rapid.IntRange(0, 5).Draw(t, "user fields") {
			m.user = append(m.user, userField{fmt.Sprint("k", i), rapid.String().Draw(t, "value")})
		}
		b, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeMeta(b)
		if err != nil || fmt.Sprint(back) != fmt.Sprint(m) {
			t.Fatalf("%+v became %+v, %v", m, back, err)
		}
	})
}

func TestMetaIsLimited(t *testing.T) {
	for size, want := range map[int]error{storage.MaxMeta - 4: nil, storage.MaxMeta - 3: errMetaSize} {
		var m Meta
		m.headers[tagExpires] = strings.Repeat("x", size)
		if b, err := m.encode(); !errors.Is(err, want) || err == nil && len(b) != storage.MaxMeta {
			t.Errorf("%d: %d bytes, %v", size, len(b), err)
		}
	}
}

// FuzzMeta: what is read is written back to the same bytes, or refused.
func FuzzMeta(f *testing.F) {
	for _, text := range []string{"", "01", "0101026831", "01020101", "0101016801026869", "0107", "01070601013132333401", "010704050131323334", "0108020100", "010801ff",
		"0109020161090201620902", "010902016109020161", "01ff0101", "01020161010161", "02010161", "0101816801", "01018100"} {
		b, err := hex.DecodeString(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMeta(b)
		if err != nil {
			return
		}
		back, err := m.encode()
		if err != nil || !bytes.Equal(back, b) {
			t.Fatalf("%x became %x, %v", b, back, err)
		}
		h := map[string][]string{}
		m.setHeaders(h)
	})
}

func TestContentEncodingWithoutFraming(t *testing.T) {
	for text, want := range map[string]string{"": "", "aws-chunked": "", "aws-chunked,gzip": "gzip", "gzip, AWS-chunked": "gzip", "gzip, br": "gzip, br"} {
		if got := withoutChunked(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
