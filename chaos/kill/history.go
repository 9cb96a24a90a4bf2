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

// began is the start of the clients' shared clock.
var began = time.Now()

func now() types.Instant { return types.Instant(time.Since(began)) }

// A Certificate has what was certified.
type Certificate struct {
	Writes, Reads int // that were answered
	Unknown, Done int // writes without a response, and how many of them the journal has
}

// Certify reads the journal of a stopped node and checks all responses of all clients in all runs of the node
// against it.
func Certify(data string, all []*Client) (Certificate, error) {
	found, err := reread(data)
	if err != nil {
		return Certificate{}, err
	}
	var ops []history.Op[ask, string]
	for _, c := range all {
		for _, op := range c.recorder.Ops() {
			if op.Kind == history.Read {
				op.Place = found.Seen(types.DefaultTenant, c.saw[op.Key])
			}
			ops = append(ops, op)
		}
	}
	if f := history.Certify(newReference(found), ops, entries(found)); f != nil {
		return Certificate{}, fmt.Errorf("%v%s%s", f, describe(ops, f.Op), describe(ops, f.Other))
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

func describe(ops []history.Op[ask, string], i int) string {
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

// entries returns the movements of m with the key of their operation. The expiry of a hold has none: the holds of
// these clients outlast them.
func entries(m *recall.Memory) history.Journal {
	return func(yield func(history.Entry) bool) {
		for _, e := range m.Entries {
			if !yield(history.Entry{Place: e.Place, Key: keyOf(e.Key)}) {
				return
			}
		}
	}
}

// keyOf returns the operation of an idempotency key; zero for a foreign key.
func keyOf(key string) history.Key {
	client, number, _ := strings.Cut(strings.TrimPrefix(key, "client:"), "-")
	c, err := strconv.ParseUint(client, 10, 32)
	n, wrong := strconv.ParseUint(number, 10, 32)
	if err != nil || wrong != nil {
		return history.Key{}
	}
	return history.Key{Client: uint32(c), Number: uint32(n)}
}
