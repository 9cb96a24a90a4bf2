package cli

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"macronode/cmd/macronode/internal/exit"
)

// TestAdminCredentials: the admin listener accepts the token of run.json, the token of
// admin.token_file as the file is at that moment, and API keys of scope admin.
func TestAdminCredentials(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const first, second = "first-token-0123456789", "second-token-0123456789"
	write(first + "\n")
	p := startNode(t, "admin.token_file="+file)
	boot, err := os.ReadFile(filepath.Join(p.dir, "bootstrap.key"))
	if err != nil {
		t.Fatal(err)
	}
	admin := strings.TrimSpace(string(boot))
	reader, id := p.makeKey(t, admin, `{"name":"r","scopes":["read"]}`)
	bounded, _ := p.makeKey(t, admin, `{"name":"b","scopes":["admin","read"],"accounts":["a*"]}`)
	another, other := p.makeKey(t, admin, `{"name":"o","scopes":["admin"]}`)
	otherTenantKey, _ := p.makeKey(t, admin, `{"name":"s","scopes":["admin"],"tenant":"7"}`)
	if id == other {
		t.Fatal("one id for two keys")
	}
	want := func(credential string, status int) {
		t.Helper()
		if got := p.adminStatus(t, credential); got != status {
			t.Errorf("%.12s…: %d, want %d", credential, got, status)
		}
	}
	want(p.token, 200)
	want(first, 200)
	want(second, 401)
	want(admin, 200)
	want(another, 200)
	want(reader, 401)
	want(bounded, 401)
	want(otherTenantKey, 401)
	want(another[:30]+map[bool]string{true: "y", false: "x"}[another[30] == 'x']+another[31:], 401)
	want("", 401)
	write(second)
	want(first, 401)
	want(second, 200)
	write("short")
	want("short", 401)
	want(admin, 200)
	p.revokeKey(t, admin, other)
	want(another, 401)
	if log := p.log.String(); strings.Contains(log, first) || strings.Contains(log, second) || strings.Contains(log, admin[20:]) {
		t.Error("a credential is in the log")
	}
}

// TestAdminTokenFileIsChecked before a node starts with it.
func TestAdminTokenFileIsChecked(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	for text, want := range map[string]string{"": "it must hold one token", "short": "it must hold one token", "two words of a token": "it must hold one token", "a-token-0123456789\n": ""} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d := newTestConsole()
		code := Run([]string{"config", "check", "--set", "admin.token_file=" + file}, d.Console)
		if (code == exit.CodeDone) != (want == "") || !strings.Contains(d.err.String(), want) {
			t.Errorf("%q: %d %s", text, code, &d.err)
		}
	}
	d := newTestConsole()
	if code := Run([]string{"config", "check", "--set", "admin.token_file=" + file + ".none"}, d.Console); code != exit.CodeUnable || !strings.Contains(d.err.String(), "admin.token_file") {
		t.Errorf("no file: %d %s", code, &d.err)
	}
}

// adminStatus returns the status of an admin request with a credential.
func (p process) adminStatus(t *testing.T, credential string) int {
	t.Helper()
	resp := p.callJSON(t, http.MethodGet, p.Admin+"/debug/queues", credential, "")
	defer resp.Body.Close()
	return resp.StatusCode
}

// callJSON sends a request with a JSON body.
func (p process) callJSON(t *testing.T, method, url, credential, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if credential != "" {
		req.Header.Set("Authorization", "Bearer "+credential)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// makeKey creates an API key and returns it with its ID.
func (p process) makeKey(t *testing.T, admin, body string) (key, id string) {
	t.Helper()
	resp := p.callJSON(t, http.MethodPost, p.HTTP+"/v1/keys", admin, body)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	var made struct {
		ID  string `json:"id"`
		Key string `json:"key"`
	}
	if err == nil {
		err = json.Unmarshal(text, &made)
	}
	if err != nil || made.Key == "" {
		t.Fatalf("%v: %d %s", err, resp.StatusCode, text)
	}
	return made.Key, made.ID
}

func (p process) revokeKey(t *testing.T, admin, id string) {
	t.Helper()
	resp := p.callJSON(t, http.MethodDelete, p.HTTP+"/v1/keys/"+id, admin, "")
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		t.Fatal(resp.Status)
	}
}

// TestAdminOnAllInterfaces: the commands reach a node whose admin listener has no address of its own.
func TestAdminOnAllInterfaces(t *testing.T) {
	t.Parallel()
	p := startWithFlags(t, "--admin", "[::]:0", "--set", "listen.insecure=true")
	if out, err := exec.Command("macronode", "storage", "status", "--data", p.dir).CombinedOutput(); err != nil || !strings.Contains(string(out), "1 copies of each object") {
		t.Errorf("%v, %s", err, out)
	}
}

// TestOperatorReachesFullAdminListener fills the admin listener with connections of two
// addresses that send requests without a credential and read no response.
func TestOperatorReachesFullAdminListener(t *testing.T) {
	t.Parallel()
	p := startNode(t, "listen.max_conns=4", "listen.max_conns_per_peer=2")
	requests := strings.Repeat("GET /readyz?verbose HTTP/1.1\r\nHost: localhost\r\n\r\n", 1000)
	for i := range 4 {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i/2))}}
		c, err := d.Dial("tcp", strings.TrimPrefix(p.Admin, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for err == nil { // until the node waits for this client to read
			_ = c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
			_, err = io.WriteString(c, requests)
		}
	}
	p.adminText(t, "/config/status")
}
