package registry_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"macronode/adapters/httpapi"
	"macronode/adapters/registry"
	"macronode/adapters/s3"
)

// TestEndpointsAreTheDocuments checks that the endpoints are the operations of the API document,
// and those of S3, plus the stream, the proxy and other.
func TestEndpointsAreTheDocuments(t *testing.T) {
	var document struct {
		Paths map[string]map[string]struct {
			ID string `json:"operationId"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(httpapi.Document(), &document); err != nil {
		t.Fatal(err)
	}
	want := []string{"proxy GET", "proxy POST", "proxy other", "stream GET", "other GET", "other POST", "other other"}
	for _, op := range s3.Ops() {
		name, method := httpapi.S3Operation(op)
		want = append(want, name+" "+method)
	}
	for _, path := range document.Paths {
		for method, operation := range path {
			want = append(want, operation.ID+" "+strings.ToUpper(method))
		}
	}
	var got []string
	for _, e := range registry.Endpoints {
		got = append(got, strings.Join(e, " "))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("declared endpoints %q\nwant those of the document %q", got, want)
	}
}

// TestCountedOperationsOccur checks that the code counts each declared operation. Otherwise its
// series would stay 0.
func TestCountedOperationsOccur(t *testing.T) {
	var text strings.Builder
	err := filepath.WalkDir(filepath.Join(root, "cmd/macronode"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		text.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for verb, metric := range map[string]string{"Failed": "io_errors_total", "Retried": "backoff_retries_total"} {
		i := slices.IndexFunc(registry.Metrics, func(m registry.Metric) bool { return m.Name == metric })
		for _, values := range registry.Metrics[i].All() {
			if call := "metrics." + verb + "(\"" + values[0] + "\")"; !strings.Contains(text.String(), call) {
				t.Errorf("%s: no code calls %s", metric, call)
			}
		}
	}
}

func TestStatusClass(t *testing.T) {
	for status, want := range map[int]string{0: "none", 101: "1xx", 200: "2xx", 304: "3xx", 429: "4xx", 504: "5xx", 999: "5xx"} {
		if got := registry.StatusClass(status); got != want {
			t.Errorf("StatusClass(%d) = %s, want %s", status, got, want)
		}
	}
}
