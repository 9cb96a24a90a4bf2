package config

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"time"

	"macronode/core/types"
)

var errText = errors.New("not such a text")

// Bytes is a size; its text is an integer and one of B, KiB, MiB, GiB.
type Bytes int64

func (b Bytes) String() string {
	for _, u := range units {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

type unit struct {
	name string
	size Bytes
}

var units = [...]unit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

func parseBytes(text string) (Bytes, error) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || n > math.MaxInt64/uint64(u.size) {
			return 0, errText
		}
		return Bytes(n) * u.size, nil
	}
	return 0, errText
}

// Rate is a number of Units in Every, a power of ten seconds; its text is the rate per second.
// The zero Rate is none.
type Rate struct {
	Units uint64
	Every time.Duration
}

const decimals = 6 // of the text of a Rate

func (r Rate) String() string {
	text, places := strconv.FormatUint(r.Units, 10), 0
	for d := r.Every; d > time.Second; d /= 10 {
		places++
	}
	if places == 0 {
		return text
	}
	text = strings.Repeat("0", max(0, places+1-len(text))) + text
	return text[:len(text)-places] + "." + text[len(text)-places:]
}

func (r Rate) less(than Rate) bool { return r.micro() < than.micro() }

// micro returns the rate in millionths of a unit per second, below 2^64 for every rate that
// parses.
func (r Rate) micro() uint64 {
	if r.Every == 0 {
		return 0
	}
	return r.Units * (uint64(1e6*time.Second) / uint64(r.Every))
}

func parseRate(text string) (Rate, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	fraction = strings.TrimRight(fraction, "0")
	units, err := strconv.ParseUint(whole+fraction, 10, 64)
	if err != nil || len(fraction) > decimals || len(whole) == 0 || len(whole) > 12 {
		return Rate{}, errText
	}
	every := time.Second
	for range fraction {
		every *= 10
	}
	return Rate{units, every}, nil
}

// Burst is a number of requests or, if Sized, of bytes. The zero Burst is none.
type Burst struct {
	Units uint64
	Sized bool
}

func (b Burst) String() string {
	if b.Sized {
		return Bytes(b.Units).String()
	}
	return strconv.FormatUint(b.Units, 10)
}

func parseBurst(text string) (Burst, error) {
	if size, err := parseBytes(text); err == nil {
		return Burst{uint64(size), true}, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return Burst{}, errText
	}
	return Burst{n, false}, nil
}

// parseNetwork parses a network and masks its address.
func parseNetwork(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil || p != p.Masked() || p.Addr().Is4In6() {
		return netip.Prefix{}, errText
	}
	return p, nil
}

// parseName parses one of a fixed set of names.
func parseName[T interface {
	~uint8
	String() string
}](to *T, text string, all T) error {
	for one := range all {
		if one.String() == text {
			*to = one
			return nil
		}
	}
	return errText
}

// parse sets v to the value of text.
func parse(v reflect.Value, text string) error {
	switch p := v.Addr().Interface().(type) {
	case *string:
		*p = text
	case *bool:
		if text != "true" && text != "false" {
			return errText
		}
		*p = text == "true"
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return errText
		}
		*p = n
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return errText
		}
		*p = d
	case *Bytes:
		b, err := parseBytes(text)
		if err != nil {
			return err
		}
		*p = b
	case *types.Amount:
		a, err := types.ParseAmount(text)
		if err != nil {
			return errText
		}
		*p = a
	case *Rate:
		r, err := parseRate(text)
		if err != nil {
			return err
		}
		*p = r
	case *Burst:
		b, err := parseBurst(text)
		if err != nil {
			return err
		}
		*p = b
	case *netip.Prefix:
		n, err := parseNetwork(text)
		if err != nil {
			return err
		}
		*p = n
	case *types.QuotaScope:
		return parseName(p, text, types.NumQuotaScopes)
	case *types.Class:
		return parseName(p, text, types.NumClasses)
	default:
		panic(fmt.Sprintf("config: a key of type %T", p))
	}
	return nil
}

// format returns the text that parse reads back.
func format(v reflect.Value) string {
	if d, ok := v.Interface().(time.Duration); ok {
		return duration(d)
	}
	return fmt.Sprint(v.Interface())
}

// duration returns Go's text without zero minutes and seconds: 24h, not 24h0m0s.
func duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// less compares two values of one ordered type.
func less(a, b reflect.Value) bool {
	switch x := a.Interface().(type) {
	case types.Amount:
		return x.Less(b.Interface().(types.Amount))
	case Rate:
		return x.less(b.Interface().(Rate))
	case Burst:
		return x.Units < b.Interface().(Burst).Units
	}
	return a.Int() < b.Int()
}
