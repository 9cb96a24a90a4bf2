package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"macronode/core/words"
)

var errText = errors.New("not such a text")

// Bytes is a size; its text is a whole number and one of B, KiB, MiB, GiB.
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

// parse gives v the value that text says.
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
	case *words.Amount:
		a, err := words.ParseAmount(text)
		if err != nil {
			return errText
		}
		*p = a
	default:
		panic(fmt.Sprintf("config: a key of type %T", p))
	}
	return nil
}

// format is the text that parse reads back.
func format(v reflect.Value) string {
	if d, ok := v.Interface().(time.Duration); ok {
		return duration(d)
	}
	return fmt.Sprint(v.Interface())
}

// duration is Go's text without its empty minutes and seconds: 24h, not 24h0m0s.
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
	if x, ok := a.Interface().(words.Amount); ok {
		return x.Less(b.Interface().(words.Amount))
	}
	return a.Int() < b.Int()
}
