package cli

import (
	"fmt"
	"strings"
	"testing"

	"macronode/core/accounting"
)

const (
	recorded  = `202 {"recorded":2,"duplicate":1,"late":1}`
	oneEvent  = `{"specversion":"1.0","type":"t","source":"gw","id":"7","data":{"dimension":"requests","value":5}}`
	conflict  = `422 {"code":"event_conflict","detail":"Other content.","retryable":false,"index":1}`
	usageNode = " --url %s --api-key s"
)

// TestRecordUsage: events come from a file in either form or from flags, and are sent in requests of 1,024.
func TestRecordUsage(t *testing.T) {
	t.Parallel()
	many := strings.Repeat(oneEvent+"\n", 1026)
	for _, c := range []struct {
		name, args, in string
		answers        []string
		code, asked    int
		want           string
	}{
		{"lines", "-", many, []string{recorded}, 0, 2, "recorded 4, duplicate 2, late 2\n"},
		{"an array", "- --json", "[" + oneEvent + ",\n" + oneEvent + "]\n", []string{recorded}, 0, 1, `{"recorded":2,"duplicate":1,"late":1}` + "\n"},
		{"nothing", "-", "", []string{recorded}, 0, 0, "recorded 0, duplicate 0, late 0\n"},
		{"an empty array", "-", "[]", []string{recorded}, 0, 0, "recorded 0, duplicate 0, late 0\n"},
		{"flags", "--dimension requests --value 5 --label route=/x --label service=shop --time 2026-01-31", "", []string{recorded}, 0, 1, "recorded 2, duplicate 1, late 1\n"},
		{"a conflict", "-", many, []string{recorded, conflict}, 1, 2, "recorded 2, duplicate 1, late 1\nmacronode: event 1026 (source gw, id 7): event_conflict: Other content\n"},
		{"a conflict, in JSON", "- --json", many, []string{recorded, conflict}, 1, 2,
			`{"recorded":2,"duplicate":1,"late":1,"event":1026,"problem":{"code":"event_conflict","detail":"Other content.","retryable":false,"index":1}}` + "\n" +
				"macronode: event 1026 (source gw, id 7): event_conflict: Other content\n"},
		{"a conflict at once, in JSON", "- --json", oneEvent + oneEvent, []string{conflict}, 1, 1, conflict[4:] + "\nmacronode: event 2 (source gw, id 7): event_conflict: Other content\n"},
		{"not known", "- --timeout 5s", oneEvent, []string{unclear}, 3, 1, "macronode: outcome unknown (outcome_unknown: Not known yet): run the same command again; each event counts once\n"},
		{"one, not known", "--dimension requests --value 5 --timeout 5s", "", []string{unclear}, 3, 1,
			"macronode: outcome unknown (outcome_unknown: Not known yet): retry with --source cli --id drawn; each event counts once\n"},
		{"no event", "-", oneEvent + "\n{\"id\":1}", []string{recorded}, 2, 1, "recorded 2, duplicate 1, late 1\nmacronode: event 2: id: invalid value\n"},
		{"an unknown member", "-", `{"ident":"1"}`, nil, 2, 0, "macronode: event 1: unknown member \"ident\"\n"},
		{"no value", "-", strings.Replace(oneEvent, `,"value":5`, "", 1), nil, 2, 0, "macronode: event 1: data.value: is missing\n"},
		{"a cut array", "-", "[" + oneEvent, []string{recorded}, 2, 1, "recorded 2, duplicate 1, late 1\nmacronode: event 2: invalid JSON: unexpected EOF\n"},
		{"two arrays", "-", "[" + oneEvent + "][]", []string{recorded}, 2, 1, "recorded 2, duplicate 1, late 1\nmacronode: there is more after the array of 1 events\n"},
		{"neither", "", "", nil, 2, 0, "macronode: usage record needs a file, or --dimension and --value\n"},
		{"both", "- --dimension requests --value 1", "", nil, 2, 0, "macronode: usage record needs a file, or --dimension and --value\n"},
		{"no value flag", "--dimension requests", "", nil, 2, 0, "macronode: usage record needs a file, or --dimension and --value\n"},
		{"no file", "nowhere", "", nil, 2, 0, "macronode: open nowhere: no such file or directory\n"},
		{"another label", "--dimension requests --value 1 --label host=a", "", nil, 2, 0, "macronode: --label host=a must be service, region, method, route or subject with a value\n"},
		{"another time", "--dimension requests --value 1 --time soon", "", nil, 2, 0, "macronode: --time soon must be a time such as 2026-01-31T12:00:00Z, or a date such as 2026-01-31\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, d := newPeer(t, c.answers...), newTestConsole()
			p.limitAttempts(c.args)
			d.in = strings.NewReader(c.in)
			code := Run(strings.Fields("usage record "+c.args+fmt.Sprintf(usageNode, p.URL)), d.Console)
			if got := d.out.String() + d.err.String(); code != c.code || got != c.want || len(p.requests()) != c.asked {
				t.Errorf("%d, asked %d times\n%swant %d\n%s", code, len(p.requests()), got, c.code, c.want)
			}
			if c.name == "flags" && !strings.Contains(p.requests()[0], `[{"data":{"dimension":"requests","labels":{"route":"/x","service":"shop"},"value":"5"},"id":"drawn","source":"cli","specversion":"1.0","time":"2026-01-31T00:00:00Z","type":"usage"}]`) {
				t.Errorf("asked %s", p.requests()[0])
			}
		})
	}
}

