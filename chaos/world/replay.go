package world

import (
	"fmt"
	"slices"
)

// recorded logs the choices of another chooser.
type recorded struct {
	c    Chooser
	into *Log
}

// Recorded returns c with its choices appended to the log.
func Recorded(c Chooser, into *Log) Chooser { return recorded{c, into} }

// Choose chooses and logs.
func (r recorded) Choose(site string, n int) int {
	got := r.c.Choose(site, n)
	*r.into = append(*r.into, Choice{site, n, got})
	return got
}

// given fixes the result of one site.
type given struct {
	c    Chooser
	site string
	got  int
}

// Given returns c with a fixed result for one site.
func Given(c Chooser, site string, got int) Chooser { return given{c, site, got} }

// Choose returns the fixed result, or that of c.
func (g given) Choose(site string, n int) int {
	if site == g.site {
		return min(g.got, n-1)
	}
	return g.c.Choose(site, n)
}

// Diverged is the panic of a replay whose choices differ from the log: the code has changed, and
// whether it fails is unknown.
type Diverged struct {
	At   int    // index in the log
	Want Choice // of the log
	Got  Choice // of the run; its result is unknown
}

func (d Diverged) Error() string {
	return fmt.Sprintf("world: diverged at choice %d: the log has %v, the run chooses 1 of %d at %s", d.At, d.Want, d.Got.N, d.Got.Site)
}

// replayed chooses from a log.
type replayed struct {
	log   Log
	at    int
	added []string
}

// Replay chooses from a log, and 0 after its end. It panics with Diverged if a choice differs
// from the log. A log may lack the added sites, because it is older: their choice is then 0.
func Replay(l Log, added ...string) Chooser { return &replayed{log: l, added: added} }

// Choose returns the result of the log.
func (r *replayed) Choose(site string, n int) int {
	if r.at == len(r.log) {
		return 0
	}
	want := r.log[r.at]
	if want.Site != site && slices.Contains(r.added, site) {
		return 0
	}
	if want.Site != site || want.N != n {
		panic(Diverged{r.at, want, Choice{Site: site, N: n}})
	}
	r.at++
	return want.Got
}

// loose chooses from a log where possible.
type loose struct {
	log   Log
	at    int
	steps []string
}

// Loose chooses from a log where it can, for logs that were cut or come from another version. The
// run is a sequence of steps, each of which begins with a choice at one of those sites: there the
// log is resumed, whatever is left of the previous step. Within a step, a choice gets the result
// of the next choice at its site, or 0.
func Loose(l Log, steps ...string) Chooser { return &loose{log: l, steps: steps} }

// Choose returns the result of the log, or 0.
func (r *loose) Choose(site string, n int) int {
	step := slices.Contains(r.steps, site)
	for at := r.at; at < len(r.log); at++ {
		switch c := r.log[at]; {
		case c.Site == site:
			r.at = at + 1
			return min(c.Got, n-1)
		case !step && slices.Contains(r.steps, c.Site):
			return 0 // it belongs to the next step
		}
	}
	return 0
}
