package clock

import (
	_ "math/rand/v2" // want `pure layer core/clock may not import math/rand/v2`
	. "time"
)

func Sins() {
	_ = Now()          // want `no clock here: use the argument now instead of time.Now`
	Sleep(Second)      // want `no clock here: use the argument now instead of time.Sleep`
	var t Time         // want `no clock here: use the argument now instead of time.Time`
	_ = t.Unix()       // want `no clock here: use the argument now instead of \(time.Time\).Unix`
	_ = UnixMilli(0)   // want `no clock here: use the argument now instead of time.UnixMilli`
	_ = Local.String() // want `no clock here: use the argument now instead of time.Local` `no clock here: .*Location.*String`
	_ = Duration(5).Round(Second)
}
