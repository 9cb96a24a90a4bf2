package kill

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/chaos/recall"
	"macronode/core/record"
	"macronode/core/types"
	"macronode/models/history"
)

// began is when the clients' time began; all of them have one clock.
var began = time.Now()

func now() types.Instant { return types.Instant(time.Since(began)) }

// A Certificate says what was certified.
type Certificate struct {
	Writes, Reads int // that were answered
	Unknown, Done int // writes that nobody was answered, and how many the journal has
}

// Certify reads the journal in a data directory, whose node is gone, and holds to it all
// that all clients of all lives of the node were ever told.
func Certify(data string, all []*Client) (Certificate, error) {
	found, err := reread(data)
	if err != nil {
		return Certificate{}, err
	}
	var ops []history.Op[ask, string]
	for _, c := range all {
		for _, op := range c.said.Ops() {
			if op.Kind == history.Read {
				op.Place = found.Seen(types.DefaultTenant, c.saw[op.Key])
			}
			ops = append(ops, op)
		}
	}
	if f := history.Certify(newTwin(found), ops, entries(found)); f != nil {
		return Certificate{}, fmt.Errorf("%v%s%s", f, tell(ops, f.Op), tell(ops, f.Other))
	}
	var c Certificate
	for _, op := range ops {
		switch {
		case op.Return == history.Never && op.Kind == history.Write:
			c.Unknown++
		case op.Return == history.Never:
		case op.Kind == history.Write:
			c.Writes++
		default:
			c.Reads++
		}
	}
	c.Done = len(found.Entries) - c.Writes
	return c, nil
}

func tell(ops []history.Op[ask, string], i int) string {
	if i < 0 {
		return ""
	}
	op := &ops[i]
	until := "was never answered"
	if op.Return < history.Never {
		until = fmt.Sprintf("until %v at %v: %s", time.Duration(op.Return), op.Place, op.Answer)
	}
	return fmt.Sprintf("\n  client %d's op %d: %s %s\n    from %v, %s", op.Key.Client, op.Key.Number, op.Ask.path, op.Ask.body, time.Duration(op.Call), until)
}

// reread reads a journal to its end.
func reread(data string) (*recall.Memory, error) {
	m := recall.New()
	each := func(frames []record.Sealed) error {
		for i := range frames {
			if err := m.Frame(&frames[i]); err != nil {
				return err
			}
		}
		return nil
	}
	_, err := journalfile.Reading{Each: each}.Scan(fs.Dir(filepath.Join(data, "journal")))
	return m, err
}

// entries are those of m, each with whose it is. A hold that is over is nobody's: these
// clients' last for longer than they do.
func entries(m *recall.Memory) history.Journal {
	return func(yield func(history.Entry) bool) {
		for _, e := range m.Entries {
			if !yield(history.Entry{Place: e.Place, Key: whose(e.Key)}) {
				return
			}
		}
	}
}

// whose is the op that an idempotency key is of; of a stranger's, nobody's.
func whose(key string) history.Key {
	client, number, _ := strings.Cut(strings.TrimPrefix(key, "client:"), "-")
	c, err := strconv.ParseUint(client, 10, 32)
	n, wrong := strconv.ParseUint(number, 10, 32)
	if err != nil || wrong != nil {
		return history.Key{}
	}
	return history.Key{Client: uint32(c), Number: uint32(n)}
}