// TestQueryUsage: the time and the groups of a query, and its formats.
func TestQueryUsage(t *testing.T) {
	t.Parallel()
	const page = `{"from":"2026-01-31T00:00:00.000Z","to":"2026-02-01T00:00:00.000Z","usage":[{"dimension":"requests","window_from":"2026-01-31T00:00:00.000Z",` +
		`"window_to":"2026-01-31T00:05:00.000Z","labels":{"service":"shop"},"value":"12","late":"1","open":"2","events":3}],"sealed_to":"2026-01-31T00:00:00.000Z","as_of":"2026-01-31T00:00:01.000Z"}`
	const past = `{"from":"2026-01-31T00:00:00.000Z","to":"2026-02-01T00:00:00.000Z","usage":[{"dimension":"requests","labels":{},"value":"12","late":"1","open":"0","events":3}],"as_of":"2026-02-03T08:00:00.000Z"}`
	const sealed = "windows that end by 2026-01-31T00:00:00.000Z are sealed\n"
	for _, c := range []struct {
		args, answer, request string
		code                  int
		want                  string
	}{
		{"--from 2026-01-31 --to 2026-02-01T00:00:00+01:00", page, "from=2026-01-31T00%3A00%3A00Z&to=2026-01-31T23%3A00%3A00Z&format=json", 0,
			"dimension         value             late          open          events\nrequests          12                1             2             3\n" + sealed},
		{"--last 24h --group service,window --dimension requests", page, "from=2025-12-31T00%3A00%3A00Z&to=2026-01-01T00%3A00%3A00Z&dimension=requests&group=service%2Cwindow&format=json", 0,
			"dimension         from                      to                        service           value             late          open          events\n" +
				"requests          2026-01-31T00:00:00.000Z  2026-01-31T00:05:00.000Z  shop              12                1             2             3\n" + sealed},
		{"--last 24h --json", page, "format=json", 0, page + "\n"},
		{"--from 1970-01-01 --csv", "a,b", "from=1970-01-01T00%3A00%3A00Z&to=2026-01-01T00%3A00%3A00Z&format=csv", 0, "a,b"},
		{"--from 1970-01-01 --ndjson", "{}", "format=ndjson", 0, "{}"},
		{"--last 1h", `{"usage":[],"from":"2026-01-31T00:00:00Z","to":"2026-01-31T01:00:00Z"}`, "", 0, "no usage from 2026-01-31T00:00:00.000Z to 2026-01-31T01:00:00.000Z\n"},
		{"--from 2026-01-31 --as-of 2026-02-03T09:00:00+01:00 --json", past, "from=2026-01-31T00%3A00%3A00Z&to=2026-02-03T08%3A00%3A00Z&as_of=2026-02-03T08%3A00%3A00Z&format=json", 0, past + "\n"},
		{"--from 2026-01-31 --to 2026-02-01 --as-of 2026-02-03 --csv", "a,b", "to=2026-02-01T00%3A00%3A00Z&as_of=2026-02-03T00%3A00%3A00Z&format=csv", 0, "a,b"},
		{"--last 24h --as-of 2026-02-03", past, "from=2026-02-02T00%3A00%3A00Z&to=2026-02-03T00%3A00%3A00Z&as_of=2026-02-03T00%3A00%3A00Z&format=json", 0,
			"dimension         value             late          open          events\nrequests          12                1             0             3\nas of 2026-02-03T08:00:00.000Z\n"},
		{"--last 24h --as-of later", "", "", 2, "macronode: --as-of later must be a time such as 2026-01-31T12:00:00Z, or a date such as 2026-01-31\n"},
		{"", "", "", 2, "macronode: usage query needs --from, or --last with a duration such as 24h\n"},
		{"--last 1h --from 2026-01-31", "", "", 2, "macronode: usage query needs --from, or --last with a duration such as 24h\n"},
		{"--last 1h --to 2026-01-31", "", "", 2, "macronode: usage query needs --from, or --last with a duration such as 24h\n"},
		{"--last=-1h", "", "", 2, "macronode: usage query needs --from, or --last with a duration such as 24h\n"},
		{"--from yesterday", "", "", 2, "macronode: --from yesterday must be a time such as 2026-01-31T12:00:00Z, or a date such as 2026-01-31\n"},
		{"--from 2026-01-31 --to 31.2.2026", "", "", 2, "macronode: --to 31.2.2026 must be a time such as 2026-01-31T12:00:00Z, or a date such as 2026-01-31\n"},
	} {
		p, d := newPeer(t, "200 "+c.answer), newTestConsole()
		code := Run(strings.Fields("usage query "+c.args+fmt.Sprintf(usageNode, p.URL)), d.Console)
		if got := d.out.String() + d.err.String(); code != c.code || got != c.want || code == 0 && !strings.Contains(p.requests()[0], c.request) {
			t.Errorf("%s: %d, asked %q\n%swant\n%s", c.args, code, p.requests(), got, c.want)
		}
	}
}

