package world

import (
	"fmt"
	"slices"
)

// recorded writes down what another answers.
type recorded struct {
	c    Chooser
	into *Log
}

// Recorded is c, and all that it answers is appended to the log.
func Recorded(c Chooser, into *Log) Chooser { return recorded{c, into} }

// Choose asks, and writes down.
func (r recorded) Choose(site string, n int) int {
	got := r.c.Choose(site, n)
	*r.into = append(*r.into, Choice{site, n, got})
	return got
}

// given has the answer for one site.
type given struct {
	c    Chooser
	site string
	got  int
}

// Given is c but for one site, which is told the same each time.
func Given(c Chooser, site string, got int) Chooser { return given{c, site, got} }

// Choose is what was given, or what c says.
func (g given) Choose(site string, n int) int {
	if site == g.site {
		return min(g.got, n-1)
	}
	return g.c.Choose(site, n)
}

// Diverged is what a replay panics with, when the run asks something else than the run
// that was logged: the code has changed, and nothing is known of whether it fails.
type Diverged struct {
	At   int    // in the log
	Want Choice // the log's
	Got  Choice // the question; what it would have been told is not known
}

func (d Diverged) Error() string {
	return fmt.Sprintf("world: diverged at choice %d: the log has %v, asked was 1 of %d at %s", d.At, d.Want, d.Got.N, d.Got.Site)
}

// replayed answers as a log says.
type replayed struct {
	log Log
	at  int
}

// Replay answers as the log says, and when that is at its end, dully. It panics with
// Diverged at a question that the log does not have there.
func Replay(l Log) Chooser { return &replayed{log: l} }

// Choose is the log's answer.
func (r *replayed) Choose(site string, n int) int {
	if r.at == len(r.log) {
		return 0
	}
	want := r.log[r.at]
	if want.Site != site || want.N != n {
		panic(Diverged{r.at, want, Choice{Site: site, N: n}})
	}
	r.at++
	return want.Got
}

// loose answers as a log says where it can.
type loose struct {
	log   Log
	at    int
	steps []string
}

// Loose answers as the log says where that has something to say, for logs that were cut
// or are of another version. The run is a row of steps, each of which begins with a
// question at one of those sites: there the log is taken up again, whatever was left of
// the step before. Within a step a question is told what the next one at its site was
// told, and is dull where there is none.
func Loose(l Log, steps ...string) Chooser { return &loose{log: l, steps: steps} }

// Choose is the log's answer, or 0.
func (r *loose) Choose(site string, n int) int {
	step := slices.Contains(r.steps, site)
	for at := r.at; at < len(r.log); at++ {
		switch c := r.log[at]; {
		case c.Site == site:
			r.at = at + 1
			return min(c.Got, n-1)
		case !step && slices.Contains(r.steps, c.Site):
			return 0 // it is the next step's
		}
	}
	return 0
}
