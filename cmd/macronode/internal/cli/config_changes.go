package cli

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

// printChanges prints the differences: a line for each key, or for each changed key of a list entry.
func (c nodeReport) printChanges(all []adminapi.Changed) error {
	if len(all) == 0 {
		return c.printLine("nothing differs")
	}
	for _, d := range all {
		when := "at its next start"
		if d.Hot {
			when = "while it runs"
		}
		for _, line := range describeChange(d.Key, d.Old, d.New) {
			if err := c.printLine("%s, %s", line, when); err != nil {
				return err
			}
		}
	}
	return nil
}

// describeChange describes a change of a key, entry by entry if its value is a list. It returns at least one line.
func describeChange(key, was, is string) (lines []string) {
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
	for _, p := range pairEntries(before, after) {
		switch {
		case p.is == nil:
			lines = append(lines, fmt.Sprintf("%s%s: removed, it was %s", key, p.was.path(), p.was.text))
		case p.was == nil:
			lines = append(lines, fmt.Sprintf("%s%s: added, it is %s", key, p.is.path(), p.is.text))
		default:
			lines = append(lines, describeEntryChange(key+p.is.path(), p.was.text, p.is.text)...)
		}
	}
	if len(lines) == 0 {
		lines = []string{key + ": the same entries in another order"}
	}
	return lines
}

// describeEntryChange describes which keys of an entry have another value.
func describeEntryChange(at, was, is string) (lines []string) {
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
			lines = append(lines, describeEntryChange(at+"."+name, string(old), string(new))...)
		}
	}
	return lines
}

// section returns the keys of an entry, or of a part of one; nil: it is not a mapping.
func section(text string) (keys map[string]jsontext.Value) {
	if json.Unmarshal([]byte(text), &keys) != nil {
		return nil
	}
	return keys
}

// An entry is an entry of a list in a configuration.
type entry struct {
	name  string // empty: it has none
	place int    // in the list; -1: the list is a mapping
	text  string
}

func (e *entry) path() string {
	switch {
	case e.place < 0:
		return "." + e.name
	case e.name != "":
		return "[" + e.name + "]"
	}
	return "[" + strconv.Itoa(e.place) + "]"
}

// members returns the entries of a mapping by name; nil: it is not a mapping.
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

// items returns the entries of a sequence; nil: it is not a sequence. An entry that is not a mapping has its value
// as name. A name that occurs twice is dropped.
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

// A pair is an entry before and after; nil: it was added or removed.
type pair struct{ was, is *entry }

// pairEntries returns the entries that differ, in the new order, with removed ones first. Entries with the same
// name belong together. Of unnamed entries, equal ones stay, and those between two equal ones are paired by
// position if their number is the same.
func pairEntries(was, is []entry) (all []pair) {
	var old, new []*entry // without a counterpart of the same name
	for i := range was {
		if e := &was[i]; e.name == "" || entryNamed(is, e.name) == nil {
			old = append(old, e)
		}
	}
	for i := range is {
		e := &is[i]
		if e.name == "" || entryNamed(was, e.name) == nil {
			new = append(new, e)
		} else if before := entryNamed(was, e.name); before.text != e.text {
			all = append(all, pair{before, e})
		}
	}
	kept := commonSubsequence(old, new)
	kept = append(kept, [2]int{len(old), len(new)})
	from := [2]int{}
	for _, upto := range kept {
		gone, come := old[from[0]:upto[0]], new[from[1]:upto[1]]
		if len(gone) == len(come) && allUnnamed(gone) && allUnnamed(come) {
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

func entryNamed(in []entry, name string) *entry {
	if i := slices.IndexFunc(in, func(e entry) bool { return e.name == name }); i >= 0 {
		return &in[i]
	}
	return nil
}

func allUnnamed(all []*entry) bool {
	return !slices.ContainsFunc(all, func(e *entry) bool { return e.name != "" })
}

// commonSubsequence returns the longest common subsequence of two lists, as positions in both.
func commonSubsequence(a, b []*entry) (places [][2]int) {
	long := make([][]int, len(a)+1) // length of the longest common subsequence of the rests
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
