package cli

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"macronode/cmd/internal/usagefile"
)

// exported is what usage export has printed of a node: two chains, each with a correction.
func exported(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/usage.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestVerifyFindsEveryByte: an export in which any byte differs is not accepted, and the error names the line.
func TestVerifyFindsEveryByte(t *testing.T) {
	t.Parallel()
	text := exported(t)
	if all, err := verifyUsage(bytes.NewReader(text), false); err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	for i := range text {
		for _, flip := range []byte{1, 2, 32} { // a digit, a letter, upper case
			bad := slices.Clone(text)
			bad[i] ^= flip
			_, err := verifyUsage(bytes.NewReader(bad), true)
			at := new(usagefile.Problem)
			if !errors.As(err, &at) || text[i] != '\n' && at.Line != 1+bytes.Count(text[:i], []byte("\n")) {
				t.Errorf("byte %d, %q in the place of %q: %v", i, bad[i], text[i], err)
			}
		}
	}
}

// TestVerifyNamesField: each field of a line that is changed is found, and named if it is invalid by itself.
func TestVerifyNamesField(t *testing.T) {
	t.Parallel()
	text := string(exported(t))
	const third = "line 3: requests of tenant default: slice 2: "
	for _, c := range [][3]string{
		{`"tenant":"default","dimension":"requests","seq":2`, `"tenant":"2","dimension":"requests","seq":2`, "line 3: requests of tenant 2: slice 2: digest: is not"},
		{`"tenant":"default","dimension":"requests","seq":2`, `"tenant":"1","dimension":"requests","seq":2`, "line 3: requests of tenant 1: slice 2: tenant: must be"},
		{`"dimension":"requests","seq":2`, `"dimension":"Requests","seq":2`, "line 3: Requests of tenant default: slice 2: dimension: is no dimension"},
		{`"requests","seq":2`, `"requests","seq":3`, "line 3: requests of tenant default: slice 3: digest: is not"},
		{`"requests","seq":2`, `"requests","seq":-2`, "line 3: seq: invalid value"},
		{`"requests","seq":2`, `"requests","seq":0`, "line 3: requests of tenant default: seq: must be at least 1"},
		{`"requests","seq":2,"kind":"correction"`, `"requests","seq":2,"kind":"usage"`, third + "digest: is not"},
		{`"requests","seq":2,"kind":"correction"`, `"requests","seq":2,"kind":""`, third + "kind: must be usage, correction, prepaid or prepaid_correction"},
		{`"requests","seq":2,"kind":"correction","window_from":"2026-11-25T02:05:15.215Z"`, `"requests","seq":2,"kind":"correction","window_from":"2026-11-25T02:05:15.2150Z"`, third + "window_from: must be a time"},
		{`"requests","seq":2,"kind":"correction","window_from":"2026`, `"requests","seq":2,"kind":"correction","window_from":"2027`, third + "window_to: must be after"},
		{`"previous":"9aec`, `"previous":"9AEC`, third + "previous: must be 64"},
		{`"previous":"9aec`, `"previous":"`, third + "previous: must be 64"},
		{`"digest":"9bb9`, `"digest":"9bb99`, third + "digest: must be 64"},
		{`"value":"2","events":1},{`, `"value":"02","events":1},{`, third + "rows[0].value: must be"},
		{`"value":"2","events":1},{`, `"value":"18446744073709551616","events":1},{`, third + "rows[0].value: must be"},
		{`"value":"2","events":1},{`, `"value":"2","events":0},{`, third + "rows[0].events: must be at least 1"},
		{`"value":"2","events":1},{`, `"value":"2"},{`, third + "rows[0].events: must be at least 1"},
		{`"labels":{"service":"shop"},`, ``, third + "rows[1].labels: are missing"},
		{`"labels":{"service":"shop"},`, `"labels":{"service":"Shop"},`, third + "rows[1].labels.service: must not have upper case"},
		{`"labels":{"service":"shop"},`, `"labels":{"service":"shop","route":""},`, third + "rows[1].labels.route: must be"},
		{`"labels":{"service":"shop"},`, `"labels":{"service":"shop","host":"a"},`, third + "rows[1].labels: unknown label"},
		{`"labels":{"service":"shop"},`, `"labels":{"service":"search"},`, third + "rows[1].labels: must come after"},
		{`"rows":[{"labels":{"service":"search"},"value":"2","events":1},{"labels":{"service":"shop"},"value":"2","events":1}]`, `"rows":[]`, third + "rows: must not be empty"},
		{`"labels":{"service":"shop"},"value"`, `"more":1,"labels":{"service":"shop"},"value"`, `line 3: unknown member "rows/1/more"`},
	} {
		bad := strings.Replace(text, c[0], c[1], 1)
		if _, err := verifyUsage(strings.NewReader(bad), true); bad == text || err == nil || !strings.HasPrefix(err.Error(), c[2]) {
			t.Errorf("%s\n%v, not\n%s", c[1], err, c[2])
		}
	}
}

// TestVerifyNamesWrongSlice: a slice of which a valid field is changed is named, also if its digest is made anew: then the slice that
// follows it names another one. The fourth line is slice 1 of requests, which is read after slice 2.
func TestVerifyNamesWrongSlice(t *testing.T) {
	t.Parallel()
	lines := slices.Collect(strings.Lines(string(exported(t))))
	const (
		two, one  = "line 3: requests of tenant default: slice 2: ", "line 4: requests of tenant default: slice 1: "
		content   = "digest: is not that of the content, "
		unchained = "digest: is not the field previous of the slice with seq 2, "
	)
	for _, c := range []struct {
		line            int
		old, new        string
		want, redigests string // the error, and that of the slice with the digest that it has now; empty: none
	}{
		{2, `"value":"2"`, `"value":"3"`, two + content, ""}, // the last slice of the chain: nothing contradicts it
		{2, `"events":1`, `"events":2`, two + content, ""},
		{2, `"shop"`, `"shoq"`, two + content, ""},
		{2, `:05:15.215Z`, `:05:15.214Z`, two + content, ""},
		{2, `:06:15.310Z`, `:06:15.311Z`, two + content, ""},
		{2, `"correction"`, `"usage"`, two + content, ""},
		{2, `"previous":"9aec`, `"previous":"9aed`, two + content, one + unchained},
		{2, `"digest":"9bb9`, `"digest":"9bb8`, two + content, ""},
		{2, `"default"`, `"7"`, "line 3: requests of tenant 7: slice 2: " + content, ""},
		{2, `"requests"`, `"bytes_in"`, "line 3: bytes_in of tenant default: slice 2: " + content, ""},
		{2, `"seq":2`, `"seq":3`, "line 3: requests of tenant default: slice 3: " + content, "requests of tenant default: slice 2: seq: the slices 2 to 2 are missing"},
		{3, `"value":"7"`, `"value":"8"`, one + content, one + unchained},
		{3, `"events":2`, `"events":3`, one + content, one + unchained},
		{3, `:05:20.915Z`, `:05:20.914Z`, one + content, one + unchained},
	} {
		bad := slices.Clone(lines)
		if bad[c.line] = strings.Replace(bad[c.line], c.old, c.new, 1); bad[c.line] == lines[c.line] {
			t.Errorf("%s is not in the line", c.old)
		}
		for _, want := range [...]string{c.want, c.redigests} {
			_, err := verifyUsage(strings.NewReader(strings.Join(bad, "")), false)
			if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
				t.Errorf("%s\n%v, not\n%s", c.new, err, want)
			}
			bad[c.line] = renumbered(t, bad[c.line], "2")
		}
	}
}

