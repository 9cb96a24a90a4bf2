package usagefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"macronode/core/accounting"
	"macronode/core/digest"
	"macronode/core/invoice"
	"macronode/core/pricing"
	"macronode/core/types"
)

// bundleFormat is the format that this package writes and reads.
const bundleFormat = 1

// maxLine is the length of the longest line of a bundle, in bytes.
const maxLine = 1 << 20

// A bundle has one line for its header, one for each price, one for each slice, one for the invoice, and one for the
// digest of the lines before. Each is an object with one member, which names its kind.
type bundleLine struct {
	Bundle  *Header        `json:"bundle,omitzero"`
	Price   *Price         `json:"price,omitzero"`
	Slice   jsontext.Value `json:"slice,omitzero"`
	Invoice *Invoice       `json:"invoice,omitzero"`
	Digest  string         `json:"digest,omitzero"`
}

// A Header says what a bundle is for.
type Header struct {
	Format   int    `json:"format"`
	Tenant   string `json:"tenant"`
	From     string `json:"from"`
	To       string `json:"to"`
	SealedTo string `json:"sealed_to"`
}

// A runningDigest is the digest of lines: each is that of the digest before and the line, with its line feed.
type runningDigest struct {
	sum     accounting.Digest
	scratch []byte
}

func (r *runningDigest) add(line []byte) {
	r.scratch = append(append(append(r.scratch[:0], r.sum[:]...), line...), '\n')
	r.sum = digest.Sum(r.scratch)
}

// A BundleWriter writes a bundle.
type BundleWriter struct {
	to  io.Writer
	sum runningDigest
}

// NewBundleWriter begins a bundle for an invoice.
func NewBundleWriter(to io.Writer, v *Invoice, prices pricing.List) (*BundleWriter, error) {
	w := &BundleWriter{to: to}
	err := w.line(bundleLine{Bundle: &Header{bundleFormat, v.Tenant, v.From, v.To, v.SealedTo}})
	for i := range prices {
		if err == nil {
			p := NewPrice(&prices[i])
			err = w.line(bundleLine{Price: &p})
		}
	}
	return w, err
}

// Slice writes a slice as the API returned it.
func (w *BundleWriter) Slice(text []byte) error { return w.line(bundleLine{Slice: text}) }

// End writes the invoice and the digest.
func (w *BundleWriter) End(v *Invoice) error {
	if err := w.line(bundleLine{Invoice: v}); err != nil {
		return err
	}
	return w.line(bundleLine{Digest: w.sum.sum.String()})
}

