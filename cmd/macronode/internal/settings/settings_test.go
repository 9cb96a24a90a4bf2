package settings

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"macronode/adapters/adminapi"
	"macronode/adapters/config"
	"macronode/cmd/macronode/internal/testkit"
)

var rewrite = flag.Bool("rewrite", false, "write the golden file of the settings")

const (
	settingsBase   = "testdata/base.yaml"
	settingsGolden = "testdata/golden.txt"
)

// derivedSetting matches settings that follow from others: they have tests of their own.
var derivedSetting = regexp.MustCompile(`^(reload\.(memory|face\.Version|gate\.Version)\b)`)

// startOnly are settings of a start that depend on keys that a reload can change. A reload leaves them as they
// are.
var startOnly = map[string]string{
	"start.Core.AwaitedUpstreams": "only a start waits for upstreams",
}

// TestSettingsOfEachKey sets each key of the schema alone to another value. The settings of the
// core and of the adapters that change are those of the golden file: one for each key, or more
// for a reason.
func TestSettingsOfEachKey(t *testing.T) {
	base := baseConfig(t, keyChange{})
	was := startOf(t, base)
	var golden strings.Builder
	for _, k := range allKeyChanges(t) {
		is := baseConfig(t, k)
		if k.changes(t, base, is) == "" {
			continue
		}
		now := startOf(t, is)
		fields, parts := changedSettings(was, now)
		if _, listed := severalFields[k.key]; len(fields) != 1 && !listed {
			t.Errorf("%s changes %d settings and has no reason in severalFields:\n\t%s", k.key, len(fields), strings.Join(fields, "\n\t"))
		} else if len(fields) == 1 && listed {
			t.Errorf("%s changes one setting: it needs no reason in severalFields", k.key)
		}
		if was["reload.face.Version"] == now["reload.face.Version"] {
			t.Errorf("%s does not change the version of the configuration", k.key)
		}
		fmt.Fprintf(&golden, "%s -> ", k.changes(t, base, is))
		golden.WriteString(cmp.Or(strings.Join(fields, "; "), "no setting"))
		if len(parts) > 0 {
			golden.WriteString(" [memory: " + strings.Join(parts, ", ") + "]")
		}
		golden.WriteByte('\n')
	}
	compareGolden(t, settingsGolden, golden.String())
}

