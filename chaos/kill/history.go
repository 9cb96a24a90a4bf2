package kill

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/core/record"
	"macronode/core/words"
	"macronode/models/history"
)

// began is when the clients' time began; all of them have one clock.
var began = time.Now()

func now() words.Instant { return words.Instant(time.Since(began)) }

// A Certificate says what was certified.
type Certificate struct {
	Writes, Reads int // that were answered
	Unknown, Done int // writes that nobody was answered, and how many the journal has
}

// Certify reads the journal in a data directory, whose node is gone, and holds to it all
// that all clients of all lives of the node were ever told.
func Certify(data string, all []*Client) (Certificate, error) {
	found, err := recall(data)
	if err != nil {
		return Certificate{}, err
	}
	var ops []history.Op[ask, string]
	for _, c := range all {
		for _, op := range c.said.Ops() {
			if op.Kind == history.Read {
				op.Place = found.seen(c.saw[op.Key])
			}
			ops = append(ops, op)
		}
	}
	if f := history.Certify(newTwin(found), ops, found.entries); f != nil {
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
	c.Done = len(found.asked) - c.Writes
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

// memory is what a journal has.
type memory struct {
	journal words.JournalID
	asked   []history.Entry
	times   map[words.LSN]words.Time  // of frames with something that was asked
	moved   map[words.Seq]words.Place // the movements
}

// seen is where the movement stands that a read says it saw. One that is not there stands
// behind all others.
func (m *memory) seen(s words.Seq) words.Place {
	if s == 0 {
		return words.Place{}
	}
	if at, ok := m.moved[s]; ok {
		return at
	}
	return words.Place{LSN: words.MaxLSN}
}

func (m *memory) entries(yield func(history.Entry) bool) {
	for _, e := range m.asked {
		if !yield(e) {
			return
		}
	}
}

// recall reads a journal to its end.
func recall(data string) (*memory, error) {
	m := &memory{times: map[words.LSN]words.Time{}, moved: map[words.Seq]words.Place{}}
	each := func(frames []record.Sealed) error {
		for i := range frames {
			if err := m.frame(&frames[i]); err != nil {
				return err
			}
		}
		return nil
	}
	_, err := journalfile.Reading{Each: each}.Scan(fs.Dir(filepath.Join(data, "journal")))
	return m, err
}

func (m *memory) frame(s *record.Sealed) error {
	h, rest, err := record.Open(s.Body)
	items := uint16(0) // of the batch, still to come
	for index := range h.Count {
		var r record.Record
		if rest, err = record.Next(rest, &r); err != nil {
			return err
		}
		at := words.Place{LSN: s.LSN, Index: index}
		if r.Counted() {
			m.moved[r.Seq] = at
		}
		switch {
		case r.Kind == record.Lapsed:
			return fmt.Errorf("a hold lapsed at %v, of which the twin knows nothing", at)
		case !r.Keyed():
			continue
		case items > 0:
			items--
			continue
		case r.Kind == record.Batched && r.Problem == 0:
			items = r.Items
		}
		m.journal, m.times[s.LSN] = s.Journal, h.At
		m.asked = append(m.asked, history.Entry{Place: at, Key: whose(string(r.Key.Text))})
	}
	return err
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
