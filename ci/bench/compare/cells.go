package main

import (
	"fmt"

	"macronode/ci/bench/sample"
	"macronode/ci/bench/sheet"
)

// spread1 formats a median with its least and most.
func spread1(s sample.Spread, unit string) string {
	return fmt.Sprintf("%s%s (%s–%s)", sheet.Number(s.Median), unit, sheet.Number(s.Least), sheet.Number(s.Most))
}

func cell(s sample.Series, f sample.Figure) string { return spread1(s.Spread(f), "") }

func times(s sample.Spread) string { return spread1(s, "×") }

func percent(s sample.Series) string {
	return fmt.Sprintf("%.0f %%", 100*s.Spread(sample.OtherLoad).Median)
}
