package fuzz

import (
	"math/big"
	"testing"

	"macronode/core/types"
)

// FuzzAmount: a text is an amount if and only if it is the canonical form of an integer in [0, 2^128), and it is
// written back to the same bytes.
func FuzzAmount(f *testing.F) {
	for _, text := range []string{"0", "1", "01", "-0", "+1", "340282366920938463463374607431768211455",
		"340282366920938463463374607431768211456", "99999999999999999999999999999999999999999", "１", "1_0"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		want, ok := new(big.Int).SetString(string(text), 10)
		ok = ok && want.Sign() >= 0 && want.BitLen() <= 128 && want.String() == string(text)
		a, err := types.ParseAmount(text)
		if ok != (err == nil) {
			t.Fatalf("%q: %v, %v", text, a, err)
		}
		if ok && string(a.Append(nil)) != string(text) {
			t.Fatalf("%q is written back as %q", text, a)
		}
	})
}
