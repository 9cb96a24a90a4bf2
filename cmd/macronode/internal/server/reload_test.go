package server

import (
	"bytes"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"macronode/adapters/adminapi"
	"macronode/adapters/config"
	"macronode/adapters/fs"
	"macronode/cmd/macronode/internal/settings"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/event"
	"macronode/core/gateway/policycheck"
	"macronode/core/node"
	"macronode/core/types"
)

// newTestServer returns a server that was given a configuration, and loads another one on a reload.
func newTestServer(t *testing.T, first, next *config.Config) *Server {
	t.Helper()
	s, err := newServer(first, settings.NewStart(first), Options{Log: slog.New(slog.DiscardHandler), Level: new(slog.LevelVar), Load: func() (*config.Config, error) { return next, nil }})
	if err != nil {
		t.Fatal(err)
	}
	s.runFile.dir = fs.Dir(t.TempDir())
	return s
}

// TestPolicyIsCheckedBeforeChange: a policy under which a caller would never be admitted is not applied.
func TestPolicyIsCheckedBeforeChange(t *testing.T) {
	l := newTestServer(t, testkit.Config(t), nil)
	is := l.applied.Load()
	next := func(set ...string) *appliedConfig {
		e, err := l.builder.build(testkit.Config(t, set...), is)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	good := next("queue.max_wait=50ms", `quotas=[{"name":"all","scope":"peer","requests_per_second":1}]`)
	if _, err := l.reloader.checkPolicy(is, good); err != nil {
		t.Error(err)
	}
	for why, spoil := range map[string]func(*event.Policy){
		"that is all":         func(g *event.Policy) { g.Quotas[0].Rate = 0 },
		"authed callers of ":  func(g *event.Policy) { g.Facets[types.FacetQuery].PerClass[types.ClassAuthed] = 0 },
		"more slots than the": func(g *event.Policy) { g.Facets[types.FacetWallet].Queue += 1 << 16 },
	} {
		bad := next(`quotas=[{"name":"all","scope":"peer","requests_per_second":1}]`)
		spoil(&bad.Policy)
		if _, err := l.reloader.checkPolicy(is, bad); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// TestFailedPolicyCheckRejectsChange: if the simulation of the policy fails, the change is rejected with a reason
// and the previous configuration stays. The parser rejects such files already, so the configuration is made by
// hand.
func TestFailedPolicyCheckRejectsChange(t *testing.T) {
	c := testkit.Config(t, `quotas=[{"name":"all","scope":"peer","requests_per_second":1}]`)
	l := newTestServer(t, testkit.Config(t), c)
	was := l.applied.Load()
	l.reloader.nodeCtx = t.Context()
	if _, err := l.reloader.prepare(was, new(adminapi.Attempt)); err != nil {
		t.Error(err)
	}
	c.Quotas[0].Requests.Units = 0
	next, err := l.reloader.prepare(was, new(adminapi.Attempt))
	if err == nil {
		t.Errorf("%+v is proven", next.Policy.Quotas)
	}
	is := l.reloader.reload()
	if why := strings.Join(is.Last.Why, "\n"); is.Last.Applied || len(is.Last.Changed) != 1 || !strings.Contains(why, "would never be admitted, even alone: quota 1 admits no request: that is all") {
		t.Errorf("%+v", is.Last)
	}
	if is.Refused != 1 || is.Changes != 0 || is.Version != was.Face.Version || l.applied.Load() != was {
		t.Errorf("%+v", is)
	}
}

// TestPartialCheckIsReported: if the simulation of a policy ends at its limit of steps, the attempt and the log have that.
// No configuration reaches the limit, so the simulation is replaced.
func TestPartialCheckIsReported(t *testing.T) {
	for _, partial := range []bool{false, true} {
		c := testkit.Config(t, `quotas=[{"name":"all","scope":"peer","requests_per_second":1}]`)
		l, text := newTestServer(t, testkit.Config(t), c), new(bytes.Buffer)
		l.reloader.log = slog.New(slog.NewTextHandler(text, nil))
		l.reloader.simulate = func(node.Config, *event.Policy) (policycheck.Result, error) {
			return policycheck.Result{Steps: 7, Partial: partial}, nil
		}
		a := new(adminapi.Attempt)
		if _, err := l.reloader.prepare(l.applied.Load(), a); err != nil || a.Partial != partial || len(a.Changed) != 1 {
			t.Errorf("partial %v: %+v, %v", partial, a, err)
		}
		if logged := strings.Contains(text.String(), `"configuration check incomplete: step limit reached" steps=7`); logged != partial {
			t.Errorf("partial %v: the log has %q", partial, text)
		}
	}
}

// TestOnlyChangedPolicyIsChecked: a change of a quota is simulated, one of the log level is not.
func TestOnlyChangedPolicyIsChecked(t *testing.T) {
	const quota = `quotas=[{"name":"all","scope":"peer","requests_per_second":1}]`
	for change, want := range map[string]int{`log.level=debug`: 0, `quotas=[{"name":"all","scope":"peer","requests_per_second":2}]`: 1, `quotas=[]`: 1} {
		l, checked := newTestServer(t, testkit.Config(t, quota), testkit.Config(t, quota, change)), 0
		l.reloader.simulate = func(node.Config, *event.Policy) (policycheck.Result, error) {
			checked++
			return policycheck.Result{}, nil
		}
		a := new(adminapi.Attempt)
		if _, err := l.reloader.prepare(l.applied.Load(), a); err != nil || len(a.Changed) != 1 || checked != want {
			t.Errorf("%s: %d simulations, want %d: %+v, %v", change, checked, want, a, err)
		}
	}
}

// TestNoReloadBeforeReady: a node that is starting does not reload, and its service manager is not notified that
// it is ready.
func TestNoReloadBeforeReady(t *testing.T) {
	to := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenPacket("unixgram", to)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	t.Setenv("NOTIFY_SOCKET", to)
	c := testkit.Config(t)
	l := newTestServer(t, c, c)
	is := l.reloader.reload()
	if is.Last.Applied || is.Refused != 1 || !strings.Contains(is.Last.Why[0], "when it is ready") {
		t.Errorf("%+v", is.Last)
	}
	notifyStopping(l.log) // the first notification
	buf := make([]byte, 100)
	if n, _, err := socket.ReadFrom(buf); err != nil || string(buf[:n]) != "STOPPING=1" {
		t.Errorf("%q, %v", buf[:n], err)
	}
}
