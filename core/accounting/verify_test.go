package accounting_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"macronode/core/accounting"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/types"
)

// sealed returns the slices that a plane makes of events in several windows, the last one late.
func sealed(t *testing.T) (all []accounting.Slice) {
	t.Helper()
	at := types.Time(1_700_000_000_000)
	first := at
	p := accounting.New(wideLimits(), 1)
	f := &direct{plane: p, at: at}
	var reply event.Reply
	for i := range 6 {
		c := wide(t, 60, at)
		if i == 5 {
			c = wide(t, 1, first)
		}
		for j := range c.Events {
			c.Events[j].ID = fmt.Sprint(i, "-", j)
		}
		f.at = at
		if p.Decide(at, c, f, &reply); reply.Problem != event.None {
			t.Fatal(reply.Problem)
		}
		at = at.Add(2 * window)
		for p.Expire(at, &f.rec) {
			s, err := accounting.DecodeSlice(1, bytes.Clone(f.rec.Payload))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, s)
			f.Add()
		}
	}
	if len(all) < 7 || all[len(all)-1].Kind != accounting.SliceCorrection {
		t.Fatalf("%d slices", len(all))
	}
	return all
}

// field returns the field that an error names.
func field(err error) string {
	var at *accounting.FieldError
	if !errors.As(err, &at) {
		return fmt.Sprint(err)
	}
	return at.Field
}

