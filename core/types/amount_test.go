package types_test

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/types"
)

// large returns a as a big.Int.
func large(a types.Amount) *big.Int {
	n := new(big.Int).Lsh(new(big.Int).SetUint64(a.Hi), 64)
	return n.Or(n, new(big.Int).SetUint64(a.Lo))
}

// anyAmount prefers values at the edges of both halves.
func anyAmount() *rapid.Generator[types.Amount] {
	half := rapid.OneOf(rapid.Just[uint64](0), rapid.Just(^uint64(0)), rapid.Uint64Range(0, 9),
		rapid.Uint64Range(^uint64(0)-9, ^uint64(0)), rapid.Uint64())
	return rapid.Custom(func(t *rapid.T) types.Amount {
		return types.Amount{Hi: half.Draw(t, "hi"), Lo: half.Draw(t, "lo")}
	})
}

// TestAmountMatchesBigInt compares 128-bit arithmetic with math/big.
func TestAmountMatchesBigInt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyAmount().Draw(t, "a"), anyAmount().Draw(t, "b")
		x, y := large(a), large(b)
		if a.Less(b) != (x.Cmp(y) < 0) {
			t.Errorf("%v < %v is %v", a, b, a.Less(b))
		}
		if a.IsZero() != (x.Sign() == 0) {
			t.Errorf("IsZero(%v) is %v", a, a.IsZero())
		}
		want := new(big.Int).Add(x, y)
		if sum, ok := a.Add(b); ok != (want.BitLen() <= 128) || ok && large(sum).Cmp(want) != 0 {
			t.Errorf("%v + %v = %v, %v, want %v", a, b, sum, ok, want)
		}
		want.Sub(x, y)
		if rest, ok := a.Sub(b); ok != (want.Sign() >= 0) || ok && large(rest).Cmp(want) != 0 {
			t.Errorf("%v - %v = %v, %v, want %v", a, b, rest, ok, want)
		}
		if got := string(a.Append([]byte("EUR "))); got != "EUR "+x.String() || a.String() != x.String() {
			t.Errorf("%v is written %q and %q", x, got, a)
		}
		if back, err := types.ParseAmount(x.String()); err != nil || back != a {
			t.Errorf("%v is read as %v, %v", x, back, err)
		}
	})
}

// TestParseAmountAcceptsCanonicalOnly accepts canonical decimals below 2^128 and rejects
// everything else.
func TestParseAmountAcceptsCanonicalOnly(t *testing.T) {
	for text, want := range map[string]types.Amount{
		"0":                    {},
		"1":                    {Lo: 1},
		"18446744073709551615": {Lo: ^uint64(0)},
		"18446744073709551616": {Hi: 1},
		"340282366920938463463374607431768211455": {Hi: ^uint64(0), Lo: ^uint64(0)},
	} {
		if got, err := types.ParseAmount(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
		if got, err := types.ParseAmount([]byte(text)); err != nil || got != want {
			t.Errorf("bytes of %q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "00", "01", "000000000000000000000000000000000000001", "-1", "-0", "+1", " 1", "1 ", "1\n",
		"1.0", "1e3", "0x1", "1_000", "1,000", "a", "1:", "1/", "１", "٣", "\x00", "1\x00",
		"340282366920938463463374607431768211456", // 2^128
		"340282366920938463463374607431768211460", // the tens overflow, not the ones
		"999999999999999999999999999999999999999", // 39 digits
		"1000000000000000000000000000000000000000",
	} {
		if got, err := types.ParseAmount(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

func TestMaxSupply(t *testing.T) {
	want := new(big.Int).Lsh(big.NewInt(1), 127)
	if got := large(types.MaxSupply()); got.Cmp(want.Sub(want, big.NewInt(1))) != 0 {
		t.Errorf("the supply ends at %v, want %v", got, want)
	}
}
