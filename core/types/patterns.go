package types

import (
	"errors"
	"strings"
)

// ErrPatterns reports a text that is not a list of patterns.
var ErrPatterns = errors.New("patterns: must be at most 255 bytes of names, each perhaps ending in *, with commas between")

// Patterns are the names that an API key covers: exact names, and prefixes that end with *. An empty
// list covers every name.
//
//	user:17,user:18:*
//
// It has no pointers, so that a table row can store it.
type Patterns struct {
	size uint8
	text [MaxPatterns]byte
}

// ParsePatterns parses the result of String.
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

// Covers reports whether p covers a name.
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

// CoversAll reports whether p covers every name.
func (p *Patterns) CoversAll() bool { return p.size == 0 }

func (p *Patterns) String() string { return string(p.text[:p.size]) }

// each yields the patterns.
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

// HashInto mixes p into h.
func (p *Patterns) HashInto(h Hash64) Hash64 { return hashText(h, p.text[:p.size]) }
