package invoice

import (
	"fmt"

	"macronode/core/accounting"
	"macronode/core/types"
)

// A ChargePeriod selects slices of a calendar month (UTC) that are charged together: those whose windows begin before an
// end. Whatever the end is, the charges are those of an invoice of all sealed slices of the month. So a charge follows
// from the month, its slices up to this one, and the prices, and is the same for each period.
type ChargePeriod struct {
	Month accounting.Window
	To    types.Time // in the month, or its end
}

// A PeriodError reports a period whose charges would depend on the period. Month is the one in which the period begins.
type PeriodError struct{ Month accounting.Window }

func (e *PeriodError) Error() string {
	return fmt.Sprintf("invoice: the period of charges must begin at %d and end at a later time up to %d", e.Month.From, e.Month.To)
}

// NewChargePeriod returns the period of charges for the windows that begin in p, which is after 1970. Its error is a *PeriodError.
//
// Tiers, flat prices and rounding count from the first slice of a period. If periods of charges could overlap, the
// price of a slice would differ between them, and a flat price would be due in each.
func NewChargePeriod(p accounting.Window) (ChargePeriod, error) {
	month := accounting.MonthOf(p.From)
	if p.From != month.From || p.To <= p.From || p.To > month.To {
		return ChargePeriod{}, &PeriodError{month}
	}
	return ChargePeriod{month, p.To}, nil
}

// Has reports whether a charge of the month is one of p.
func (p ChargePeriod) Has(c *Charge) bool { return c.Window.From < p.To }
