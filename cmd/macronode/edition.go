package main

import (
	"macronode/adapters/config"
	"macronode/adapters/httpapi"
)

// An edition is a configuration as it is applied: what may change of it is swapped whole, and
// the next one takes its place.
type edition struct {
	config  *config.Config
	numbers numbering
	beyond  *beyond // nil: nothing is sent on
	face    httpapi.Face
}

// edit makes the edition of a configuration behind another. Nothing of it is applied.
func (l *life) edit(c *config.Config, before *edition) (e *edition, err error) {
	e = &edition{config: c}
	if e.numbers, err = before.numbers.renumber(c); err != nil {
		return nil, err
	}
	if e.beyond, err = l.newBeyond(c, e.numbers); err != nil {
		return nil, err
	}
	e.face = httpapi.Face{Version: versionOf(c), Quotas: policies(c, e.numbers), Trusted: c.HTTP.TrustedProxies}
	if e.beyond != nil {
		e.face.Beyond = e.beyond
	}
	return e, nil
}
