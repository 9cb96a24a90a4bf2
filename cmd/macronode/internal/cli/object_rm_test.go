package cli

import "testing"

// TestRemovalGoesOn: an object that cannot be deleted does not keep others, each failure is reported, and the command fails. If the node does
// not answer, the rest is not tried.
func TestRemovalGoesOn(t *testing.T) {
	t.Parallel()
	const (
		gone    = `404 {"code":"not_found","detail":"Nothing."}`
		deleted = `200 {"address":"b3:b","bucket":"default","deleted":true}`
		done    = "b3:b is deleted from the bucket default\n"
		lacks   = ": not_found: Nothing\n"
		repeat  = ": repeat the command from this address on; not_found then means that it is deleted\n"
	)
	for _, c := range []struct {
		name    string
		answers []string
		line    string
		code    int
		want    string
		asked   int
	}{
		{"all are deleted", []string{deleted}, "b3:b b3:b", 0, done + done, 2},
		{"one alone", []string{gone}, "b3:a", 1, "macronode: b3:a" + lacks, 1},
		{"the first", []string{gone, deleted}, "b3:a b3:b", 1, done + "macronode: b3:a" + lacks + "macronode: 1 of 2 objects were not deleted\n", 2},
		{"all but one", []string{gone, deleted, gone, barred}, "b3:a b3:b b3:c b3:d", 1,
			done + "macronode: b3:a" + lacks + "macronode: b3:c" + lacks + "macronode: b3:d: forbidden: May not\nmacronode: 3 of 4 objects were not deleted\n", 4},
		{"one may be deleted", []string{"cut", barred, gone, deleted}, "b3:a b3:c b3:b", 3,
			done + "macronode: b3:a: outcome unknown (forbidden: May not)" + repeat + "macronode: b3:c" + lacks + "macronode: 2 of 3 objects were not deleted\n", 4},
		{"no node", []string{gone, "404 nothing"}, "b3:a b3:b b3:c b3:d", 1,
			"macronode: b3:a" + lacks + "macronode: b3:b: what answers is no node of ours: 404 Not Found\nmacronode: the last 2 objects were not tried\n", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, d := newPeer(t, c.answers...), newTestConsole()
			d.wantOutput(t, p, "object rm "+c.line, c.code, c.want)
			if len(p.requests()) != c.asked {
				t.Errorf("asked %d times: %q", len(p.requests()), p.requests())
			}
		})
	}
}
