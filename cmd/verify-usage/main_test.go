package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

const (
	file   = "testdata/january.bundle"
	head   = "9bb9742fd66dbf01f84d7a78c7302088b92c9b6f53a4350e472b497e48565089" // of requests
	agreed = "4a2304d801ddb179e6dba164017d53c3e2b06e7f61f1efdc97d1f8bd39f98333" // the price list
)

// TestRun: what is printed, and the exit code. The file is a bundle of the first version of the format.
func TestRun(t *testing.T) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	forged := strings.Replace(string(text), `"amount_minor":"41"`, `"amount_minor":"40"`, 1)
	for _, c := range []struct {
		args, in  string
		code      int
		out, fail string // parts of the output
	}{
		{file, "", 0, "calls: 27 requests in 2 windows, 4 of it late, at graduated per 3: 10 and 0.25 once up to 10, 1.3: 41 EUR/2\n", ""},
		{file, "", 0, "not compared with a digest from elsewhere: --head finds a chain that was made anew or that ends early\n", ""},
		{"- --head requests=" + head + " --prices " + agreed, string(text), 0, "total: 63 POINT\nthe bundle is verified\n", ""},
		{"--json " + file, "", 0, `{"ok":true,"invoice":{"tenant":"default",`, ""},
		{file + " --head requests=" + agreed, "", 1, "", "verify-usage: requests of tenant default: digest: no slice of the bundle has the known digest " + agreed + "\n"},
		{file + " --prices " + head, "", 1, "", "verify-usage: line 5: price: the price list has the digest " + agreed + ", not the known " + head + "\n"},
		{"-", forged, 1, "", "verify-usage: line 9: lines[1].amount_minor: is 40: the slices and prices give 41\n"},
		{"- --json", forged, 1, `{"ok":false,"line":9,"field":"lines[1].amount_minor","detail":"is 40: the slices and prices give 41"}`, "verify-usage: "},
		{"", "", 2, "", "needs one file"},
		{file + " " + file, "", 2, "", "needs one file"},
		{"nowhere", "", 2, "", "no such file"},
		{file + " --head requests", "", 2, "", "must be DIMENSION=DIGEST"},
		{file + " --prices 1", "", 2, "", "-prices: must be a digest of 64"},
		{file + " --prices=", "", 2, "", "-prices: must be a digest of 64"}, // as an empty variable of a script gives it
		{file + " --head=", "", 2, "", "-head: must be DIMENSION=DIGEST"},
		{file + " --json=", "", 2, "", "invalid boolean value"},
		{file + " --prices " + agreed + " --prices " + agreed, "", 2, "", "-prices: must be given once"},
		{file + " --fast", "", 2, "", "flag provided but not defined"},
		{"--help", "", 0, "", "usage: verify-usage [flags] FILE"},
	} {
		var out, failures bytes.Buffer
		code := run(strings.Fields(c.args), strings.NewReader(c.in), &out, &failures)
		if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(failures.String(), c.fail) || c.fail == "" && failures.Len() > 0 {
			t.Errorf("%s: %d\n%s%s", c.args, code, &out, &failures)
		}
	}
}

// TestPrepaidBundle: usage that was paid as it was recorded has lines of its own, and cannot be shown as unpaid.
func TestPrepaidBundle(t *testing.T) {
	text, err := os.ReadFile("testdata/prepaid.bundle")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		old, new  string
		code      int
		out, fail string
	}{
		{"", "", 0, "prepaid: 33 EUR/2\ntotal: 20 EUR/2\n", ""},
		{`"kind":"prepaid_correction"`, `"kind":"correction"`, 1, "", "verify-usage: line 3: "},
		{`"prepaid":true,`, "", 1, "", "verify-usage: line 6: lines[1].prepaid: "},
		{`"prepaid":[{"asset":"EUR/2","amount_minor":"33"}]`, `"prepaid":[{"asset":"EUR/2","amount_minor":"40"}]`, 1, "", "verify-usage: line 6: prepaid"},
	} {
		var out, failures bytes.Buffer
		code := run([]string{"-"}, strings.NewReader(strings.Replace(string(text), c.old, c.new, 1)), &out, &failures)
		if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(failures.String(), c.fail) || c.fail == "" && failures.Len() > 0 {
			t.Errorf("%s: %d\n%s%s", c.old, code, &out, &failures)
		}
	}
}
