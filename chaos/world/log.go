package world

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Choice is one choice: its site, its range, and its result.
type Choice struct {
	Site   string // without white space; a stable name of a place in the code
	N, Got int    // 0 ≤ Got < N
}

func (c Choice) String() string { return fmt.Sprintf("%d of %d at %s", c.Got, c.N, c.Site) }

// A Log is a run: all choices in order. It outlives its seed, whose choices change with every
// change of the code.
//
// As text it has a first line with the format, then one line per choice: site, n, result unless
// it is 0, and xK for K equal choices in a row. A line that begins with # is a comment.
// people.
//
//	choices 1
//	move 24 7
//	disk/sector 2 1 x3
type Log []Choice

const (
	logHead     = "choices 1"
	longestLog  = 1 << 20 // choices: a run of a thousand moves has ten thousand
	mostAnswers = 1 << 31
)

// ErrLog reports a text that is not a log.
var ErrLog = errors.New("world: not a log")

// MarshalText returns the text of l.
func (l Log) MarshalText() ([]byte, error) {
	text := append([]byte(logHead), '\n')
	for at := 0; at < len(l); {
		c, alike := l[at], 1
		for at+alike < len(l) && l[at+alike] == c {
			alike++
		}
		if err := c.check(); err != nil {
			return nil, err
		}
		text = fmt.Appendf(text, "%s %d", c.Site, c.N)
		if c.Got > 0 {
			text = fmt.Appendf(text, " %d", c.Got)
		}
		if alike > 1 {
			text = fmt.Appendf(text, " x%d", alike)
		}
		text = append(text, '\n')
		at += alike
	}
	return text, nil
}

func (c Choice) check() error {
	if c.Site == "" || c.Site[0] == '#' || strings.ContainsFunc(c.Site, func(r rune) bool { return r <= ' ' || r > '~' }) ||
		c.N < 1 || c.N > mostAnswers || c.Got < 0 || c.Got >= c.N {
		return fmt.Errorf("%w: %q, %d of %d", ErrLog, c.Site, c.Got, c.N)
	}
	return nil
}

// UnmarshalText parses the result of MarshalText. The error is ErrLog with the line.
func (l *Log) UnmarshalText(text []byte) error {
	*l = nil
	begun := false
	for n, line := range bytes.Split(text, []byte("\n")) {
		switch {
		case len(line) == 0, line[0] == '#':
		case !begun:
			if begun = string(line) == logHead; !begun {
				return fmt.Errorf("%w: line %d: must be %q first", ErrLog, n+1, logHead)
			}
		default:
			c, alike, err := parse(strings.Split(string(line), " "))
			if err != nil || len(*l)+alike > longestLog {
				return fmt.Errorf("%w: line %d: %q", ErrLog, n+1, line)
			}
			*l = append(*l, slices.Repeat(Log{c}, alike)...)
		}
	}
	if !begun {
		return fmt.Errorf("%w: empty", ErrLog)
	}
	return nil
}

// parse parses a line: site, n, optional result, optional xK.
func parse(word []string) (c Choice, alike int, err error) {
	c.Site, alike = word[0], 1
	word = word[1:]
	if last := len(word) - 1; last > 0 && strings.HasPrefix(word[last], "x") {
		if alike, err = strconv.Atoi(word[last][1:]); err != nil || alike < 2 || alike > longestLog {
			return c, 0, ErrLog
		}
		word = word[:last]
	}
	for i, to := range []*int{&c.N, &c.Got} {
		if i < len(word) {
			if *to, err = strconv.Atoi(word[i]); err != nil {
				return c, 0, err
			}
		}
	}
	if len(word) < 1 || len(word) > 2 {
		return c, 0, ErrLog
	}
	return c, alike, c.check()
}

// Surprises returns the number of choices other than 0.
func (l Log) Surprises() (n int) {
	for _, c := range l {
		if c.Got > 0 {
			n++
		}
	}
	return n
}

// trim removes zeros at the end, which a replay gives anyway.
func (l Log) trim() Log {
	for len(l) > 0 && l[len(l)-1].Got == 0 {
		l = l[:len(l)-1]
	}
	return l
}
