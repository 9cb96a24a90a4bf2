package types_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"macronode/core/types"
)

// grammars are the rules of the checks as regular expressions.
var grammars = []struct {
	name  string
	check func(string) error
	not   error
	is    *regexp.Regexp
}{
	{"account", types.CheckAccount[string], types.ErrAccount, regexp.MustCompile(`\A[A-Za-z0-9:/_-]{1,256}\z`)},
	{"asset", types.CheckAsset[string], types.ErrAsset, regexp.MustCompile(`\A[A-Za-z0-9/_-]{1,32}\z`)},
	{"key", types.CheckKey[string], types.ErrKey, regexp.MustCompile(`\A[A-Za-z0-9_:.-]{1,64}\z`)},
	{"ref", types.CheckRef[string], types.ErrRef, regexp.MustCompile(`\A[A-Za-z0-9_:.-]{1,64}\z`)},
	{"label", types.CheckLabel[string], types.ErrLabel, regexp.MustCompile(`\A[A-Za-z0-9_:.-]{1,64}\z`)},
}

// TestNamesMatchGrammar tries each byte at each position, and each length.
func TestNamesMatchGrammar(t *testing.T) {
	for _, g := range grammars {
		agree := func(s string) {
			err := g.check(s)
			if g.is.MatchString(s) != (err == nil) || err != nil && !errors.Is(err, g.not) {
				t.Errorf("%s %q: %v", g.name, s, err)
			}
		}
		for c := range 256 {
			for _, s := range []string{"\x00", "a\x00", "\x00a", "a\x00a"} {
				agree(strings.ReplaceAll(s, "\x00", string([]byte{byte(c)})))
			}
		}
		for n := range 300 {
			agree(strings.Repeat("a", n))
		}
		rapid.Check(t, func(t *rapid.T) { agree(rapid.String().Draw(t, "name")) })
	}
}

// TestReservedAccountsAreNotUserAccounts shows that a reserved account is valid but not for
// callers.
func TestReservedAccountsAreNotUserAccounts(t *testing.T) {
	for _, c := range []struct {
		name  string
		asset string
		own   bool
		why   error
	}{
		{"ann", "", false, nil},
		{"acct:7/cash_box-1", "", false, nil},
		{"issuance:EUR/2", "EUR/2", true, types.ErrReserved},
		{"burned:EUR/2", "EUR/2", true, types.ErrReserved},
		{"issuance:", "", true, types.ErrReserved},
		{"burned:", "", true, types.ErrReserved},
		{"burned:\xff", "\xff", true, types.ErrReserved},
		{"issuance", "", false, nil},
		{"burned", "", false, nil},
		{"Issuance:EUR", "", false, nil},
		{"issuance/EUR", "", false, nil},
		{"my-issuance:EUR", "", false, nil},
		{"", "", false, types.ErrAccount},
		{"ann smith", "", false, types.ErrAccount},
		{"anné", "", false, types.ErrAccount},
	} {
		if err := types.CheckUserAccount(c.name); !errors.Is(err, c.why) {
			t.Errorf("party %q: %v, want %v", c.name, err, c.why)
		}
		if asset, ok := types.ReservedAsset(c.name); asset != c.asset || ok != c.own {
			t.Errorf("own %q: %q, %v", c.name, asset, ok)
		}
		if asset, ok := types.ReservedAsset([]byte(c.name)); string(asset) != c.asset || ok != c.own {
			t.Errorf("own bytes of %q: %q, %v", c.name, asset, ok)
		}
	}
	if err := types.CheckAccount("issuance:EUR/2"); err != nil {
		t.Errorf("a reserved account can be read: %v", err)
	}
}

// TestCheckMemo accepts UTF-8 of at most 256 bytes without control characters.
func TestCheckMemo(t *testing.T) {
	for r := range unicode.MaxRune + 1 {
		if !utf8.ValidRune(r) {
			continue
		}
		for _, s := range []string{string(r), "a" + string(r) + "ü"} {
			if err := types.CheckMemo([]byte(s)); (err == nil) == unicode.IsControl(r) {
				t.Errorf("memo %q: %v", s, err)
			}
		}
	}
	for s, ok := range map[string]bool{
		"":                             true,
		"rent, März ☂":                 true,
		"no\u0080 C1":                  false,
		"no\u009f C1":                  false,
		"a\u00a0space":                 true,
		"\xc2":                         false,
		"\xc2\x20":                     false,
		"a\xff":                        false,
		"\xed\xa0\x80":                 false, // a surrogate
		"\xc0\xaf":                     false, // overlong encoding
		"tab\tno":                      false,
		strings.Repeat("m", 256):       true,
		strings.Repeat("m", 257):       false,
		strings.Repeat("ü", 128):       true,
		strings.Repeat("ü", 128) + "x": false,
	} {
		if err := types.CheckMemo([]byte(s)); (err == nil) != ok || !ok && !errors.Is(err, types.ErrMemo) {
			t.Errorf("memo %q: %v", s, err)
		}
	}
}
