// Package language checks the English of the documentation and of Go packages: banned words and long
// sentences.
//
// The house rules: the subject of a sentence is the component, the request or the caller; the
// condition comes first, then the effect; a sentence has one idea.
package language

import (
	"fmt"
	"regexp"
	"strings"
)

// MaxWords is the limit of words in a sentence.
const MaxWords = 32

// banned are words that make a component a person, or hide the subject.
var banned = regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|whoever|whom|whose|who|ails?|ailing|dear|forgives?|believes?|believed|knows of|told|lets? go|comes? into being|lame duck|turned away|as it is wished|likewise|everybody|whomever|strangers?|twins?|stories|house|purse|dumb|befalls?|vouch\w*|moods?|he|his|him|himself)\b`)

// allowed are phrases in which a banned word is the usual term.
var allowed = regexp.MustCompile(`(?i)\b(who calls|who can use|who may use)\b`)

var (
	fence = regexp.MustCompile("(?s)```.*?```|(?m:^    .*$)")
	code  = regexp.MustCompile("`[^`]*`")
	link  = regexp.MustCompile(`\]\([^)]*\)`)
	ends  = regexp.MustCompile(`[.?!:;](\s|$)|\n\s*\n|\n[#*|-]|\n\d+\. |\|`)
	word  = regexp.MustCompile(`[\pL\pN][\pL\pN'’_./-]*`)
)

// Check returns what is wrong with a Markdown text, one finding each.
func Check(text string) (found []string) {
	text = fence.ReplaceAllString(text, "\n\n")
	text = code.ReplaceAllString(link.ReplaceAllString(text, "]"), "x")
	for _, sentence := range ends.Split("\n"+text, -1) {
		if n := len(word.FindAllString(sentence, -1)); n > MaxWords {
			found = append(found, fmt.Sprintf("a sentence of %d words, at most %d: %q", n, MaxWords, strings.Join(strings.Fields(sentence), " ")))
		}
		for _, w := range banned.FindAllString(allowed.ReplaceAllString(sentence, "x"), -1) {
			found = append(found, fmt.Sprintf("the word %q in %q", w, strings.Join(strings.Fields(sentence), " ")))
		}
	}
	return found
}
