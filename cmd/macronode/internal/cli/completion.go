package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"macronode/cmd/macronode/internal/exit"
)

// A shell asks the program for completions: one candidate a line, with its help after a tab. If there is none, the
// shell offers files.
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

// Run prints the completion script of a shell.
func (v *completionCmd) Run(c *Console) error {
	return c.printRaw(map[string]string{"bash": bashLines, "zsh": zshLines, "fish": fishLines}[v.Shell])
}

// Run prints the completions of a command line.
func (v *completeCmd) Run(c *Console) error {
	parser, err := newParser(new(tree), c.out, c.err)
	if err != nil {
		return err
	}
	for _, one := range completions(parser.Model.Node, v.Line) {
		text := one.text
		switch v.Shell {
		case "bash": // bash splits words at an equals sign
			if _, value, ok := strings.Cut(text, "="); ok && value != "" {
				text = value
			}
		default: // for other shells a flag and its value are two words, unless the value has begun
			text = strings.TrimSuffix(text, "=") + "\t" + one.help
		}
		if err := c.printLine("%s", text); err != nil {
			return err
		}
	}
	return nil
}

// A candidate is a completion and its help.
type candidate struct{ text, help string }

// completions returns the completions of the last word of a line: commands, flags, or values of a flag with an
// enum.
func completions(at *kong.Node, line string) (all []candidate) {
	words := strings.Fields(line)
	if line == "" || strings.HasSuffix(line, " ") {
		words = append(words, "")
	}
	if len(words) < 2 {
		return nil
	}
	last, taken := words[len(words)-1], 0
	var waits *kong.Flag // the flag whose value is next
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

// values returns the allowed values of a flag or an argument.
func values(of *kong.Value, before string) (all []candidate) {
	for _, one := range of.EnumSlice() {
		if one != "" {
			all = append(all, candidate{before + one, of.Help})
		}
	}
	return all
}

// Run shows the help of a verb.
func (v *helpCmd) Run(c *Console) error {
	parser, err := newParser(new(tree), c.out, c.err)
	if err != nil {
		return err
	}
	at := parser.Model.Node
	for _, word := range v.Verb {
		if at = childOf(at, word); at == nil {
			return exit.Unable(fmt.Errorf("unknown command %s; see macronode --help", strings.Join(v.Verb, " ")))
		}
	}
	trace, err := kong.Trace(parser, v.Verb)
	if err != nil {
		return err
	}
	return trace.PrintUsage(false)
}
