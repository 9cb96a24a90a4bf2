package types

import (
	"errors"
	"strings"
)

// ErrPatterns says that a text is no list of patterns.
var ErrPatterns = errors.New("patterns: must be at most 255 bytes of names, each perhaps ending in *, with commas between")

// Patterns says which names an API key covers: exact ones, and with a * at the end
// all that begin so. An empty list covers every name.
//
//	user:17,user:18:*
//
// It is flat, so that it can stand in a row of a table.
type Patterns struct {
	size uint8
	text [MaxPatterns]byte
}

// ParsePatterns reads what String writes.
func ParsePatterns[T ~string | ~[]byte](s T) (p Patterns, err error) {
	if len(s) > len(p.text) {
		return p, ErrPatterns
	}
	p.size = uint8(copy(p.text[:], s))
	for one := range p.each {
		if name := strings.TrimSuffix(one, "*"); name == "" && one == "" || name != "" && CheckAccount(name) != nil {
			return Patterns{}, ErrPatterns
		}
	}
	return p, nil
}

// Covers reports that a name is one of p's.
func Covers[T ~string | ~[]byte](p *Patterns, name T) bool {
	text := p.text[:p.size]
	for len(text) > 0 {
		end := 0
		for end < len(text) && text[end] != ',' {
			end++
		}
		one := text[:end]
		if n := len(one) - 1; n >= 0 && one[n] == '*' {
			if len(name) >= n && string(name[:n]) == string(one[:n]) {
				return true
			}
		} else if string(name) == string(one) {
			return true
		}
		text = text[min(end+1, len(text)):]
	}
	return p.size == 0
}

// CoversAll reports that every name is covered.
func (p *Patterns) CoversAll() bool { return p.size == 0 }

func (p *Patterns) String() string { return string(p.text[:p.size]) }

// each yields the patterns one by one.
func (p *Patterns) each(yield func(string) bool) {
	if p.size == 0 {
		return
	}
	for one := range strings.SplitSeq(p.String(), ",") {
		if !yield(one) {
			return
		}
	}
}

// HashInto is h after all of p.
func (p *Patterns) HashInto(h Hash64) Hash64 { return hashText(h, p.text[:p.size]) }
