// Package usagefile reads and writes files about usage: exported slices, price lists, invoices and bundles. It reads
// each value in the one text that it writes, so a file with another text for the same value is rejected.
//
//	a line of an export ─► Slice ─► accounting.Slice ─► accounting.Verifier
//	a bundle ─► running digest, prices, slices, invoice ─► Verify ─► the same invoice again, or the first difference
package usagefile

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"macronode/core/accounting"
	"macronode/core/types"
)

// A Problem says which line and field of a file is wrong.
type Problem struct {
	OK        bool   `json:"ok"` // false
	Line      int    `json:"line,omitzero"`
	Tenant    string `json:"tenant,omitzero"`
	Dimension string `json:"dimension,omitzero"`
	Seq       uint64 `json:"seq,omitzero"`
	Field     string `json:"field,omitzero"`
	Detail    string `json:"detail"`
}

func (b *Problem) Error() string {
	var t strings.Builder
	if b.Line > 0 {
		fmt.Fprintf(&t, "line %d: ", b.Line)
	}
	if b.Dimension != "" {
		fmt.Fprintf(&t, "%s of tenant %s: ", b.Dimension, b.Tenant)
	}
	if b.Seq > 0 {
		fmt.Fprintf(&t, "slice %d: ", b.Seq)
	}
	if b.Field != "" {
		fmt.Fprintf(&t, "%s: ", b.Field)
	}
	return t.String() + b.Detail
}

const defaultTenant = "default"

// TenantName returns the name of a tenant: default, or a number.
func TenantName(t types.Tenant) string {
	if t == types.DefaultTenant {
		return defaultTenant
	}
	return strconv.FormatUint(uint64(t), 10)
}

// ParseTenant reads the name of a tenant.
func ParseTenant(text string) (t types.Tenant, ok bool) {
	if text == defaultTenant {
		return types.DefaultTenant, true
	}
	n, ok := readNumber(text, 32)
	return types.Tenant(n), ok && types.Tenant(n) != types.DefaultTenant
}

// readNumber reads a number without leading zeros.
func readNumber(text string, bits int) (uint64, bool) {
	n, err := strconv.ParseUint(text, 10, bits)
	return n, err == nil && strconv.FormatUint(n, 10) == text
}

// timeLayout is RFC 3339 with milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// FormatTime returns a time in UTC with milliseconds.
func FormatTime(at types.Time) string { return time.UnixMilli(int64(at)).UTC().Format(timeLayout) }

// parseTime reads a time as FormatTime writes it.
func parseTime(text string) (types.Time, bool) {
	at, err := time.Parse(timeLayout, text)
	return types.Time(at.UnixMilli()), err == nil && at.UTC().Format(timeLayout) == text
}

// readTimes reads times. Its error is a *accounting.FieldError.
func readTimes(all ...timeField) (err error) {
	for _, at := range all {
		var ok bool
		if *at.to, ok = parseTime(at.text); !ok {
			return &accounting.FieldError{Field: at.field, Why: "must be a time such as 2026-01-31T12:00:00.000Z"}
		}
	}
	return nil
}

type timeField struct {
	field, text string
	to          *types.Time
}

// ParseDigest reads a digest.
func ParseDigest(text string) (d accounting.Digest, ok bool) {
	n, err := hex.Decode(d[:], bytes.ToLower([]byte(text))[:min(len(text), 2*len(d))])
	return d, err == nil && n == len(d) && d.String() == text
}
