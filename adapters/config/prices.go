package config

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"macronode/core/accounting"
	"macronode/core/pricing"
)

// A UsagePrice is what usage of a dimension costs. Price is for flat and per_unit, Tiers are for graduated and volume.
type UsagePrice struct {
	Name      string      `key:"name" form:"label" need:"yes" doc:"Name of the price, as invoices show it. Each price has a name of its own."`
	Dimension string      `key:"dimension" form:"dimension" need:"yes" doc:"Dimension of the usage."`
	Labels    UsageLabels `key:"labels" doc:"Only usage with these labels has the price. Not set: all usage of the dimension."`
	Asset     string      `key:"asset" form:"asset" need:"yes" doc:"Asset of the price."`
	Model     string      `key:"model" one:"flat per_unit graduated volume" need:"yes" doc:"flat: a fixed amount, if there is usage. per_unit: each unit has the same price. graduated: each unit has the price of the tier that it is in. volume: all units have the price of the tier that the last unit is in."`
	Price     string      `key:"price" form:"decimal" doc:"Price of flat and per_unit, in minor units of the asset."`
	Per       Burst       `key:"per" default:"1" min:"1" max:"1000000000000" doc:"Units that a price is for, such as 1000000 requests or 1GiB of bytes. A part of them costs a part of the price."`
	Each      string      `key:"each" default:"invoice" one:"invoice window" doc:"Of flat: invoice charges once for the period of the invoice, window for each window with usage."`
	Tiers     []PriceTier `key:"tiers" most:"16" takes:"tiers" doc:"Tiers of graduated and volume, in order. They count the units of the period of an invoice."`
}

// UsageLabels select usage.
type UsageLabels struct {
	Service string `key:"service" form:"usage label" doc:"The label service."`
	Region  string `key:"region" form:"usage label" doc:"The label region."`
	Method  string `key:"method" form:"usage label" doc:"The label method."`
	Route   string `key:"route" form:"usage label" doc:"The label route."`
	Subject string `key:"subject" form:"usage label" doc:"The label subject."`
}

// A PriceTier is the price of the units up to a quantity.
type PriceTier struct {
	UpTo  Burst  `key:"up_to" min:"1" max:"1000000000000000000" doc:"Last unit of the tier. Not set in the last tier, which has no end."`
	Price string `key:"price" form:"decimal" need:"yes" doc:"Price in minor units, for per units."`
	Flat  string `key:"flat" default:"0" form:"decimal" doc:"Minor units in addition, once, if the tier is used."`
}

// PriceList returns the prices of usage. The configuration is valid.
func (c *Config) PriceList() pricing.List {
	all := make(pricing.List, len(c.Usage.Prices))
	for i := range all {
		all[i] = c.Usage.Prices[i].price()
	}
	return all
}

func (p *UsagePrice) price() pricing.Price {
	to := pricing.Price{Name: p.Name, Dimension: p.Dimension, Asset: p.Asset, PerWindow: p.Each == "window", Per: p.Per.Units, Labels: p.Labels.list()}
	for i, name := range pricing.Models() {
		if name == p.Model {
			to.Model = pricing.Model(i + 1)
		}
	}
	if p.Price != "" {
		to.Tiers = []pricing.Tier{{Price: micros(p.Price)}}
	}
	for _, t := range p.Tiers {
		to.Tiers = append(to.Tiers, pricing.Tier{UpTo: t.UpTo.Units, Price: micros(t.Price), Flat: micros(t.Flat)})
	}
	return to
}

// micros returns a decimal number of the form.
func micros(text string) pricing.Micros {
	m, err := pricing.ParseMicros(cmp.Or(text, "0"))
	if err != nil {
		panic("config: the form decimal accepts " + text)
	}
	return m
}

// list returns the labels that are set, in the order of accounting.LabelNames.
func (l *UsageLabels) list() (all []accounting.Label) {
	for i, value := range [...]string{l.Service, l.Region, l.Method, l.Route, l.Subject} {
		if value != "" {
			all = append(all, accounting.Label{Name: accounting.LabelNames()[i], Value: value})
		}
	}
	return all
}

// usagePrice checks a price beyond its tags.
func (c *Config) usagePrice(at int, refuse refuser) {
	p := &c.Usage.Prices[at]
	for i := range at {
		if c.Usage.Prices[i].Name == p.Name {
			refuse(".name", "is %s again: accounting.prices[%d] has it", p.Name, i)
		}
	}
	tiered := p.Model == "graduated" || p.Model == "volume"
	mayBeBytes := strings.HasPrefix(p.Dimension, "bytes") || strings.HasPrefix(p.Dimension, "custom:")
	for i, t := range p.Tiers {
		if t.UpTo.Sized && !mayBeBytes {
			refuse(fmt.Sprintf(".tiers[%d].up_to", i), "is %v: must be a whole number, because %s are no bytes", t.UpTo, p.Dimension)
		}
	}
	switch {
	case tiered && p.Price != "":
		refuse(".price", "is %s: the model %s has its prices in tiers", p.Price, p.Model)
	case tiered && len(p.Tiers) == 0:
		refuse("", "has no tiers: the model %s needs them", p.Model)
	case !tiered && len(p.Tiers) > 0:
		refuse(".tiers", "are set: the model %s has a price and no tiers", p.Model)
	case !tiered && p.Price == "":
		refuse("", "has no price: the model %s needs one", p.Model)
	case p.Per.Sized && !mayBeBytes:
		refuse(".per", "is %v: must be a whole number, because %s are no bytes", p.Per, p.Dimension)
	default:
		of := p.price()
		wrong := new(accounting.FieldError)
		if errors.As(of.Check(), &wrong) {
			refuse("."+wrong.Field, "%s", wrong.Why)
		}
	}
}
