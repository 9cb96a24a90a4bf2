package receipt

import "time"

func Stamp(to []byte, ms int64) []byte {
	_ = time.UnixMilli(ms).Local() // want `no clock here: use the argument now instead of \(time.Time\).Local`
	return time.UnixMilli(ms).UTC().AppendFormat(to, time.RFC3339)
}
