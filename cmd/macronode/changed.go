package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"macronode/adapters/adminapi"
)

// sayChanged says what differs: a line for each key, and of a list for each key of an entry.
func (c *console) sayChanged(all []adminapi.Changed) error {
	if len(all) == 0 {
		return c.say("nothing differs")
	}
	for _, d := range all {
		when := "at its next start"
		if d.Hot {
			when = "while it runs"
		}
		for _, line := range differs(d.Key, d.Old, d.New) {
			if err := c.say("%s, %s", line, when); err != nil {
				return err
			}
		}
	}
	return nil
}

// differs says how the text of a key's value became another, entry by entry where it is a list.
// It is never silent.
func differs(key, was, is string) (lines []string) {
	var before, after []entry
	switch old, new := jsontext.Value(was).Kind(), jsontext.Value(is).Kind(); {
	case old == '{' && new == '{':
		before, after = members(was), members(is)
	case old == '[' && new == '[':
		before, after = items(was), items(is)
	}
	if before == nil || after == nil {
		return []string{fmt.Sprintf("%s: %s -> %s", key, was, is)}
	}
	for _, p := range paired(before, after) {
		switch {
		case p.is == nil:
			lines = append(lines, fmt.Sprintf("%s%s: removed, it was %s", key, p.was.called(), p.was.text))
		case p.was == nil:
			lines = append(lines, fmt.Sprintf("%s%s: added, it is %s", key, p.is.called(), p.is.text))
		default:
			lines = append(lines, inside(key+p.is.called(), p.was.text, p.is.text)...)
		}
	}
	if len(lines) == 0 {
		lines = []string{key + ": the same entries in another order"}
	}
	return lines
}

// inside says which keys of an entry have another value.
func inside(at, was, is string) (lines []string) {
	if was == is {
		return nil
	}
	before, after := section(was), section(is)
	if before == nil || after == nil {
		return []string{fmt.Sprintf("%s: %s -> %s", at, was, is)}
	}
	names := slices.Compact(slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after))))))
	for _, name := range names {
		old, had := before[name]
		new, has := after[name]
		switch {
		case !had:
			lines = append(lines, fmt.Sprintf("%s.%s: nothing -> %s", at, name, new))
		case !has:
			lines = append(lines, fmt.Sprintf("%s.%s: %s -> nothing", at, name, old))
		default:
			lines = append(lines, inside(at+"."+name, string(old), string(new))...)
		}
	}
	return lines
}

// section is the keys of an entry, or of a part of one; nil: it has none.
func section(text string) (keys map[string]jsontext.Value) {
	if json.Unmarshal([]byte(text), &keys) != nil {
		return nil
	}
	return keys
}

// An entry is one of a list, in a configuration.
type entry struct {
	name  string // empty: it has none
	place int    // in the list; -1: its list is a mapping of names
	text  string
}

func (e *entry) called() string {
	switch {
	case e.place < 0:
		return "." + e.name
	case e.name != "":
		return "[" + e.name + "]"
	}
	return "[" + strconv.Itoa(e.place) + "]"
}

// members are the entries of a mapping, by their names; nil: it is none.
func members(text string) []entry {
	all := []entry{}
	keys := section(text)
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		all = append(all, entry{name, -1, string(keys[name])})
	}
	if keys == nil {
		return nil
	}
	return all
}

// items are the entries of a sequence; nil: it is none. What is no section is called what it is,
// and names that stand twice are none.
func items(text string) []entry {
	all, values := []entry{}, []jsontext.Value(nil)
	if json.Unmarshal([]byte(text), &values) != nil {
		return nil
	}
	often := map[string]int{}
	for i, v := range values {
		e := entry{place: i, text: string(v)}
		if keys := section(e.text); keys == nil {
			e.name = strings.Trim(e.text, `"`)
		} else if name := keys["name"]; len(name) > 2 {
			e.name = strings.Trim(string(name), `"`)
		}
		often[e.name]++
		all = append(all, e)
	}
	for i := range all {
		if often[all[i].name] > 1 {
			all[i].name = ""
		}
	}
	return all
}

// A pair is an entry as it was and as it is; nil: it was not, or is not.
type pair struct{ was, is *entry }

// paired are the entries that are not the same, in the order of what is, and who is gone first.
// Those of a name are one by it; of the others, what is the same stays where it is, and what
// lies between two such is one by its place, where there are as many as there were.
func paired(was, is []entry) (all []pair) {
	var old, new []*entry // that have no name in both
	for i := range was {
		if e := &was[i]; e.name == "" || called(is, e.name) == nil {
			old = append(old, e)
		}
	}
	for i := range is {
		e := &is[i]
		if e.name == "" || called(was, e.name) == nil {
			new = append(new, e)
		} else if before := called(was, e.name); before.text != e.text {
			all = append(all, pair{before, e})
		}
	}
	kept := common(old, new)
	kept = append(kept, [2]int{len(old), len(new)})
	from := [2]int{}
	for _, upto := range kept {
		gone, come := old[from[0]:upto[0]], new[from[1]:upto[1]]
		if len(gone) == len(come) && nameless(gone) && nameless(come) {
			for i := range gone {
				all = append(all, pair{gone[i], come[i]})
			}
		} else {
			for _, e := range gone {
				all = append(all, pair{was: e})
			}
			for _, e := range come {
				all = append(all, pair{is: e})
			}
		}
		from = [2]int{upto[0] + 1, upto[1] + 1}
	}
	return all
}

func called(in []entry, name string) *entry {
	if i := slices.IndexFunc(in, func(e entry) bool { return e.name == name }); i >= 0 {
		return &in[i]
	}
	return nil
}

func nameless(all []*entry) bool {
	return !slices.ContainsFunc(all, func(e *entry) bool { return e.name != "" })
}

// common is where two lists have the longest list in common that goes through both: places in
// one and the other, that ascend in both.
func common(a, b []*entry) (places [][2]int) {
	long := make([][]int, len(a)+1) // of what is behind
	for i := range long {
		long[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			long[i][j] = max(long[i+1][j], long[i][j+1])
			if a[i].text == b[j].text {
				long[i][j] = long[i+1][j+1] + 1
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i].text == b[j].text:
			places = append(places, [2]int{i, j})
			i, j = i+1, j+1
		case long[i+1][j] >= long[i][j+1]:
			i++
		default:
			j++
		}
	}
	return places
}
