package httpapi_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"macronode/adapters/httpapi/wire"
	"macronode/core/event"
	"macronode/core/words"
)

// The generated types have the members of the document's schemas, and no others:
// required ones without a pointer, in Go's types for theirs.
func TestTypesAreTheDocuments(t *testing.T) {
	doc, _ := contract()
	for name, of := range map[string]reflect.Type{
		"IssueRequest":    reflect.TypeFor[wire.IssueRequest](),
		"TransferRequest": reflect.TypeFor[wire.TransferRequest](),
		"BurnRequest":     reflect.TypeFor[wire.BurnRequest](),
		"Receipt":         reflect.TypeFor[wire.Receipt](),
		"Balance":         reflect.TypeFor[wire.Balance](),
		"Problem":         reflect.TypeFor[wire.Problem](),
	} {
		schema := doc.Components.Schemas[name].Value
		if of.NumField() != len(schema.Properties) {
			t.Errorf("%s: %d members, %d in the document", name, of.NumField(), len(schema.Properties))
		}
		for i := range of.NumField() {
			member, optional := strings.CutSuffix(of.Field(i).Tag.Get("json"), ",omitempty")
			p := schema.Properties[member]
			if p == nil {
				t.Errorf("%s: the document has no %q", name, member)
				continue
			}
			if optional == slices.Contains(schema.Required, member) {
				t.Errorf("%s: %q is required in one of them alone", name, member)
			}
			kind := of.Field(i).Type
			if kind.Kind() == reflect.Pointer {
				kind = kind.Elem()
			}
			want := map[string]reflect.Kind{"string": reflect.String, "integer": reflect.Int64, "boolean": reflect.Bool}[p.Value.Type.Slice()[0]]
			if p.Value.Format == "date-time" {
				want = reflect.Struct
			}
			if got := kind.Kind(); got != want && !(got == reflect.Int && want == reflect.Int64) {
				t.Errorf("%s: %q is %v", name, member, kind)
			}
		}
	}
}

// The document lists the problems that there are.
func TestCodesAreTheDocuments(t *testing.T) {
	for p := event.None + 1; p.Known(); p++ {
		if !wire.ProblemCode(p.Code()).Valid() {
			t.Errorf("the document has no %s", p)
		}
	}
	doc, _ := contract()
	for _, code := range doc.Components.Schemas["Problem"].Value.Properties["code"].Value.Enum {
		known := false
		for p := event.None + 1; p.Known(); p++ {
			known = known || p.Code() == code
		}
		if !known {
			t.Errorf("nobody says %v", code)
		}
	}
}

// The document's limits are those of the words.
func TestLimitsAreTheDocuments(t *testing.T) {
	doc, _ := contract()
	for name, want := range map[string]uint64{"Account": words.MaxAccount, "Party": words.MaxAccount, "Asset": words.MaxAsset,
		"IdempotencyKey": words.MaxKey, "Memo": words.MaxMemo, "Amount": 39} {
		if got := doc.Components.Schemas[name].Value.MaxLength; got == nil || *got != want {
			t.Errorf("%s: %v, not %d", name, got, want)
		}
	}
	if got := *doc.Components.Schemas["Nonce"].Value.Max; got != words.MaxNonce {
		t.Errorf("Nonce: %v", got)
	}
}

// What the generator writes now is what is committed.
func TestGeneratedCodeIsFresh(t *testing.T) {
	const tool = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"
	source, err := os.ReadFile("wire/wire.go")
	if err != nil || !strings.Contains(string(source), tool) {
		t.Fatalf("another version is pinned in wire.go, or none: %v", err)
	}
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	local := "GOPROXY=file://" + filepath.Join(strings.TrimSpace(string(cache)), "cache", "download") // a test asks nobody outside
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", tool, "-config", filepath.Join(here, "wire/oapi.yaml"), filepath.Join(here, "openapi.json"))
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "GOFLAGS=", local, "GOSUMDB=off")
	if said, err := cmd.CombinedOutput(); err != nil {
		if strings.Contains(string(said), "no such file or directory") || strings.Contains(string(said), "not found") {
			t.Skip("oapi-codegen is not in the module cache; go generate fetches it, and the other tests here tie its output to the document")
		}
		t.Fatalf("%v: %s", err, said)
	}
	now, err := os.ReadFile(filepath.Join(cmd.Dir, "wire.gen.go"))
	if err != nil {
		t.Fatal(err)
	}
	was, err := os.ReadFile("wire/wire.gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if string(now) != string(was) {
		t.Fatal("wire/wire.gen.go is stale: go generate ./adapters/httpapi/...")
	}
}
