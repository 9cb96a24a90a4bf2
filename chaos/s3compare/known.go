package s3compare

import (
	"fmt"
	"slices"
	"strings"

	"macronode/adapters/s3"
)

// Unexplained returns the differences that no line of known has, and the lines that no difference has.
func Unexplained(differences []Difference, known []s3.Difference) (findings []string) {
	used := make([]bool, len(known))
	for _, d := range differences {
		i := slices.IndexFunc(known, func(k s3.Difference) bool { return explains(&k, &d) })
		if i < 0 {
			findings = append(findings, fmt.Sprintf("%s: %s is %s here and %s there, which is not listed", d.Request, d.Part, d.Here, d.There))
			continue
		}
		used[i] = true
	}
	for i, k := range known {
		if !used[i] {
			findings = append(findings, fmt.Sprintf("%s: %s: the listed difference was not seen", k.Request, k.Part))
		}
	}
	return findings
}

func explains(k *s3.Difference, d *Difference) bool {
	return matches(k.Request, d.Request) && matches(k.Part, d.Part) && matches(k.Here, d.Here) && matches(k.There, d.There)
}

// matches reports whether a text is the pattern; with * at the end, whether it begins so.
func matches(pattern, text string) bool {
	prefix, open := strings.CutSuffix(pattern, "*")
	return text == pattern || open && strings.HasPrefix(text, prefix)
}
