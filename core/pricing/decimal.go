package pricing

import (
	"errors"
	"strconv"
	"strings"
)

// Micros is a number of millionths of a minor unit. Its text is a decimal number of minor units, such as 0.25.
type Micros uint64

const (
	microsPerUnit = 1_000_000
	decimals      = 6  // of the text of Micros, at most
	wholeDigits   = 12 // before the point, at most
)

// MaxMicros is the largest price.
const MaxMicros Micros = 1e12*microsPerUnit - 1

// ErrDecimal reports a text that is no price.
var ErrDecimal = errors.New(`must be minor units as a decimal number such as "0.25": at most 12 digits, and 6 after the point`)

// ParseMicros reads a decimal number. Each number has one text: without leading zeros, and without zeros at the end of
// the fraction.
func ParseMicros(text string) (Micros, error) {
	whole, fraction, point := strings.Cut(text, ".")
	if len(whole) > wholeDigits || len(fraction) > decimals || point && fraction == "" {
		return 0, ErrDecimal
	}
	n, err := strconv.ParseUint(whole+fraction+strings.Repeat("0", decimals-len(fraction)), 10, 64)
	if err != nil || Micros(n).String() != text {
		return 0, ErrDecimal
	}
	return Micros(n), nil
}

func (m Micros) String() string {
	whole, fraction := strconv.FormatUint(uint64(m/microsPerUnit), 10), uint64(m%microsPerUnit)
	if fraction == 0 {
		return whole
	}
	digits := strconv.FormatUint(microsPerUnit+fraction, 10)[1:]
	return whole + "." + strings.TrimRight(digits, "0")
}
