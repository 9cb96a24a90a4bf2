package usagefile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"macronode/core/accounting"
	"macronode/core/pricing"
)

// A Price is the text of a price.
type Price struct {
	Name      string `json:"name"`
	Dimension string `json:"dimension"`
	Labels    Labels `json:"labels,omitzero"`
	Asset     string `json:"asset"`
	Model     string `json:"model"`
	Price     string `json:"price,omitzero"` // of flat and per_unit, in minor units
	Per       string `json:"per,omitzero"`   // units, if more than 1
	Each      string `json:"each,omitzero"`  // of flat: invoice or window
	Tiers     []Tier `json:"tiers,omitzero"` // of graduated and volume
}

// Labels are those that usage must have.
type Labels struct {
	Service string `json:"service,omitzero"`
	Region  string `json:"region,omitzero"`
	Method  string `json:"method,omitzero"`
	Route   string `json:"route,omitzero"`
	Subject string `json:"subject,omitzero"`
}

// fields are the labels in the order of accounting.LabelNames.
func (l *Labels) fields() [5]*string {
	return [...]*string{&l.Service, &l.Region, &l.Method, &l.Route, &l.Subject}
}

// A Tier is the text of a tier.
type Tier struct {
	UpTo  string `json:"up_to,omitzero"`
	Price string `json:"price"`
	Flat  string `json:"flat,omitzero"`
}

// NewPrice returns the text of a valid price.
func NewPrice(p *pricing.Price) Price {
	to := Price{Name: p.Name, Dimension: p.Dimension, Asset: p.Asset, Model: p.Model.String()}
	names := accounting.LabelNames()
	for _, l := range p.Labels {
		*to.Labels.fields()[slices.Index(names[:], l.Name)] = l.Value
	}
	if p.Per > 1 {
		to.Per = strconv.FormatUint(p.Per, 10)
	}
	if p.Model == pricing.Flat {
		to.Each = "invoice"
	}
	if p.PerWindow {
		to.Each = "window"
	}
	if p.Model == pricing.Flat || p.Model == pricing.PerUnit {
		to.Price = p.Tiers[0].Price.String()
		return to
	}
	for _, t := range p.Tiers {
		tier := Tier{Price: t.Price.String()}
		if t.UpTo > 0 {
			tier.UpTo = strconv.FormatUint(t.UpTo, 10)
		}
		if t.Flat > 0 {
			tier.Flat = t.Flat.String()
		}
		to.Tiers = append(to.Tiers, tier)
	}
	return to
}

// Decode returns the price, which is valid. Its error is a *accounting.FieldError.
func (p *Price) Decode() (to pricing.Price, err error) {
	wrong := func(field, why string) error { return &accounting.FieldError{Field: field, Why: why} }
	to = pricing.Price{Name: p.Name, Dimension: p.Dimension, Asset: p.Asset, PerWindow: p.Each == "window", Per: 1}
	models := pricing.Models()
	to.Model = pricing.Model(slices.Index(models[:], p.Model) + 1)
	for i, value := range p.Labels.fields() {
		if *value != "" {
			to.Labels = append(to.Labels, accounting.Label{Name: accounting.LabelNames()[i], Value: *value})
		}
	}
	var ok bool
	if to.Per, ok = orOne(p.Per); !ok {
		return to, wrong("per", "must be a string of digits, more than 1")
	}
	if flat := p.Model == "flat"; flat != (p.Each == "window" || p.Each == "invoice") {
		return to, wrong("each", "must be invoice or window for a flat price, and not set for others")
	}
	tiers := p.Tiers
	if p.Price != "" {
		tiers = append([]Tier{{Price: p.Price}}, tiers...)
	}
	for i, t := range tiers {
		field := fmt.Sprintf("tiers[%d].", i)
		if p.Price != "" && len(tiers) == 1 {
			field = ""
		}
		tier, err := t.decode(field)
		if err != nil {
			return to, err
		}
		to.Tiers = append(to.Tiers, tier)
	}
	return to, to.Check()
}

// decode returns a tier. Its error is a *accounting.FieldError.
func (t *Tier) decode(field string) (to pricing.Tier, err error) {
	var ok bool
	if to.UpTo, ok = readNumber(t.UpTo, 64); t.UpTo != "" && (!ok || to.UpTo == 0) {
		return to, &accounting.FieldError{Field: field + "up_to", Why: "must be a string of digits, at least 1"}
	}
	if to.Price, err = pricing.ParseMicros(t.Price); err != nil {
		return to, &accounting.FieldError{Field: field + "price", Why: err.Error()}
	}
	if to.Flat, err = pricing.ParseMicros(t.Flat); t.Flat != "" && (err != nil || to.Flat == 0) {
		return to, &accounting.FieldError{Field: field + "flat", Why: pricing.ErrDecimal.Error() + ", more than 0"}
	}
	return to, nil
}

// orOne reads a number of at least 2; no text is 1.
func orOne(text string) (uint64, bool) {
	if text == "" {
		return 1, true
	}
	n, ok := readNumber(text, 64)
	return n, ok && n > 1
}

// String returns the terms of the price, without its name.
func (p *Price) String() string {
	per := ""
	if p.Per != "" {
		per = " per " + p.Per
	}
	switch {
	case p.Each == "window":
		return p.Price + " for each window"
	case p.Each != "":
		return p.Price + " once"
	case p.Price != "":
		return p.Price + " each" + per
	}
	var tiers []string
	for _, t := range p.Tiers {
		text := t.Price
		if t.Flat != "" {
			text += " and " + t.Flat + " once"
		}
		if t.UpTo != "" {
			text += " up to " + t.UpTo
		}
		tiers = append(tiers, text)
	}
	return p.Model + per + ": " + strings.Join(tiers, ", ")
}

// problem returns an error about p as a *Problem.
func (p *Price) problem(err error) error {
	at := new(accounting.FieldError)
	if err == nil || !errors.As(err, &at) {
		return err
	}
	return &Problem{Field: "price " + p.Name + ": " + at.Field, Detail: at.Why}
}
