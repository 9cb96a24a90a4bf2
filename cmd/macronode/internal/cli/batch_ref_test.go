package cli

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"macronode/cmd/macronode/internal/testkit"
)

// TestRepeatedRefNamesItsItem: in an atomic batch, a ref that an earlier item has is reported with the item and the
// member.
func TestRepeatedRefNamesItsItem(t *testing.T) {
	t.Parallel()
	p := startNode(t)
	key, err := os.ReadFile(filepath.Join(p.dir, "bootstrap.key"))
	testkit.Must(t, err)
	const item = `{"op":"issue","to":"ann","asset":"EUR/2","amount_minor":"1","ref":"one"}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.HTTP+"/v1/batch", strings.NewReader(`{"atomic":true,"items":[`+item+`,`+item+`]}`))
	testkit.Must(t, err)
	req.Header = http.Header{"Authorization": {"Bearer " + strings.TrimSpace(string(key))}, "Content-Type": {"application/json"}, "Idempotency-Key": {"k"}}
	resp, err := http.DefaultClient.Do(req)
	testkit.Must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	testkit.Must(t, err)
	if got := string(text); resp.StatusCode != http.StatusBadRequest || !testkit.ContainsAll(got, []string{`"detail":"ref: is the ref of an earlier item of this batch"`, `"index":1`}) {
		t.Errorf("%d %s", resp.StatusCode, got)
	}
}
