package httpapi_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"macronode/adapters/httpapi"
	"macronode/adapters/httpapi/wire"
	"macronode/core/event"
	"macronode/core/types"
)

// The generated types have the members of the document's schemas and no others. Required members are not pointers.
func TestTypesMatchDocument(t *testing.T) {
	doc, _ := contract()
	types := []reflect.Type{reflect.TypeFor[wire.IssueRequest](), reflect.TypeFor[wire.TransferRequest](), reflect.TypeFor[wire.BurnRequest](),
		reflect.TypeFor[wire.HoldRequest](), reflect.TypeFor[wire.CaptureRequest](), reflect.TypeFor[wire.FreezeRequest](), reflect.TypeFor[wire.BatchRequest](),
		reflect.TypeFor[wire.BatchItem](), reflect.TypeFor[wire.KeyRequest](), reflect.TypeFor[wire.Receipt](), reflect.TypeFor[wire.AccountReceipt](),
		reflect.TypeFor[wire.Outcome](), reflect.TypeFor[wire.Batch](), reflect.TypeFor[wire.Result](), reflect.TypeFor[wire.Balance](), reflect.TypeFor[wire.PastBalance](),
		reflect.TypeFor[wire.Problem](), reflect.TypeFor[wire.Hold](), reflect.TypeFor[wire.HoldsPage](), reflect.TypeFor[wire.Entry](), reflect.TypeFor[wire.EntriesPage](),
		reflect.TypeFor[wire.Holding](), reflect.TypeFor[wire.AccountView](), reflect.TypeFor[wire.AccountsPage](), reflect.TypeFor[wire.AssetView](), reflect.TypeFor[wire.AssetsPage](),
		reflect.TypeFor[wire.Change](), reflect.TypeFor[wire.ChangesPage](), reflect.TypeFor[wire.Key](), reflect.TypeFor[wire.NewKey](), reflect.TypeFor[wire.KeysPage](),
		reflect.TypeFor[wire.StoredObject](), reflect.TypeFor[wire.ObjectUpload](), reflect.TypeFor[wire.StoredObjectOrUpload](), reflect.TypeFor[wire.DeletedObject](), reflect.TypeFor[wire.ObjectItem](), reflect.TypeFor[wire.ObjectsPage](), reflect.TypeFor[wire.S3Credentials](),
		reflect.TypeFor[wire.UsageData](), reflect.TypeFor[wire.UsageEvent](), reflect.TypeFor[wire.UsageRecorded](), reflect.TypeFor[wire.UsageSum](), reflect.TypeFor[wire.UsagePage](),
		reflect.TypeFor[wire.UsageRow](), reflect.TypeFor[wire.UsageSlice](), reflect.TypeFor[wire.UsageSlicesPage](), reflect.TypeFor[wire.Labels]()}
	named := map[string]bool{"ReleaseRequest": true} // has no members
	for _, of := range types {
		named[of.Name()] = true
	}
	for name, schema := range doc.Components.Schemas {
		if schema.Value.Type.Is("object") && !named[name] {
			t.Errorf("%s is held against no type", name)
		}
	}
	for _, of := range types {
		name := of.Name()
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
			if p.Value.Type == nil { // of several types
				continue
			}
			want := map[string]reflect.Kind{"string": reflect.String, "integer": reflect.Int64, "boolean": reflect.Bool, "array": reflect.Slice, "object": reflect.Struct}[p.Value.Type.Slice()[0]]
			if p.Value.Format == "date-time" {
				want = reflect.Struct
			}
			if got := kind.Kind(); got != want && !(got == reflect.Int && want == reflect.Int64) {
				t.Errorf("%s: %q is %v", name, member, kind)
			}
		}
	}
}

// Each operation documents the responses of admission.
func TestOperationsDocumentRejections(t *testing.T) {
	doc, _ := contract()
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			for _, status := range []string{"429", "503"} {
				if op.Responses.Value(status) == nil {
					t.Errorf("%s %s: no %s", method, path, status)
				}
			}
		}
	}
}

// The document lists all problems except that of upstreams, which the wallet does not return.
func TestCodesMatchDocument(t *testing.T) {
	for p := event.None + 1; p.Known(); p++ {
		if !wire.ProblemCode(p.Code()).Valid() && p != event.BadGateway {
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
			t.Errorf("no problem has the code %v", code)
		}
	}
}

// The limits of the document are those of core/types.
func TestLimitsMatchDocument(t *testing.T) {
	doc, _ := contract()
	for name, want := range map[string]uint64{"Account": types.MaxAccount, "Party": types.MaxAccount, "Asset": types.MaxAsset,
		"IdempotencyKey": types.MaxKey, "Ref": types.MaxKey, "Memo": types.MaxMemo, "Amount": 39, "Quantity": 39, "Signed": 40, "Pattern": types.MaxPatterns} {
		if got := doc.Components.Schemas[name].Value.MaxLength; got == nil || *got != want {
			t.Errorf("%s: %v, not %d", name, got, want)
		}
	}
	for _, name := range []string{"Nonce", "Seq"} {
		if got := *doc.Components.Schemas[name].Value.Max; got != types.MaxNonce {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := *doc.Components.Schemas["BatchRequest"].Value.Properties["items"].Value.MaxItems; got != types.MaxItems {
		t.Errorf("%d items", got)
	}
	if got := *doc.Components.Parameters["Limit"].Value.Schema.Value.Max; got != httpapi.MaxPage {
		t.Errorf("pages of %v", got)
	}
}

// A key can have each scope.
func TestKeyCanHaveEachScope(t *testing.T) {
	doc, _ := contract()
	if got, all := *doc.Components.Schemas["KeyRequest"].Value.Properties["scopes"].Value.MaxItems, len(doc.Components.Schemas["Scope"].Value.Enum); got != uint64(all) {
		t.Errorf("a key has at most %d scopes of %d", got, all)
	}
}

// The enums of the document are those of core/event.
func TestEnumsMatchDocument(t *testing.T) {
	doc, _ := contract()
	var ops, items, states, scopes []any
	for op := event.Issue; op < event.Batch; op++ {
		ops = append(ops, op.String())
		if op <= event.Release {
			items = append(items, op.String())
		}
	}
	for state := event.HoldActive; state <= event.HoldExpired; state++ {
		states = append(states, state.String())
	}
	for bit := event.Scopes(1); bit&event.AllScopes != 0; bit <<= 1 {
		scopes = append(scopes, map[event.Scopes]string{event.ScopeRead: "read", event.ScopeIssue: "issue", event.ScopeTransfer: "transfer", event.ScopeBurn: "burn",
			event.ScopeHold: "hold", event.ScopeCapture: "capture", event.ScopeAdmin: "admin", event.ScopeStore: "store", event.ScopeMeter: "meter"}[bit])
	}
	for name, want := range map[string][]any{"Op": ops, "ItemOp": items, "EntryOp": append(slices.Clone(ops), "expire"), "HoldState": states, "Scope": scopes} {
		if got := doc.Components.Schemas[name].Value.Enum; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// The generated code is what the generator writes now.
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
	local := "GOPROXY=file://" + filepath.Join(strings.TrimSpace(string(cache)), "cache", "download") // a test uses no network
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", tool, "-config", filepath.Join(here, "wire/oapi.yaml"), filepath.Join(here, "openapi.json"))
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "GOFLAGS=", local, "GOSUMDB=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		if strings.Contains(string(output), "no such file or directory") || strings.Contains(string(output), "not found") {
			t.Skip("oapi-codegen is not in the module cache; go generate fetches it, and the other tests here tie its output to the document")
		}
		t.Fatalf("%v: %s", err, output)
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
