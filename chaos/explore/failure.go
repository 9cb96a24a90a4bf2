package explore

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"macronode/core/types"
)

// errRound reports a schedule that revisits a state of its path, and so may not end.
var errRound = errors.New("goes round: back in a state that it came from")

// A Failure is a schedule that violates a rule. Without any of its actions, it does not.
type Failure struct {
	Log   []Action
	Lines []string // the actions as text
	Err   error
}

func (f *Failure) String() string {
	var b strings.Builder
	for i, line := range f.Lines {
		fmt.Fprintf(&b, "%3d  %s\n", i+1, line)
	}
	fmt.Fprintf(&b, "     BROKEN %v", f.Err)
	return b.String()
}

// shorten removes actions from a schedule as long as it violates the same rule.
func shorten[S any, P System[S]](start P, log []Action, err error) *Failure {
	best := &Failure{Log: log, Err: err}
	if again := play[S](start, log); again != nil {
		best = again
	} // otherwise it depends on reused memory: the schedule stays complete, without text
	for size := len(best.Log) / 2; size > 0; size /= 2 {
		for from := 0; from+size <= len(best.Log); {
			fewer := slices.Delete(slices.Clone(best.Log), from, from+size)
			if f := play[S](start, fewer); f != nil && rule(f.Err) == rule(err) && len(f.Log) < len(best.Log) {
				best = f
			} else {
				from += size
			}
		}
	}
	return best
}

// rule returns a violation without its numbers.
func rule(err error) string {
	name, _, _ := strings.Cut(err.Error(), ":")
	return name
}

// play does the possible actions of a schedule, and returns the violation; nil: none.
func play[S any, P System[S]](start P, log []Action) (f *Failure) {
	s, did := P(new(S)), &Failure{}
	start.CopyTo(s)
	defer func() {
		if why := recover(); why != nil {
			did.Err, f = fmt.Errorf("panic: %v", why), did
		}
	}()
	if did.Err = s.Check(); did.Err != nil {
		return did
	}
	met := map[types.Hash64]bool{s.Hash(): true}
	may := s.Enabled(nil)
	for _, a := range log {
		if !slices.Contains(may, a) {
			continue
		}
		did.Log, did.Lines = append(did.Log, a), append(did.Lines, s.Say(a))
		if did.Err = s.Do(a); did.Err == nil {
			did.Err = s.Check()
		}
		if h := s.Hash(); did.Err == nil && met[h] {
			did.Err = errRound
		} else {
			met[h] = true
		}
		if did.Err != nil {
			return did
		}
		may = s.Enabled(may[:0])
	}
	if len(may) == 0 {
		if did.Err = s.Rest(); did.Err != nil {
			return did
		}
	}
	return nil
}
