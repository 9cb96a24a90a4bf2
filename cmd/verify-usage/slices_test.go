package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"macronode/cmd/internal/usagefile"
)

// redigested returns a line of a bundle with the digest that its slice has, as the author of a bundle could write it.
func redigested(t *testing.T, line string) string {
	t.Helper()
	text := strings.TrimSuffix(strings.TrimPrefix(line, `{"slice":`), "}")
	s, err := usagefile.ParseSlice([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(line, `"digest":"`+s.Digest.String(), `"digest":"`+s.ContentDigest().String(), 1)
}

// TestWrongSliceIsNamed: a bundle with a slice that was changed is rejected, by a name for the slice and its field. The third and fourth
// slices are those of requests: seq 2, and seq 1, which it names.
func TestWrongSliceIsNamed(t *testing.T) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const (
		first, second = 7, 6 // of the lines, that of seq 1 and that of seq 2
		two           = "line 7: requests of tenant default: slice 2: "
		one           = "line 8: requests of tenant default: slice 1: "
		zeros         = `"previous":"0000000000000000000000000000000000000000000000000000000000000000"`
	)
	for _, c := range []struct {
		what       string
		line       int
		old, new   string
		hasDigest  bool // the digest of the slice is made anew
		want, args string
	}{
		{"quantity", second, `"value":"2"`, `"value":"3"`, false, two + "digest: is not that of the content, ", ""},
		{"events", second, `"events":1`, `"events":2`, false, two + "digest: is not that of the content, ", ""},
		{"labels", second, `"service":"shop"`, `"service":"shoq"`, false, two + "digest: is not that of the content, ", ""},
		{"a row less", second, `,{"labels":{"service":"shop"},"value":"2","events":1}`, ``, false, two + "digest: is not that of the content, ", ""},
		{"begin of the window", second, `:05:15.215Z`, `:05:15.214Z`, false, two + "digest: is not that of the content, ", ""},
		{"end of the window", second, `:06:15.310Z`, `:06:15.311Z`, false, two + "digest: is not that of the content, ", ""},
		{"kind", second, `"correction"`, `"usage"`, false, two + "digest: is not that of the content, ", ""},
		{"seq", second, `"seq":2`, `"seq":3`, false, "line 7: requests of tenant default: slice 3: digest: is not that of the content, ", ""},
		{"dimension", second, `"requests"`, `"bytes_in"`, false, "line 7: bytes_in of tenant default: slice 2: digest: is not that of the content, ", ""},
		{"tenant", second, `"default"`, `"7"`, false, "line 7: requests of tenant 7: slice 2: digest: is not that of the content, ", ""},
		{"digest", second, `"digest":"9bb9`, `"digest":"9bb8`, false, two + "digest: is not that of the content, ", ""},
		{"digest of the slice before", second, `"previous":"9aec`, `"previous":"9aed`, false, two + "digest: is not that of the content, ", ""},
		{"digest of a slice that does not exist", first, zeros, strings.Replace(zeros, "00", "01", 1), false, one + "previous: ", ""},

		{"quantity, with its digest", first, `"value":"7"`, `"value":"8"`, true, one + "digest: is not the field previous of the slice with seq 2, ", ""},
		{"window, with its digest", first, `:05:20.915Z`, `:05:20.914Z`, true, one + "digest: is not the field previous of the slice with seq 2, ", ""},
		{"digest of the slice before, with its digest", second, `"previous":"9aec`, `"previous":"9aed`, true, one + "digest: is not the field previous of the slice with seq 2, ", ""},
		{"tenant, with its digest", second, `"default"`, `"7"`, true, "line 7: requests of tenant 7: slice 2: invoice: a slice of another tenant", ""},
		{"seq, with its digest", second, `"seq":2`, `"seq":3`, true, "line 9: ", ""},
		{"the last slice, with its digest", second, `"value":"2"`, `"value":"1"`, true, "line 9: lines[0].head: ", ""},

		{"the known digest of a slice", second, "", "", false, "requests of tenant default: digest: no slice of the bundle has the known digest " + agreed, " --head requests=" + agreed},
	} {
		lines := strings.Split(string(text), "\n")
		was := lines[c.line]
		if lines[c.line] = strings.Replace(was, c.old, c.new, 1); c.hasDigest {
			lines[c.line] = redigested(t, lines[c.line])
		}
		if lines[c.line] == was && c.args == "" {
			t.Errorf("%s: nothing is changed", c.what)
		}
		var out, failures bytes.Buffer
		code := run(strings.Fields("-"+c.args), strings.NewReader(strings.Join(lines, "\n")), &out, &failures)
		if code != codeWrong || out.Len() > 0 || !strings.HasPrefix(failures.String(), "verify-usage: "+c.want) {
			t.Errorf("%s: exit %d\n%s%swant %s", c.what, code, &out, &failures, c.want)
		}
	}
}
