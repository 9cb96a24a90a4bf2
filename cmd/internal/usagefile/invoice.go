package usagefile

import (
	"fmt"
	"strings"

	"macronode/core/accounting"
	"macronode/core/invoice"
	"macronode/core/types"
)

// An Invoice is the text of an invoice. The same slices and prices always give the same text.
type Invoice struct {
	Tenant   string     `json:"tenant"`
	From     string     `json:"from"`
	To       string     `json:"to"`
	SealedTo string     `json:"sealed_to"` // windows that begin before it are in the invoice
	Prices   string     `json:"prices"`    // digest of the price list
	Lines    []Line     `json:"lines"`
	Totals   []Total    `json:"totals"`           // to be paid
	Prepaid  []Total    `json:"prepaid,omitzero"` // paid as the usage was recorded
	Unpriced []Unpriced `json:"unpriced,omitzero"`
}

// A Line is the text of a line.
type Line struct {
	Price    Price  `json:"price"`
	Prepaid  bool   `json:"prepaid,omitzero"`
	Slices   uint64 `json:"slices"`
	First    uint64 `json:"first_seq"`
	Last     uint64 `json:"last_seq"`
	Head     string `json:"head"` // digest of the slice with last_seq
	Windows  uint64 `json:"windows"`
	Quantity string `json:"quantity"`
	Late     string `json:"late"` // of quantity: from corrections
	Amount   string `json:"amount_minor"`
}

// A Total is the sum of the lines of an asset.
type Total struct {
	Asset  string `json:"asset"`
	Amount string `json:"amount_minor"`
}

// Unpriced is usage without a price.
type Unpriced struct {
	Dimension string `json:"dimension"`
	Quantity  string `json:"quantity"`
}

// NewInvoice returns the text of an invoice for windows that begin before to. Those at and after the end of its period
// are not sealed.
func NewInvoice(v *invoice.Invoice, to types.Time) Invoice {
	t := Invoice{Tenant: TenantName(v.Tenant), From: FormatTime(v.Period.From), To: FormatTime(to), SealedTo: FormatTime(v.Period.To),
		Prices: v.Prices.Digest().String(), Lines: []Line{}, Totals: []Total{}}
	for i := range v.Lines {
		l := &v.Lines[i]
		t.Lines = append(t.Lines, Line{NewPrice(l.Price), l.Prepaid, l.Slices, l.First, l.Last, l.Head.String(), l.Windows, l.Units.String(), l.Late.String(), l.Amount.String()})
	}
	for _, of := range v.Totals {
		t.Totals = append(t.Totals, Total{of.Asset, of.Amount.String()})
	}
	for _, of := range v.Prepaid {
		t.Prepaid = append(t.Prepaid, Total{of.Asset, of.Amount.String()})
	}
	for _, of := range v.Unpriced {
		t.Unpriced = append(t.Unpriced, Unpriced{of.Dimension, of.Units.String()})
	}
	return t
}

// period returns the period and the end of an invoice. Its error is a *accounting.FieldError.
func (v *Invoice) period() (period accounting.Window, to types.Time, err error) {
	err = readTimes(timeField{"from", v.From, &period.From}, timeField{"to", v.To, &to}, timeField{"sealed_to", v.SealedTo, &period.To})
	if err == nil && (period.From > period.To || period.To > to) {
		err = &accounting.FieldError{Field: "sealed_to", Why: "must be between from and to"}
	}
	return period, to, err
}

// String returns a line for the invoice, for each of its lines and for each total.
func (v *Invoice) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "invoice of tenant %s, windows that begin from %s to %s, price list %s\n", v.Tenant, v.From, v.To, v.Prices)
	for i := range v.Lines {
		l := &v.Lines[i]
		fmt.Fprintf(&b, "%s: %s %s in %d windows", l.Price.Name, l.Quantity, l.Price.Dimension, l.Windows)
		if l.Late != "0" {
			fmt.Fprintf(&b, ", %s of it late", l.Late)
		}
		if l.Prepaid {
			b.WriteString(", prepaid")
		}
		fmt.Fprintf(&b, ", at %s: %s %s\n  %d slices from %d to %d, digest of the last %s\n", &l.Price, l.Amount, l.Price.Asset, l.Slices, l.First, l.Last, l.Head)
	}
	for _, u := range v.Unpriced {
		fmt.Fprintf(&b, "no price: %s %s\n", u.Quantity, u.Dimension)
	}
	for _, t := range v.Prepaid {
		fmt.Fprintf(&b, "prepaid: %s %s\n", t.Amount, t.Asset)
	}
	for _, t := range v.Totals {
		fmt.Fprintf(&b, "total: %s %s\n", t.Amount, t.Asset)
	}
	if len(v.Lines) == 0 {
		b.WriteString("no sealed usage with a price\n")
	}
	if v.SealedTo != v.To {
		fmt.Fprintf(&b, "windows that begin at %s or later are not sealed, and not in the invoice\n", v.SealedTo)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