// renumbered is a line as another slice of its chain, with a digest that is right.
func renumbered(t *testing.T, text, seq string) string {
	t.Helper()
	var l usagefile.Slice
	text = strings.Replace(text, `"seq":2`, `"seq":`+seq, 1)
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		t.Fatal(err)
	}
	s, err := l.Decode()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(text, l.Digest, s.ContentDigest().String(), 1)
}

// TestVerifyFindsGaps: a chain with a gap is accepted only as a part of one.
func TestVerifyFindsGaps(t *testing.T) {
	t.Parallel()
	lines := slices.Collect(strings.Lines(string(exported(t))))
	text := lines[1] + renumbered(t, lines[0], "4") + renumbered(t, lines[0], "7")
	const (
		gap  = "custom:tokens.in of tenant default: slice 2: seq: the slices 2 to 3 are missing; --partial accepts gaps"
		gaps = "\n  gap: the slices 2 to 3 are not in the file\n  gap: the slices 5 to 6 are not in the file\n3 slices of 1 chains are verified\n"
	)
	for _, c := range []struct {
		flags string
		code  int
		want  string
	}{
		{"", 1, "macronode: " + gap + "\n"},
		{"--partial", 0, gaps},
		{"--partial --json", 0, `"gaps":[{"first_seq":2,"last_seq":3},{"first_seq":5,"last_seq":6}]}]}` + "\n"},
	} {
		d := newTestConsole()
		d.in = strings.NewReader(text)
		code := Run(strings.Fields("usage verify - "+c.flags), d.Console)
		if got := d.out.String() + d.err.String(); code != c.code || !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: %d\n%s", c.flags, code, got)
		}
	}
}

