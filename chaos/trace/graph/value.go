package graph

import (
	"fmt"
	"slices"
	"strings"
)

// The canonical text of a value does not depend on TLC's formatting:
func set(all ...string) string {
	slices.Sort(all)
	return "{" + strings.Join(all, ",") + "}"
}

func seq(all ...string) string { return "<" + strings.Join(all, ",") + ">" }

// fields are k, v, k, v …
func fields(kv ...string) string {
	pairs, size := make([][2]string, 0, 16), 2
	for i := 0; i < len(kv); i += 2 {
		pairs = append(pairs, [2]string{kv[i], kv[i+1]})
		size += len(kv[i]) + len(kv[i+1]) + 2
	}
	slices.SortFunc(pairs, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	var text strings.Builder
	text.Grow(size)
	text.WriteByte('[')
	for i, p := range pairs {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(p[0])
		text.WriteByte(':')
		text.WriteString(p[1])
	}
	text.WriteByte(']')
	return text.String()
}

// reader parses the output of TLC.
type reader struct {
	s string
	i int
}

func (r *reader) space() {
	for r.i < len(r.s) && (r.s[r.i] == ' ' || r.s[r.i] == '\n') {
		r.i++
	}
}

func (r *reader) eat(token string) bool {
	r.space()
	if !strings.HasPrefix(r.s[r.i:], token) {
		return false
	}
	r.i += len(token)
	return true
}

func (r *reader) must(token string) error {
	if r.eat(token) {
		return nil
	}
	return fmt.Errorf("want %q at %.40q", token, r.s[r.i:])
}

// word reads a name, a number or a string without quotes.
func (r *reader) word() string {
	if r.eat(`"`) {
		text, _, _ := strings.Cut(r.s[r.i:], `"`)
		r.i += len(text) + 1
		return text
	}
	from := r.i
	for r.i < len(r.s) && !strings.ContainsRune(" \n,{}<>[]():|", rune(r.s[r.i])) {
		r.i++
	}
	return r.s[from:r.i]
}

// list reads values up to a closing token.
func (r *reader) list(end string) (all []string, err error) {
	for !r.eat(end) {
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		if all = append(all, v); !r.eat(",") {
			return all, r.must(end)
		}
	}
	return all, nil
}

// pairs reads keys and values up to a closing token.
func (r *reader) pairs(to, between, end string) (kv []string, err error) {
	for {
		k, err := r.value()
		if err != nil {
			return nil, err
		}
		if err := r.must(to); err != nil {
			return nil, err
		}
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		if kv = append(kv, k, v); !r.eat(between) {
			return kv, r.must(end)
		}
	}
}

func (r *reader) value() (string, error) {
	switch {
	case r.eat("<<"):
		all, err := r.list(">>")
		return seq(all...), err
	case r.eat("{"):
		all, err := r.list("}")
		return set(all...), err
	case r.eat("["):
		kv, err := r.pairs("|->", ",", "]")
		return fields(kv...), err
	case r.eat("("):
		kv, err := r.pairs(":>", "@@", ")")
		return fields(kv...), err
	default:
		return r.word(), nil
	}
}

// canonical returns the canonical text of a state as printed by TLC: a line /\ variable = value
// each.
func canonical(label string) (string, error) {
	r, kv := reader{s: label}, []string(nil)
	for r.eat(`/\`) {
		name := r.word()
		if err := r.must("="); err != nil {
			return "", err
		}
		v, err := r.value()
		if err != nil {
			return "", err
		}
		kv = append(kv, name, v)
	}
	if r.space(); r.i < len(r.s) {
		return "", fmt.Errorf("not a state: %.40q", r.s[r.i:])
	}
	return fields(kv...), nil
}
