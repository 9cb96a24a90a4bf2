package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// A shell asks the program itself how a line goes on: one candidate a line, with what
// it means behind a tab. Where there is none, it offers files.
const (
	bashLines = `_macronode() {
	local IFS=$'\n' line=${COMP_LINE:0:COMP_POINT}
	COMPREPLY=($("${COMP_WORDS[0]}" complete bash -- "$line" 2>/dev/null))
	if [ ${#COMPREPLY[@]} = 1 ] && [[ ${COMPREPLY[0]} == *= ]]; then compopt -o nospace; fi
}
complete -o bashdefault -o default -F _macronode macronode
`
	zshLines = `#compdef macronode
_macronode() {
	local -a all
	local one
	for one in ${(f)"$(${words[1]} complete zsh -- "${(j: :)words[1,CURRENT]}" 2>/dev/null)"}; do
		all+=("${${one%%$'\t'*}//:/\\:}:${one#*$'\t'}")
	done
	if (( $#all )); then _describe -V macronode all; else _files; fi
}
compdef _macronode macronode
`
	fishLines = `function __macronode_complete
	set -l line (commandline --cut-at-cursor | string collect)
	set -l all (command macronode complete fish -- "$line" 2>/dev/null)
	if test (count $all) -gt 0
		printf '%s\n' $all
	else
		__fish_complete_path (commandline --current-token)
	end
end
complete --command macronode --no-files --arguments '(__macronode_complete)'
`
)

// Run prints what a shell wants to read.
func (v *completionCmd) Run(c *console) error {
	return c.raw(map[string]string{"bash": bashLines, "zsh": zshLines, "fish": fishLines}[v.Shell])
}

// Run says how a line goes on.
func (v *completeCmd) Run(c *console) error {
	parser, err := newParser(new(tree), c.out, c.err)
	if err != nil {
		return err
	}
	for _, one := range goesOn(parser.Model.Node, v.Line) {
		text := one.text
		switch v.Shell {
		case "bash": // it breaks words at an equals sign itself
			if _, value, ok := strings.Cut(text, "="); ok && value != "" {
				text = value
			}
		default: // a flag and its value are two words to these, unless it is begun as one
			text = strings.TrimSuffix(text, "=") + "\t" + one.means
		}
		if err := c.say("%s", text); err != nil {
			return err
		}
	}
	return nil
}

// A candidate is how a word may go on.
type candidate struct{ text, means string }

// goesOn is how the last word of a line may go on: verbs, flags, or values of a flag
// that has only some.
func goesOn(at *kong.Node, line string) (all []candidate) {
	words := strings.Fields(line)
	if line == "" || strings.HasSuffix(line, " ") {
		words = append(words, "")
	}
	if len(words) < 2 {
		return nil
	}
	last, taken := words[len(words)-1], 0
	var waits *kong.Flag // for its value
	for _, word := range words[1 : len(words)-1] {
		flag := flagOf(at, word)
		switch {
		case waits != nil:
			waits = nil
		case flag != nil && !flag.IsBool() && !strings.Contains(word, "="):
			waits = flag
		case strings.HasPrefix(word, "-"):
		case childOf(at, word) != nil:
			at, taken = childOf(at, word), 0
		default:
			taken++
		}
	}
	switch name, _, value := strings.Cut(last, "="); {
	case waits != nil:
		all = values(waits.Value, "")
	case value:
		if flag := flagOf(at, name); flag != nil {
			all = values(flag.Value, name+"=")
		}
	case strings.HasPrefix(last, "-"):
		all = flagsOf(at)
	default:
		all = verbsOf(at)
		if len(all) == 0 && taken < len(at.Positional) {
			all = values(at.Positional[taken], "")
		}
	}
	return slices.DeleteFunc(all, func(one candidate) bool { return !strings.HasPrefix(one.text, last) })
}

func childOf(at *kong.Node, word string) *kong.Node {
	for _, child := range at.Children {
		if child.Name == word && !child.Hidden {
			return child
		}
	}
	return nil
}

func flagOf(at *kong.Node, word string) *kong.Flag {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	if !strings.HasPrefix(word, "--") {
		return nil
	}
	for _, group := range at.AllFlags(true) {
		for _, f := range group {
			if f.Name == name {
				return f
			}
		}
	}
	return nil
}

func verbsOf(at *kong.Node) (all []candidate) {
	for _, child := range at.Children {
		if !child.Hidden {
			all = append(all, candidate{child.Name, child.Help})
		}
	}
	return all
}

func flagsOf(at *kong.Node) (all []candidate) {
	for _, group := range at.AllFlags(true) {
		for _, f := range group {
			text := "--" + f.Name
			if !f.IsBool() {
				text += "="
			}
			all = append(all, candidate{text, f.Help})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return strings.Compare(a.text, b.text) })
	return all
}

// values are those that a flag or an argument is one of.
func values(of *kong.Value, before string) (all []candidate) {
	for _, one := range of.EnumSlice() {
		if one != "" {
			all = append(all, candidate{before + one, of.Help})
		}
	}
	return all
}

// Run shows the help of a verb.
func (v *helpCmd) Run(c *console) error {
	parser, err := newParser(new(tree), c.out, c.err)
	if err != nil {
		return err
	}
	at := parser.Model.Node
	for _, word := range v.Verb {
		if at = childOf(at, word); at == nil {
			return cannot(fmt.Errorf("unknown command %s; see macronode --help", strings.Join(v.Verb, " ")))
		}
	}
	said, err := kong.Trace(parser, v.Verb)
	if err != nil {
		return err
	}
	return said.PrintUsage(false)
}
