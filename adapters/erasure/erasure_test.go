package erasure_test

import (
	"bytes"
	"math/bits"
	"math/rand/v2"
	"testing"

	"macronode/adapters/erasure"
	"macronode/core/coding"
	"macronode/core/digest"
	model "macronode/models/coding"
)

func stripe(s coding.Scheme, length int) [][]byte {
	r, shards := rand.New(rand.NewPCG(uint64(length), uint64(s.Data))), make([][]byte, s.Shards())
	for i := range shards {
		shards[i] = make([]byte, length, digest.Group)
		for at := range shards[i] {
			if s.IsData(i) {
				shards[i][at] = byte(r.Uint32())
			}
		}
	}
	return shards
}

// TestParityIsPolynomial compares the parity with a model that shares no code: what older versions wrote can be read.
func TestParityIsPolynomial(t *testing.T) {
	for _, s := range []coding.Scheme{{Data: 2, Parity: 1}, {Data: 6, Parity: 3}, {Data: 8, Parity: 8}, {Data: 13, Parity: 3}} {
		for _, length := range []int{1, 63, 200} {
			shards := stripe(s, length)
			if err := erasure.New(s).Encode(shards); err != nil {
				t.Fatal(err)
			}
			for p := int(s.Data); p < s.Shards(); p++ {
				if want := model.Parity(p, shards[:s.Data]); !bytes.Equal(shards[p], want) {
					t.Fatalf("%v: shard %d has other bytes than %x", s, p, want)
				}
			}
		}
	}
}

// TestAnyDataShardsRestoreStripe loses every set of at most Parity shards.
func TestAnyDataShardsRestoreStripe(t *testing.T) {
	s := coding.Scheme{Data: 6, Parity: 3}
	code, whole := erasure.New(s), stripe(s, 1000)
	if err := code.Encode(whole); err != nil {
		t.Fatal(err)
	}
	for lost := range uint(1) << s.Shards() {
		shards := make([][]byte, s.Shards())
		for i := range shards {
			shards[i] = append(make([]byte, 0, 1000), whole[i]...)
			if lost&(1<<i) != 0 {
				clear(shards[i])
				shards[i] = shards[i][:0]
			}
		}
		err := code.RestoreData(shards)
		if bits.OnesCount(lost) > int(s.Parity) {
			if err == nil && lost&(1<<s.Data-1) != 0 {
				t.Fatalf("lost %b: restored", lost)
			}
			continue
		}
		for i := range int(s.Data) {
			if err != nil || !bytes.Equal(shards[i], whole[i]) {
				t.Fatalf("lost %b: shard %d is wrong: %v", lost, i, err)
			}
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	s := coding.Scheme{Data: 6, Parity: 3}
	code, shards := erasure.New(s), stripe(s, digest.Group)
	b.SetBytes(int64(s.Stripe()))
	for b.Loop() {
		if err := code.Encode(shards); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRestoreThree(b *testing.B) {
	s := coding.Scheme{Data: 6, Parity: 3}
	code, shards := erasure.New(s), stripe(s, digest.Group)
	if err := code.Encode(shards); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(s.Stripe()))
	for b.Loop() {
		for i := range 3 {
			shards[i] = shards[i][:0]
		}
		if err := code.RestoreData(shards); err != nil {
			b.Fatal(err)
		}
	}
}