// TestVerifierAcceptsAnyOrder: a whole chain has no gap and the same sums, in whatever order its slices come.
func TestVerifierAcceptsAnyOrder(t *testing.T) {
	all := sealed(t)
	last := all[len(all)-1]
	want := accounting.SeqRange{First: 1, Last: last.Seq}
	var total, late types.Amount
	for i := range all {
		for _, r := range all[i].Rows {
			total, _ = total.Add(types.Amount{Lo: r.Value})
			if all[i].Kind == accounting.SliceCorrection {
				late, _ = late.Add(types.Amount{Lo: r.Value})
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same orders each time
	for range 20 {
		v := accounting.NewVerifier()
		for _, i := range random.Perm(len(all)) {
			if err := v.Add(&all[i]); err != nil {
				t.Fatal(err)
			}
		}
		s := v.Streams()[0]
		if len(v.Streams()) != 1 || s.Gaps() != nil || s.Seqs() != want || s.Head() != last.Digest || s.Slices != last.Seq || s.Events != 301 ||
			s.Total != total || s.Late != late || s.Window.From != all[0].Window.From || s.Window.To != all[len(all)-2].Window.To {
			t.Fatalf("%+v", s)
		}
	}
}

// TestVerifierFindsGaps: missing slices are gaps, unless they are before the first or after the last one.
func TestVerifierFindsGaps(t *testing.T) {
	all := sealed(t)
	v := accounting.NewVerifier()
	for _, i := range []int{6, 1, 2} {
		if err := v.Add(&all[i]); err != nil {
			t.Fatal(err)
		}
	}
	other := all[0]
	other.Tenant, other.Dimension = 2, []byte("bytes_in")
	other.Digest = other.ContentDigest()
	if err := v.Add(&other); err != nil {
		t.Fatal(err)
	}
	s := v.Streams()
	if len(s) != 2 || s[1].Tenant != 2 || s[0].Seqs() != (accounting.SeqRange{First: 2, Last: 7}) || !reflect.DeepEqual(s[0].Gaps(), []accounting.SeqRange{{First: 4, Last: 6}}) {
		t.Fatalf("%+v", s)
	}
	for _, i := range []int{1, 2, 6} {
		if err := v.Add(&all[i]); field(err) != "seq" {
			t.Errorf("slice %d is there twice: %v", i, err)
		}
	}
}

// TestVerifierChecksLinks: a slice that is valid by itself does not fit between the slices of another chain.
func TestVerifierChecksLinks(t *testing.T) {
	all := sealed(t)
	forged := all[1]
	forged.Rows = append([]accounting.Row(nil), forged.Rows...)
	forged.Rows[0].Value++
	forged.Digest = forged.ContentDigest()
	if err := forged.Verify(); err != nil {
		t.Fatal(err)
	}
	moved := all[1]
	moved.Previous[0] ^= 1
	moved.Digest = moved.ContentDigest()
	for _, c := range []struct {
		name  string
		order []accounting.Slice
		field string
	}{
		{"forged, then its successor", []accounting.Slice{all[0], forged, all[2]}, "previous"},
		{"the successor of a forged one first", []accounting.Slice{all[2], all[0], forged}, "digest"},
		{"another previous", []accounting.Slice{all[0], moved}, "previous"},
		{"another previous, between", []accounting.Slice{all[2], all[0], moved}, "previous"},
	} {
		v := accounting.NewVerifier()
		for i := range c.order {
			err := v.Add(&c.order[i])
			if last := i == len(c.order)-1; last && field(err) != c.field || !last && err != nil {
				t.Errorf("%s: slice %d: %v", c.name, i, err)
			}
		}
	}
}

// TestVerifyNamesField: each change of a slice is found, and the error names the field or the digest.
func TestVerifyNamesField(t *testing.T) {
	good := sealed(t)[1]
	if err := good.Verify(); err != nil {
		t.Fatal(err)
	}
	labels := func(s string) func(*accounting.Slice) {
		return func(x *accounting.Slice) { x.Rows[1].Labels = []byte(s) }
	}
	for name, c := range map[string]struct {
		field  string
		change func(*accounting.Slice)
	}{
		"tenant":              {"digest", func(s *accounting.Slice) { s.Tenant++ }},
		"dimension":           {"digest", func(s *accounting.Slice) { s.Dimension = []byte("bytes_in") }},
		"unknown dimension":   {"dimension", func(s *accounting.Slice) { s.Dimension = []byte("bytes") }},
		"long dimension":      {"dimension", func(s *accounting.Slice) { s.Dimension = []byte("custom:" + strings.Repeat("x", 300)) }},
		"seq":                 {"digest", func(s *accounting.Slice) { s.Seq++ }},
		"seq 0":               {"seq", func(s *accounting.Slice) { s.Seq = 0 }},
		"seq 1":               {"previous", func(s *accounting.Slice) { s.Seq = 1 }},
		"kind":                {"digest", func(s *accounting.Slice) { s.Kind = accounting.SliceCorrection }},
		"unknown kind":        {"kind", func(s *accounting.Slice) { s.Kind = 5 }},
		"from":                {"digest", func(s *accounting.Slice) { s.Window.From++ }},
		"to":                  {"digest", func(s *accounting.Slice) { s.Window.To++ }},
		"to before from":      {"window_to", func(s *accounting.Slice) { s.Window.To = s.Window.From }},
		"previous":            {"digest", func(s *accounting.Slice) { s.Previous[31] ^= 1 }},
		"no previous":         {"previous", func(s *accounting.Slice) { s.Previous = accounting.Digest{} }},
		"digest":              {"digest", func(s *accounting.Slice) { s.Digest[0] ^= 1 }},
		"value":               {"digest", func(s *accounting.Slice) { s.Rows[1].Value++ }},
		"events":              {"digest", func(s *accounting.Slice) { s.Rows[1].Events++ }},
		"no events":           {"rows[1].events", func(s *accounting.Slice) { s.Rows[1].Events = 0 }},
		"labels":              {"digest", labels(strings.TrimSuffix(string(good.Rows[1].Labels), "r") + "q")},
		"upper case":          {"rows[1].labels", labels(strings.ToUpper(string(good.Rows[1].Labels)))},
		"labels out of order": {"rows[1].labels", labels("route=a,service=b")},
		"long labels":         {"rows[1].labels", labels("service=" + strings.Repeat("x", 300))},
		"rows out of order":   {"rows[1].labels", func(s *accounting.Slice) { s.Rows[0], s.Rows[1] = s.Rows[1], s.Rows[0] }},
		"a row twice":         {"rows[2].labels", func(s *accounting.Slice) { s.Rows[2] = s.Rows[1] }},
		"no rows":             {"rows", func(s *accounting.Slice) { s.Rows = nil }},
		"a row less":          {"digest", func(s *accounting.Slice) { s.Rows = s.Rows[1:] }},
		"many rows": {"rows", func(s *accounting.Slice) {
			for i := range 300 {
				s.Rows = append(s.Rows, accounting.Row{Labels: fmt.Appendf(nil, "service=x%03d", i), Count: accounting.Count{Events: 1}})
			}
		}},
	} {
		bad := good
		bad.Rows = append([]accounting.Row(nil), good.Rows...)
		c.change(&bad)
		if err := bad.Verify(); field(err) != c.field {
			t.Errorf("%s: %v", name, err)
		}
		if err := accounting.NewVerifier().Add(&bad); field(err) != c.field {
			t.Errorf("%s: the verifier reports %v", name, err)
		}
	}
}

// TestDigestCoversDocumentedBytes: the bytes and the digest of the slice in docs/how-to/meter-usage.md.
func TestDigestCoversDocumentedBytes(t *testing.T) {
	s := accounting.Slice{Tenant: 1, Dimension: []byte("requests"), Seq: 1, Kind: accounting.SliceUsage, Window: accounting.Window{From: 1_790_000_100_000, To: 1_790_000_400_000},
		Rows: []accounting.Row{{Labels: []byte("service=search,method=get"), Count: accounting.Count{Value: 42, Events: 2}}}}
	covered, err := hex.DecodeString(strings.Join(strings.Fields(`
		6d6163726f6e6f646520736c69636520310a 01000000 01 0100000000000000
		a0f251c4a0010000 808656c4a0010000
		0000000000000000000000000000000000000000000000000000000000000000
		08 7265717565737473 0100
		19 736572766963653d7365617263682c6d6574686f643d676574 2a00000000000000 0200000000000000`), ""))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.ContentDigest(); got != accounting.Digest(digest.Sum(covered)) || got.String() != documented {
		t.Errorf("the digest is %v, that of the bytes is %x", got, digest.Sum(covered))
	}
	s.Digest = s.ContentDigest()
	if err := s.Verify(); err != nil {
		t.Error(err)
	}
}

const documented = "f6cb7284c8168ff1b3370e0c3dcc845d28f4782080353858ce4cf3b6a768c5a6"