func (w *BundleWriter) line(l bundleLine) error {
	text, err := json.Marshal(l, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	w.sum.add(text)
	_, err = w.to.Write(append(text, '\n'))
	return err
}

// Known is what a reader knows of a tenant from elsewhere. What it has is compared with a bundle.
type Known struct {
	Heads  []Head             // digests of slices that the reader was given before
	Prices *accounting.Digest // of the price list that was agreed
}

// A Head is the digest of a slice of a dimension.
type Head struct {
	Dimension string
	Digest    accounting.Digest
}

// A Verified bundle has the invoice that its slices and prices give.
type Verified struct {
	OK      bool    `json:"ok"` // true
	Invoice Invoice `json:"invoice"`
	Chains  []Chain `json:"chains"`
}

// VerifyBundle verifies a bundle, and computes its invoice again. Its error is a *Problem, or that of from.
//
// It finds every change of a bundle that its author did not make: by the digest at the end. Of a bundle whose author
// is not trusted, it finds every change of a slice that has a later slice or a known head, and every amount that does
// not follow from slices and prices. Without a known head it cannot find a chain that was made anew or that ends
// early, and without known prices not another price list.
func VerifyBundle(from io.Reader, known Known) (*Verified, error) {
	r := &bundleReader{known: known, seen: make([]bool, len(known.Heads)), chains: accounting.NewVerifier()}
	all := newLines(from)
	for all.next() {
		if r.line++; r.end {
			return nil, &Problem{Line: r.line, Detail: "is after the digest, which is the last line"}
		}
		if err := r.read(all.text()); err != nil {
			if bad := new(Problem); errors.As(err, &bad) {
				bad.Line = r.line
			}
			return nil, err
		}
	}
	if err := all.err(); err != nil {
		return nil, err
	}
	if !r.end {
		return nil, &Problem{Line: r.line + 1, Detail: "the bundle ends without its digest"}
	}
	return r.result()
}

// A bundleReader reads the lines of a bundle in their order.
type bundleReader struct {
	known  Known
	seen   []bool // of known.Heads
	line   int
	sum    runningDigest
	to     types.Time
	period accounting.Window
	tenant types.Tenant
	prices pricing.List
	chains *accounting.Verifier
	bill   *invoice.Builder // nil: the first slice was not read
	stated *Invoice
	is     Invoice // computed
	end    bool
}

// read reads the next line. Its error is a *Problem.
func (r *bundleReader) read(text []byte) error {
	var l bundleLine
	if err := unmarshal(text, &l); err != nil {
		return err
	}
	members := 0
	for _, set := range [...]bool{l.Bundle != nil, l.Price != nil, l.Slice != nil, l.Invoice != nil, l.Digest != ""} {
		if set {
			members++
		}
	}
	switch {
	case members != 1:
		return &Problem{Detail: "must be an object with one of bundle, price, slice, invoice, digest"}
	case (l.Bundle != nil) != (r.line == 1) || (l.Digest != "") != (r.stated != nil) || l.Price != nil && r.bill != nil:
		return &Problem{Detail: "is out of order: the lines are bundle, prices, slices, invoice, digest"}
	}
	var err error
	switch {
	case l.Bundle != nil:
		err = r.begin(l.Bundle)
	case l.Price != nil:
		err = r.price(l.Price)
	case l.Slice != nil:
		err = r.slice(l.Slice)
	case l.Invoice != nil:
		err = r.invoice(l.Invoice)
	default:
		if r.end = true; l.Digest != r.sum.sum.String() {
			return &Problem{Field: "digest", Detail: "is not that of the lines before, " + r.sum.sum.String()}
		}
		if again, _ := json.Marshal(l); !bytes.Equal(again, text) {
			return &Problem{Detail: "is not in the form that bundles have"}
		}
	}
	r.sum.add(text)
	return err
}

func (r *bundleReader) begin(h *Header) error {
	ok := false
	if h.Format != bundleFormat {
		return &Problem{Field: "format", Detail: fmt.Sprintf("is %d: this program reads format %d", h.Format, bundleFormat)}
	}
	if r.tenant, ok = ParseTenant(h.Tenant); !ok {
		return &Problem{Field: "tenant", Detail: "must be default, or a number"}
	}
	var err error

	r.period, r.to, err = (&Invoice{From: h.From, To: h.To, SealedTo: h.SealedTo}).period()
	return fieldProblem(err)
}

func (r *bundleReader) price(p *Price) error {
	of, err := p.Decode()
	if err != nil {
		return p.problem(err)
	}
	r.prices = append(r.prices, of)
	return fieldProblem(r.prices.Check())
}

// start ends the prices.
func (r *bundleReader) start() error {
	if r.bill != nil {
		return nil
	}
	r.bill = invoice.New(r.tenant, r.period, r.prices)
	if is := r.prices.Digest(); r.known.Prices != nil && is != *r.known.Prices {
		return &Problem{Field: "price", Detail: fmt.Sprintf("the price list has the digest %v, not the known %v", is, *r.known.Prices)}
	}
	return nil
}

func (r *bundleReader) slice(text []byte) error {
	if err := r.start(); err != nil {
		return err
	}
	s, err := AddSlice(r.chains, text)
	if err != nil {
		return err
	}
	for i, h := range r.known.Heads {
		if h.Dimension == string(s.Dimension) && (h.Digest == s.Digest || h.Digest == s.Previous) {
			r.seen[i] = true
		}
	}
	if err := r.bill.Add(&s); err != nil {
		return &Problem{Dimension: string(s.Dimension), Tenant: TenantName(s.Tenant), Seq: s.Seq, Detail: err.Error()}
	}
	return nil
}

// invoice compares the invoice with the one that slices and prices give.
func (r *bundleReader) invoice(stated *Invoice) error {
	if err := r.start(); err != nil {
		return err
	}
	v, err := r.bill.Invoice()
	if err != nil {
		return &Problem{Detail: err.Error()}
	}
	r.stated, r.is = stated, NewInvoice(&v, r.to)
	return firstDifference(stated, &r.is)
}

// result checks what needs all lines.
func (r *bundleReader) result() (*Verified, error) {
	v := &Verified{OK: true, Invoice: r.is, Chains: []Chain{}}
	streams := r.chains.Streams()
	for i := range streams {
		if err := MissingSlices(&streams[i], ""); err != nil {
			return nil, err
		}
		v.Chains = append(v.Chains, NewChain(&streams[i]))
	}
	for i, seen := range r.seen {
		if h := r.known.Heads[i]; !seen {
			return nil, &Problem{Tenant: TenantName(r.tenant), Dimension: h.Dimension, Field: "digest", Detail: fmt.Sprintf("no slice of the bundle has the known digest %v", h.Digest)}
		}
	}
	return v, nil
}

// firstDifference returns a *Problem that names the first field of an invoice that differs.
func firstDifference(stated, is *Invoice) error {
	if reflect.DeepEqual(stated, is) {
		return nil
	}
	at, was, want := difference("", reflect.ValueOf(*stated), reflect.ValueOf(*is))
	return &Problem{Field: at, Detail: fmt.Sprintf("is %v: the slices and prices give %v", was, want)}
}

// difference returns the first field that differs, and its values.
func difference(path string, a, b reflect.Value) (at string, was, is any) {
	switch {
	case a.Kind() == reflect.Struct:
		for i := range a.NumField() {
			if x, y := a.Field(i), b.Field(i); !reflect.DeepEqual(x.Interface(), y.Interface()) {
				name, _, _ := bytes.Cut([]byte(a.Type().Field(i).Tag.Get("json")), []byte{','})
				return difference(path+"."+string(name), x, y)
			}
		}
	case a.Kind() == reflect.Slice && a.Len() == b.Len():
		for i := range a.Len() {
			if x, y := a.Index(i), b.Index(i); !reflect.DeepEqual(x.Interface(), y.Interface()) {
				return difference(fmt.Sprintf("%s[%d]", path, i), x, y)
			}
		}
	case a.Kind() == reflect.Slice:
		return path, fmt.Sprintf("a list of %d", a.Len()), fmt.Sprintf("a list of %d", b.Len())
	}
	return path[min(1, len(path)):], a.Interface(), b.Interface()
}