// TestReloadEqualsStart changes each key that a reload can change. The settings of the reload equal those of a
// node that starts with the new configuration, and no start-only setting depends on the key. Other keys are
// rejected.
func TestReloadEqualsStart(t *testing.T) {
	dir := t.TempDir()
	testkit.WriteCertificate(t, dir, time.Now().Add(time.Hour*24*30))
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("a-token-of-sixteen-characters"), 0o600); err != nil {
		t.Fatal(err)
	}
	base := withFiles(baseConfig(t, keyChange{}), dir)
	was, hot := startOf(t, base), 0
	for _, k := range allKeyChanges(t) {
		is := withFiles(baseConfig(t, k), dir)
		next, changed, err := reloadOf(t, base, is)
		if len(changed) != 1 || !strings.HasPrefix(k.path(), changed[0].Key) {
			t.Errorf("%s: a reload reports %+v", k.key, changed)
			continue
		}
		if !changed[0].Hot {
			if err == nil || !strings.HasPrefix(err.Error(), changed[0].Key+" takes effect only at the next start") {
				t.Errorf("%s: a reload returns %v", k.key, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", k.key, err)
			continue
		}
		hot++
		started := startOf(t, is)
		for _, field := range sortedKeys(started, was) {
			if _, ok := startOnly[field]; ok || !strings.HasPrefix(field, "start.") {
				continue
			}
			if started[field] != was[field] {
				t.Errorf("%s: %s is %s after a start and stays %s after a reload", k.key, field, started[field], was[field])
			}
		}
		reloaded := flatSettings(namedSettings(t, is, next.Numbers, next), "reload")
		for _, field := range sortedKeys(started, reloaded) {
			if !strings.HasPrefix(field, "reload.") || strings.HasSuffix(field, ".ResetEndpoints") || field == "reload.gate.Version" {
				continue
			}
			if started[field] != reloaded[field] {
				t.Errorf("%s: %s is %s after a start and %s after a reload", k.key, field, started[field], reloaded[field])
			}
		}
		if reloaded["reload.gate.Version"] != "2" {
			t.Errorf("%s: the policy has version %s after one reload", k.key, reloaded["reload.gate.Version"])
		}
	}
	if hot < 40 {
		t.Errorf("a reload takes only %d keys", hot)
	}
}

// TestStartPolicyEqualsReloadPolicy: the core configuration of a start has the same policy as the event of a
// reload.
func TestStartPolicyEqualsReloadPolicy(t *testing.T) {
	c := baseConfig(t, keyChange{})
	gate := firstPolicy(c)
	started := NewStart(c).Core.WithPolicy(&gate)
	applied := started.Policy()
	gate.ResetQuotas = 0
	if applied.ResetQuotas = 0; !reflect.DeepEqual(applied, gate) {
		t.Errorf("the core has %+v\nthe event has %+v", applied, gate)
	}
}

// TestEveryKeyHasAChange: a key that is added to the schema is added to keyChanges and to the base.
func TestEveryKeyHasAChange(t *testing.T) {
	allKeyChanges(t)
	var schema schemaNode
	if err := json.Unmarshal(config.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	values := baseValues(t)
	for _, k := range keyChanges {
		if valueAt(values, k.path()) == nil {
			t.Errorf("%s sets no %s", settingsBase, k.path())
		}
	}
	for _, why := range slices.Sorted(maps.Keys(severalFields)) {
		if !slices.ContainsFunc(keyChanges, func(k keyChange) bool { return k.key == why }) {
			t.Errorf("severalFields has %s, which is not a configuration key", why)
		}
	}
}

func (k keyChange) path() string { return cmp.Or(k.at, k.key) }

// changes returns what the change is: key, old value and new value. It is empty, and the test has
// failed, where the two configurations do not differ as they should.
func (k keyChange) changes(t *testing.T, was, is *config.Config) string {
	t.Helper()
	all := config.Diff(was, is)
	if len(all) != 1 || !strings.HasPrefix(k.path(), all[0].Key) {
		t.Errorf("%s changes the keys %+v", k.key, all)
		return ""
	}
	when := "restart"
	if all[0].Hot {
		when = "hot"
	}
	return fmt.Sprintf("%s (%s): %s = %s", k.key, when, k.path(), jsonText(t, k.value))
}

// A schemaNode is the part of a JSON Schema that says which keys there are.
type schemaNode struct {
	Properties map[string]schemaNode `json:"properties"`
	Items      *schemaNode           `json:"items"`
	Additional any                   `json:"additionalProperties"`
}

// keys returns all keys below n.
func (n schemaNode) keys(t *testing.T, path string) (all []string) {
	t.Helper()
	if entry, ok := n.Additional.(map[string]any); ok {
		var of schemaNode
		if err := json.Unmarshal([]byte(jsonText(t, entry)), &of); err != nil {
			t.Fatal(err)
		}
		return of.keys(t, path+".*")
	}
	if n.Items != nil && n.Items.Properties != nil {
		return n.Items.keys(t, path+"[]")
	}
	if n.Properties == nil {
		return []string{strings.TrimPrefix(path, ".")}
	}
	for name, in := range n.Properties {
		all = append(all, in.keys(t, path+"."+name)...)
	}
	return all
}

// allKeyChanges returns keyChanges, which are as many as there are keys in the schema.
func allKeyChanges(t *testing.T) []keyChange {
	t.Helper()
	var schema schemaNode
	if err := json.Unmarshal(config.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, k := range keyChanges {
		listed = append(listed, k.key)
	}
	for _, why := range testkit.Differences(listed, schema.keys(t, "")) { // shown: what the table lists; declared: the schema
		t.Error(why)
	}
	return slices.DeleteFunc(slices.Clone(keyChanges), func(k keyChange) bool { return k.value == nil })
}

// startOf returns the settings of a node that is started with c: path of the field -> value.
func startOf(t *testing.T, c *config.Config) map[string]string {
	t.Helper()
	numbers, err := Numbers{}.renumber(c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newReload(c, numbers, new(Reload))
	if err != nil {
		t.Fatal(err)
	}
	all := flatSettings(NewStart(c), "start")
	maps.Copy(all, flatSettings(namedSettings(t, c, numbers, s), "reload"))
	return all
}

// withFiles returns c with the certificate in dir, unless c is the change of one of its files.
func withFiles(c *config.Config, dir string) *config.Config {
	to := *c
	for _, file := range []struct {
		key  *string
		name string
	}{{&to.Listen.TLS.Cert, "cert"}, {&to.Listen.TLS.Key, "key"}, {&to.Admin.TokenFile, "token"}} {
		if strings.HasPrefix(*file.key, "/etc/") { // where the base has it
			*file.key = filepath.Join(dir, file.name)
		}
	}
	return &to
}

// reloadOf prepares a reload of a node that was started with was, by the functions that a running
// node uses.
func reloadOf(t *testing.T, was, is *config.Config) (next Reload, changed []adminapi.Changed, err error) {
	t.Helper()
	first, err := new(Reload).Next(was)
	if err != nil {
		t.Fatal(err)
	}
	if changed, err = Compare(was, is); err != nil {
		return next, changed, err
	}
	if _, err = ReadCertificate(is); err != nil {
		return next, changed, err
	}
	next, err = first.Next(is)
	return next, changed, err
}

// changedSettings returns the fields that differ, with both values, and the parts of the memory
// bound that differ.
func changedSettings(was, is map[string]string) (fields, parts []string) {
	for _, f := range sortedKeys(was, is) {
		switch part, memory := strings.CutPrefix(f, "reload.memory."); {
		case was[f] == is[f]:
		case memory:
			parts = append(parts, part)
		case !derivedSetting.MatchString(f):
			fields = append(fields, fmt.Sprintf("%s %s -> %s", f, cmp.Or(was[f], "none"), cmp.Or(is[f], "none")))
		}
	}
	return fields, parts
}

func sortedKeys(all ...map[string]string) (keys []string) {
	for _, m := range all {
		keys = slices.AppendSeq(keys, maps.Keys(m))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// compareGolden compares a text with a file, which -rewrite replaces.
func compareGolden(t *testing.T, file, text string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	was, is := strings.Split(string(want), "\n"), strings.Split(text, "\n")
	for i := range max(len(was), len(is)) {
		a, b := "", ""
		if i < len(was) {
			a = was[i]
		}
		if i < len(is) {
			b = is[i]
		}
		if a != b {
			t.Errorf("line %d of %s is\n\t%s\nand would be\n\t%s\nwith go test ./cmd/macronode/internal/settings -run TestSettingsOfEachKey -rewrite", i+1, file, a, b)
		}
	}
}