// TestExportUsage: slices are printed as they came, and progress is shown on a terminal only.
func TestExportUsage(t *testing.T) {
	t.Parallel()
	const first, second = `{"seq":1, "rows":[]}`, `{"seq":2}`
	for _, isTerminal := range []bool{false, true} {
		p, d := newPeer(t, `200 {"slices":[`+first+`],"next_cursor":"c"}`, `200 {"slices":[`+second+`]}`), newTestConsole()
		d.isErrTerminal = isTerminal
		code := Run(strings.Fields("usage export --from 2026-01-31 --dimension requests"+fmt.Sprintf(usageNode, p.URL)), d.Console)
		if code != 0 || d.out.String() != first+"\n"+second+"\n" || (d.err.Len() > 0) != isTerminal {
			t.Errorf("%d %s%q", code, &d.out, &d.err)
		}
		if got := p.requests(); len(got) != 2 || !strings.Contains(got[0], "from=2026-01-31T00%3A00%3A00Z&dimension=requests&limit=1000") {
			t.Errorf("asked %q", got)
		}
	}
	p, d := newPeer(t, `200 {"slices":[`+first+`],"next_cursor":"c"}`, barred), newTestConsole()
	if code := Run(strings.Fields("usage export"+fmt.Sprintf(usageNode, p.URL)), d.Console); code != 1 || d.out.String() != first+"\n" {
		t.Errorf("a list that is cut: %d %s%s", code, &d.out, &d.err)
	}
}

// TestLabelFlagsAreAll: the flags name the labels that there are.
func TestLabelFlagsAreAll(t *testing.T) {
	t.Parallel()
	for _, name := range accounting.LabelNames() {
		v := recordUsageCmd{Dimension: "requests", Value: new(uint64), Label: map[string]string{name: "a"}, ID: "1"}
		if e, err := v.event(newTestConsole().Console); err != nil || e.Data.Labels.Service+e.Data.Labels.Region+e.Data.Labels.Method+e.Data.Labels.Route+e.Data.Labels.Subject != "a" {
			t.Errorf("%s: %+v %v", name, e, err)
		}
	}
}
