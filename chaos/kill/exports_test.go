package kill_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/twmb/franz-go/pkg/kgo"

	"macronode/adapters/adminapi"
	"macronode/adapters/kafkatest"
	"macronode/adapters/natstest"
	"macronode/chaos/kill"
	"macronode/core/types"
)

// TestKillExports kills the real binary while it delivers usage and movements to a receiver that fails, to files, and to a server of
// NATS and a broker of Kafka that are restarted. At the end all have each item in order, and none is missing. The receiver
// can have items again. The files, the stream of NATS and the topic of Kafka have each item once.
func TestKillExports(t *testing.T) {
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	r, out := kill.NewReceiver(*seed), filepath.Join(t.TempDir(), "out")
	defer r.Close()
	bus := natstest.New(t, nil)
	bus.Create("items", nil)
	queue := kafkatest.New(t)
	queue.Create("items", 3, nil)
	n := &kill.Node{Binary: binary, Data: t.TempDir(), Args: []string{"--set", "accounting.window=1s", "--set", "accounting.grace=0s", "--set",
		fmt.Sprintf(`exports.sinks=[{"name":"app","kind":"http","url":%q,"streams":["usage","wallet"]},{"name":"files","kind":"file","dir":%q,"streams":["usage","wallet"]},
			{"name":"bus","kind":"nats","servers":["nats://%s"],"stream":"items","subject":"items","streams":["usage","wallet"]},
			{"name":"queue","kind":"kafka","servers":["kafka://%s"],"topic":"items","streams":["usage","wallet"]}]`, r.URL, out, bus.Address(), queue.Address())}}
	var all []*kill.UsageClient
	for i := range uint64(4) {
		all = append(all, kill.NewUsageClient(i+1))
	}
	dice := types.NewRand(*seed)
	issued := 0
	issue := func() {
		for range 20 {
			issued++
			_, _, _ = n.Post(t.Context(), "/v1/issue", fmt.Sprint("issue-", issued), `{"to":"ann","asset":"EUR/2","amount_minor":"1"}`) // some are cut
		}
	}
	runs := *kills/4 + 1
	for range runs {
		start(t, n)
		killUnderLoad(t, n, all, &dice, func() {
			issue()
			bus.Restart()
			queue.Restart()
			if !r.AwaitAttempts(10) {
				t.Errorf("no item is delivered: %s", n.Output())
			}
		})
	}
	start(t, n)
	for _, c := range all {
		if err := c.Settle(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	issue()
	r.Calm()
	heads := awaitDelivered(t, n)
	got, err := r.Items()
	if err != nil {
		t.Errorf("the receiver: %v", err)
	}
	files, messages, records := inFiles(t, out), inStream(t, bus), inTopic(t, queue)
	for stream, head := range heads {
		dimension, usage := strings.CutPrefix(stream, "usage/")
		path := "/movements/default"
		if usage {
			path = "/slices/default/" + dimension
		}
		if got[path] != head || files[stream] != head || messages[stream] != head || records[stream] != head {
			t.Errorf("%s has %d items, the receiver %d, the files %d, the stream %d, the topic %d", stream, head, got[path], files[stream], messages[stream], records[stream])
		}
	}
	if output, code := n.Stop(); code != 0 {
		t.Fatalf("exit %d:\n%s", code, output)
	}
	if len(heads) != 3 || heads["wallet"] < issued/2 || r.Faults < runs || r.Again == 0 {
		t.Fatalf("%v, %d faults, %d repeated: no load", heads, r.Faults, r.Again)
	}
	t.Logf("%d runs, items %v, %d faults, %d items were delivered again", runs, heads, r.Faults, r.Again)
}

// awaitDelivered waits until each sink has all that is sealed, and returns the last item of each stream.
func awaitDelivered(t *testing.T, n *kill.Node) map[string]int {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		status, body, err := n.AdminGet("/exports")
		var is adminapi.Exports
		if err != nil || json.Unmarshal(body, &is) != nil {
			t.Fatalf("exports: %d %s %v", status, body, err)
		}
		open, err := n.Gauges(t.Context(), "usage_rows", "index_lag_lsn")
		if err != nil {
			t.Fatal(err)
		}
		heads, settled := map[string]int{}, len(is.Sinks) == 4 && open["usage_rows"] == 0
		for _, s := range is.Sinks {
			settled = settled && s.Pending != nil && *s.Pending == 0 && s.Quarantined == 0 && s.InFlight == 0 && len(s.Lanes) == 3
			for _, l := range s.Lanes {
				settled = settled && (heads[l.Stream] == 0 || heads[l.Stream] == int(l.Head))
				heads[l.Stream] = int(l.Head)
			}
		}
		if settled && heads["usage/requests"] == checkedSlices(t, n, "requests") && heads["usage/bytes_in"] == checkedSlices(t, n, "bytes_in") {
			return heads
		}
		if time.Now().After(end) {
			t.Fatalf("still not delivered: %s\n%s", body, n.Output())
		}
	}
}

// checkedSlices returns the number of slices of a dimension.
func checkedSlices(t *testing.T, n *kill.Node, dimension string) (count int) {
	t.Helper()
	for cursor := ""; ; {
		_, body, err := n.GetIndexed(t.Context(), "/v1/usage-slices?limit=1000&dimension="+dimension+cursor)
		var page struct {
			Slices []struct{}
			Next   string `json:"next_cursor"`
		}
		if err != nil || json.Unmarshal(body, &page) != nil {
			t.Fatalf("slices: %.200s %v", body, err)
		}
		if count += len(page.Slices); page.Next == "" {
			return count
		}
		cursor = "&cursor=" + page.Next
	}
}

// inStream checks that the messages of each stream of items are in order, each once, and returns the last of each.
func inStream(t *testing.T, bus *natstest.Server) map[string]int {
	t.Helper()
	last := map[string]int{}
	bus.Messages("items", func(m *jetstream.RawStreamMsg) {
		parts := strings.Split(m.Subject, ".") // items, journal, stream, tenant, and the dimension of usage, position
		position, err := strconv.Atoi(parts[len(parts)-1])
		stream := parts[2]
		if len(parts) == 6 {
			stream += "/" + parts[4]
		}
		if err != nil || position != last[stream]+1 {
			t.Errorf("%s comes after %d", m.Subject, last[stream])
		}
		last[stream] = position
	})
	return last
}

// inTopic checks that the records of each stream of items are in order, each once, and returns the last of each.
func inTopic(t *testing.T, queue *kafkatest.Server) map[string]int {
	t.Helper()
	last := map[string]int{}
	queue.Records("items", func(r *kgo.Record) {
		var event struct{ Data struct{ Seq int } }
		parts := strings.Split(string(r.Key), "/") // stream, tenant, and the dimension of usage
		stream := parts[0]
		if len(parts) == 3 {
			stream += "/" + parts[2]
		}
		if err := json.Unmarshal(r.Value, &event); err != nil || event.Data.Seq != last[stream]+1 {
			t.Errorf("%s comes after %d: %v", r.Value, last[stream], err)
		}
		last[stream] = event.Data.Seq
	})
	return last
}

// inFiles checks that the lines of each stream are in order, each once, and returns the last of each.
func inFiles(t *testing.T, dir string) map[string]int {
	t.Helper()
	last := map[string]int{}
	names, err := filepath.Glob(filepath.Join(dir, "*.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var at struct {
				Dimension string
				Seq       int
			}
			if err := json.Unmarshal([]byte(line), &at); err != nil || at.Seq < 1 {
				t.Fatalf("%s has the line %q: %v", name, line, err)
			}
			stream := "wallet"
			if at.Dimension != "" {
				stream = "usage/" + at.Dimension
			}
			if at.Seq != last[stream]+1 {
				t.Errorf("%s: item %d of %s comes after %d", name, at.Seq, stream, last[stream])
			}
			last[stream] = at.Seq
		}
	}
	return last
}
