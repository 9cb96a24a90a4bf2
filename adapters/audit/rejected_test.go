package audit

import (
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"macronode/core/rejection"
	"macronode/core/types"
)

// TestRejectionsOfTenantAreLimited: a tenant has a line for some rejected requests at once and for one more each second, which counts
// those that have none. Changes, and other tenants, are not limited by that.
func TestRejectionsOfTenantAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l := New(dir, Limits{Queue: 50, Size: 1 << 20, Keep: 1, Every: time.Hour, Rejected: rejection.Rate{Burst: 3, Every: time.Second}}, newLogBuffer().Logger)
		note := func(times, tenant, status int) {
			for range times {
				l.Note(Line{Tenant: types.Tenant(256 + tenant), Status: status})
			}
		}
		note(5, 1, 403)
		note(2, 1, 200)
		note(4, 2, 403)
		time.Sleep(time.Second)
		note(3, 1, 404)
		time.Sleep(time.Hour)
		note(4, 1, 400)
		note(1, 2, 400)
		l.flush()
		all, _ := entries(t, filepath.Join(dir, "audit.log"))
		got := ""
		for _, e := range all {
			got += fmt.Sprint(e.Tenant-256, ":", e.Status, "/", e.Omitted, " ")
		}
		if want := "1:403/0 1:403/0 1:403/0 1:200/0 1:200/0 2:403/0 2:403/0 2:403/0 1:404/2 1:400/2 1:400/0 1:400/0 2:400/1 "; got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		if c := l.Counts(); c.Written != 13 || c.Omitted != 6 || c.Lost != 0 {
			t.Errorf("%+v", c)
		}
		if err := l.pen.lay(); err != nil {
			t.Fatal(err)
		}
	})
}
