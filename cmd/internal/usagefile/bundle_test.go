package usagefile

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"macronode/core/accounting"
	"macronode/core/invoice"
	"macronode/core/pricing"
)

// exported are the lines of an export of a node: two chains of two slices, each with a correction.
func exported(t *testing.T) [][]byte {
	t.Helper()
	text, err := os.ReadFile("../../macronode/internal/cli/testdata/usage.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
}

func prices() pricing.List {
	return pricing.List{
		{Name: "base", Dimension: "requests", Asset: "EUR/2", Model: pricing.Flat, Per: 1, Tiers: []pricing.Tier{{Price: 500_000_000}}},
		{Name: "calls", Dimension: "requests", Asset: "EUR/2", Model: pricing.Graduated, Per: 3, Tiers: []pricing.Tier{{UpTo: 10, Price: 10_000_000, Flat: 250_000}, {Price: 1_300_000}}},
		{Name: "shop", Dimension: "requests", Labels: []accounting.Label{{Name: "service", Value: "shop"}}, Asset: "POINT", Model: pricing.PerUnit, Per: 1, Tiers: []pricing.Tier{{Price: 7_000_000}}},
	}
}

// bundled returns the bundle of lines and prices.
func bundled(t *testing.T, lines [][]byte, l pricing.List) []byte {
	t.Helper()
	period := accounting.Window{From: 0, To: 1 << 42}
	build := invoice.New(1, period, l)
	for _, line := range lines {
		s, err := ParseSlice(line)
		if err != nil {
			t.Fatal(err)
		}
		if err := build.Add(&s); err != nil {
			t.Fatal(err)
		}
	}
	v, err := build.Invoice()
	if err != nil {
		t.Fatal(err)
	}
	text := NewInvoice(&v, period.To)
	var b bytes.Buffer
	w, err := NewBundleWriter(&b, &text, l)
	for _, line := range lines {
		err = errors.Join(err, w.Slice(line))
	}
	if err = errors.Join(err, w.End(&text)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestBundle: a bundle gives the same chains and invoice again.
func TestBundle(t *testing.T) {
	text := bundled(t, exported(t), prices())
	v, err := VerifyBundle(bytes.NewReader(text), Known{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Total{{"EUR/2", "541"}, {"POINT", "63"}}
	if !reflect.DeepEqual(v.Invoice.Totals, want) || len(v.Chains) != 2 || len(v.Invoice.Lines) != 3 || len(v.Invoice.Unpriced) != 1 {
		t.Errorf("%+v", v)
	}
	if again := bundled(t, exported(t), prices()); !bytes.Equal(again, text) {
		t.Error("the same slices and prices give another bundle")
	}
}

// TestEveryByteIsVerified: a bundle in which any bit of any byte differs is rejected, and the error is a *Problem.
func TestEveryByteIsVerified(t *testing.T) {
	text := bundled(t, exported(t), prices())
	for i := range text {
		for _, flip := range []byte{1, 2, 32, 128} {
			bad := slices.Clone(text)
			bad[i] ^= flip
			if _, err := VerifyBundle(bytes.NewReader(bad), Known{}); !errors.As(err, new(*Problem)) {
				t.Errorf("byte %d, %q in the place of %q: %v", i, bad[i], text[i], err)
			}
		}
	}
	for n := range text {
		if _, err := VerifyBundle(bytes.NewReader(text[:n]), Known{}); !errors.As(err, new(*Problem)) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
}

// resealed returns lines as a bundle whose digest at the end is right, as its author could write it.
func resealed(t *testing.T, lines [][]byte) []byte {
	t.Helper()
	var sum runningDigest
	for _, line := range lines[:len(lines)-1] {
		sum.add(line)
	}
	last, err := json.Marshal(bundleLine{Digest: sum.sum.String()})
	if err != nil {
		t.Fatal(err)
	}
	return append(bytes.Join(append(slices.Clone(lines[:len(lines)-1]), last), []byte("\n")), '\n')
}

// changed returns all texts that differ from a JSON text in one value.
func changed(t *testing.T, v jsontext.Value) (all []string) {
	t.Helper()
	d := jsontext.NewDecoder(bytes.NewReader(v))
	for {
		begin := d.InputOffset()
		token, err := d.ReadToken()
		if err != nil {
			return all
		}
		end := d.InputOffset()
		_, n := d.StackIndex(d.StackDepth())
		kind, _ := d.StackIndex(d.StackDepth())
		if kind == '{' && n%2 == 1 { // a name
			continue
		}
		raw := string(v[begin:end])
		value := strings.TrimLeft(raw, ":, ")
		lead := raw[:len(raw)-len(value)]
		with := func(text string) { all = append(all, string(v[:begin])+lead+text+string(v[end:])) }
		switch token.Kind() {
		case '"':
			with(value[:len(value)-1] + `1"`)
			with(value[:len(value)-2] + string(value[len(value)-2]^1) + `"`)
		case '0':
			with(value + "1")
		default: // no value of its own
		}
	}
}

// TestEveryFieldIsVerified: also an author of a bundle, which writes the right digest at the end, can change no value
// of a price, a slice or the invoice alone: the rest of the bundle contradicts it.
func TestEveryFieldIsVerified(t *testing.T) {
	lines := bytes.Split(bytes.TrimSuffix(bundled(t, exported(t), prices()), []byte("\n")), []byte("\n"))
	count := 0
	for i, line := range lines[:len(lines)-1] {
		for _, text := range changed(t, line) {
			bad := slices.Clone(lines)
			bad[i] = []byte(text)
			count++
			if v, err := VerifyBundle(bytes.NewReader(resealed(t, bad)), Known{}); !errors.As(err, new(*Problem)) {
				t.Errorf("%s\nwas\n%s: %v, %+v", text, line, err, v)
			}
		}
	}
	if count < 150 {
		t.Errorf("only %d values were changed", count)
	}
}

// TestKnownDigests: an author of a bundle can make a chain anew, leave out its end, or change the price list, with an
// invoice that follows. Only a digest from elsewhere shows that.
func TestKnownDigests(t *testing.T) {
	lines := exported(t)
	var last accounting.Slice // of requests
	for _, line := range lines {
		if s, err := ParseSlice(line); err == nil && string(s.Dimension) == "requests" && s.Seq > last.Seq {
			last = s
		}
	}
	head := Head{"requests", last.Digest}
	agreed := prices().Digest()
	without := slices.DeleteFunc(slices.Clone(lines), func(line []byte) bool { return bytes.Contains(line, []byte(last.Digest.String())) })
	anew := make([][]byte, len(lines))
	for i, line := range lines {
		text := string(line)
		if strings.Contains(text, last.Digest.String()) {
			l := last
			l.Rows = slices.Clone(last.Rows)
			l.Rows[0].Value++
			text = strings.Replace(text, `"value":"2"`, `"value":"3"`, 1)
			text = strings.Replace(text, last.Digest.String(), l.ContentDigest().String(), 1)
		}
		anew[i] = []byte(text)
	}
	dearer := prices()
	dearer[0].Tiers[0].Price *= 2
	for _, c := range []struct {
		name   string
		bundle []byte
		known  Known
		want   string // empty: verified
	}{
		{"as it is", bundled(t, lines, prices()), Known{Heads: []Head{head}, Prices: &agreed}, ""},
		{"an earlier digest", bundled(t, lines, prices()), Known{Heads: []Head{{"requests", last.Previous}}}, ""},
		{"a chain that ends early", bundled(t, without, prices()), Known{}, ""},
		{"a chain that ends early, known", bundled(t, without, prices()), Known{Heads: []Head{head}}, "requests of tenant default: digest: no slice of the bundle has the known digest " + last.Digest.String()},
		{"a chain that was made anew", bundled(t, anew, prices()), Known{}, ""},
		{"a chain that was made anew, known", bundled(t, anew, prices()), Known{Heads: []Head{head}}, "requests of tenant default: digest: no slice of the bundle has the known digest " + last.Digest.String()},
		{"other prices", bundled(t, lines, dearer), Known{}, ""},
		{"other prices, known", bundled(t, lines, dearer), Known{Prices: &agreed}, "line 5: price: the price list has the digest "},
		{"the digest of another dimension", bundled(t, lines, prices()), Known{Heads: []Head{{"bytes_out", last.Digest}}}, "bytes_out of tenant default: digest: no slice"},
	} {
		_, err := VerifyBundle(bytes.NewReader(c.bundle), c.known)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestBundleProblems: what is wrong with a bundle is named with its line.
func TestBundleProblems(t *testing.T) {
	lines := bytes.Split(bytes.TrimSuffix(bundled(t, exported(t), prices()), []byte("\n")), []byte("\n"))
	replace := func(at int, old, new string) [][]byte {
		bad := slices.Clone(lines)
		bad[at] = bytes.Replace(bad[at], []byte(old), []byte(new), 1)
		return bad
	}
	without := func(at int) [][]byte { return slices.Delete(slices.Clone(lines), at, at+1) }
	const at = 1 + 3 + 4 // the invoice
	for name, c := range map[string]struct {
		lines [][]byte
		want  string
	}{
		"another format":        {replace(0, `"format":1`, `"format":2`), "line 1: format: is 2: this program reads format 1"},
		"no header":             {without(0), "line 1: is out of order"},
		"two headers":           {slices.Insert(slices.Clone(lines), 1, lines[0]), "line 2: is out of order"},
		"a price after slices":  {slices.Insert(slices.Clone(lines), 5, lines[2]), "line 6: is out of order"},
		"a price twice":         {slices.Insert(slices.Clone(lines), 2, lines[1]), "line 3: [1].name: is base again"},
		"a flat price":          {replace(1, `"price":"`, `"price":"x`), "line 2: price base: price: must be minor units"},
		"a price without tiers": {replace(2, `"price":"1.3"`, `"price":"1.30"`), "line 3: price calls: tiers[1].price: must be minor units"},
		"a slice twice":         {slices.Insert(slices.Clone(lines), 5, lines[4]), "line 6: custom:tokens.in of tenant default: slice 2: seq: occurs twice"},
		"no slice":              {without(5), "line 8: unpriced[0].quantity: is 18446744073709551620: the slices and prices give 5"},
		"another amount":        {replace(at, `"amount_minor":"41"`, `"amount_minor":"42"`), "line 9: lines[1].amount_minor: is 42: the slices and prices give 41"},
		"another total":         {replace(at, `"amount_minor":"541"`, `"amount_minor":"540"`), "line 9: totals[0].amount_minor: is 540: the slices and prices give 541"},
		"a line less":           {without(1), "line 8: prices: is "},
		"an unknown member":     {replace(at, `"totals"`, `"total"`), `line 9: unknown member "invoice/total"`},
		"no invoice":            {without(at), "line 9: is out of order"},
		"two kinds":             {replace(1, `{"price"`, `{"digest":"","bundle":{"format":1,"tenant":"default","from":"","to":"","sealed_to":""},"price"`), "line 2: must be an object with one of"},
		"an empty line":         {slices.Insert(slices.Clone(lines), 1, nil), "line 2: invalid JSON"},
	} {
		if _, err := VerifyBundle(bytes.NewReader(resealed(t, c.lines)), Known{}); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	whole := bytes.Join(lines, []byte("\n"))
	for name, c := range map[string]struct{ text, want string }{
		"empty":               {"", "line 1: the bundle ends without its digest"},
		"no line feed":        {string(whole), "line 10: has no line feed: the file was cut"},
		"more after the end":  {string(whole) + "\n{}\n", "line 11: is after the digest"},
		"a line without end":  {strings.Repeat("x", maxLine+1), "line 1: is longer than 1048576 bytes"},
		"without its digest":  {string(bytes.Join(lines[:9], []byte("\n"))) + "\n", "line 10: the bundle ends without its digest"},
		"another last digest": {strings.Replace(string(whole), `{"digest":"`, `{"digest":"0`, 1) + "\n", "line 10: digest: is not that of the lines before"},
	} {
		if _, err := VerifyBundle(strings.NewReader(c.text), Known{}); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestPriceText: the text of a price reads back as the price.
func TestPriceText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Map(rapid.Uint64Range(0, uint64(pricing.MaxMicros)), func(n uint64) pricing.Micros { return pricing.Micros(n) })
		p := pricing.Price{Name: "p", Dimension: "bytes_out", Asset: "EUR/2", Model: pricing.Model(rapid.IntRange(1, 4).Draw(t, "model")), Per: 1, Tiers: []pricing.Tier{{Price: micros.Draw(t, "price")}}}
		if p.Model == pricing.Flat {
			p.PerWindow = rapid.Bool().Draw(t, "for each window")
		} else {
			p.Per = rapid.Uint64Range(1, pricing.MaxPer).Draw(t, "per")
		}
		if p.Model > pricing.PerUnit {
			p.Tiers[0].Flat = rapid.OneOf(rapid.Just(pricing.Micros(0)), micros).Draw(t, "flat")
			for i := range rapid.IntRange(0, 4).Draw(t, "tiers") {
				p.Tiers = slices.Insert(p.Tiers, i, pricing.Tier{UpTo: uint64(i)*10 + 1, Price: micros.Draw(t, "price")})
			}
		}
		for i, name := range accounting.LabelNames() {
			if rapid.Bool().Draw(t, name) {
				p.Labels = append(p.Labels, accounting.Label{Name: name, Value: strings.Repeat("x", i+1)})
			}
		}
		text := NewPrice(&p)
		raw, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var read Price
		if err := json.Unmarshal(raw, &read, json.RejectUnknownMembers(true)); err != nil {
			t.Fatal(err)
		}
		if back, err := read.Decode(); err != nil || !reflect.DeepEqual(back, p) {
			t.Fatalf("%s: %v\n%+v\nwas\n%+v", raw, err, back, p)
		}
	})
}