// TestVerifyUsage: what is printed, and the exit code.
func TestVerifyUsage(t *testing.T) {
	t.Parallel()
	lines := slices.Collect(strings.Lines(string(exported(t))))
	const (
		tokens   = "custom:tokens.in of tenant default: slices "
		requests = "requests of tenant default: slices 1 to 2, windows 2026-11-25T02:05:15.215Z to 2026-11-25T03:05:20.915Z, value 27 of 6 events, 4 of it late, last digest 9bb9742fd66dbf01f84d7a78c7302088b92c9b6f53a4350e472b497e48565089\n"
		both     = "1 to 2, windows 2026-11-25T02:05:15.215Z to 2026-11-25T03:05:20.915Z, value 18446744073709551620 of 2 events, 5 of it late, last digest 314e4ef2a21e01a696f656c1ba9d35c965e4540084f3fc46c2d72087e9620c48\n"
		second   = "2 to 2, windows 2026-11-25T02:05:15.215Z to 2026-11-25T02:06:15.310Z, value 5 of 1 events, 5 of it late, last digest 314e4ef2a21e01a696f656c1ba9d35c965e4540084f3fc46c2d72087e9620c48\n" +
			"  begins in the middle: the slices 1 to 1 are not in the file\n"
	)
	for _, c := range []struct {
		name, flags string
		lines       []string
		code        int
		want        string
	}{
		{"whole", "", lines, 0, tokens + both + requests + "4 slices of 2 chains are verified\n"},
		{"in another order", "", []string{lines[3], lines[1], lines[2], lines[0]}, 0, tokens + both + requests + "4 slices of 2 chains are verified\n"},
		{"from the middle", "", []string{lines[0]}, 0, tokens + second + "1 slices of 1 chains are verified\n"},
		{"nothing", "", nil, 2, "macronode: there is no slice to verify\n"},
		{"nothing, in JSON", "--json", nil, 2, `{"outcome":"unable","detail":"there is no slice to verify"}` + "\n" + "macronode: there is no slice to verify\n"},
		{"a slice twice", "", []string{lines[0], lines[0]}, 1, "macronode: line 2: custom:tokens.in of tenant default: slice 2: seq: occurs twice\n"},
		{"a slice twice, in JSON", "--json", []string{lines[0], lines[0]}, 1, `{"ok":false,"line":2,"tenant":"default","dimension":"custom:tokens.in","seq":2,"field":"seq","detail":"occurs twice"}` + "\n" +
			"macronode: line 2: custom:tokens.in of tenant default: slice 2: seq: occurs twice\n"},
		{"no slice", "", []string{lines[0], "{}\n"}, 1, "macronode: line 2: tenant: must be default, or a number\n"},
		{"no JSON", "", []string{lines[0][:100]}, 1, "macronode: line 1: invalid JSON: unexpected EOF\n"},
		{"a long line", "", []string{strings.Repeat("x", 1<<20)}, 1, "macronode: a line is longer than that of any slice\n"},
	} {
		d := newTestConsole()
		d.in = strings.NewReader(strings.Join(c.lines, ""))
		code := Run(strings.Fields("usage verify - "+c.flags), d.Console)
		if got := d.out.String() + d.err.String(); code != c.code || got != c.want {
			t.Errorf("%s: %d\n%swant\n%s", c.name, code, got, c.want)
		}
	}
	d := newTestConsole()
	if code := Run([]string{"usage", "verify", "nowhere"}, d.Console); code != 2 {
		t.Errorf("a file that does not exist: %d", code)
	}
}
