package registry_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"macronode/adapters/httpapi"
	"macronode/adapters/registry"
)

// TestEndpointsAreTheDocuments checks that the endpoints are the operations of the API document,
// plus the stream, the proxy and other.
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

// TestWhatIsCountedCanHappen checks that the code counts each declared operation. Otherwise its
// series would stay 0.
func TestWhatIsCountedCanHappen(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "cmd/macronode/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, file := range files {
		if b, err := os.ReadFile(file); err != nil {
			t.Fatal(err)
		} else if !strings.HasSuffix(file, "_test.go") {
			text.Write(b)
		}
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
