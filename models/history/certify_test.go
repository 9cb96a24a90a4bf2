package history_test

import (
	"fmt"
	"strings"
	"testing"

	"macronode/core/types"
	"macronode/models/history"
)

// write and read return operations of a small history; its keys are those of its clients.
func write(client uint32, call, ret types.Instant, lsn types.LSN, q ask, a answer) op {
	return op{Key: history.Key{Client: client, Number: 1}, Call: call, Return: ret, Place: types.Position{LSN: lsn}, Kind: history.Write, Ask: q, Answer: a}
}

func read(client uint32, call, ret types.Instant, lsn types.LSN, has uint32) op {
	return op{Key: history.Key{Client: client, Number: 1}, Call: call, Return: ret, Place: types.Position{LSN: lsn},
		Kind: history.Read, Ask: ask{kind: look}, Answer: answer{from: has, nonce: 1}}
}

// doubt returns an issue without an answer.
func doubt(client uint32, call types.Instant) op {
	return write(client, call, history.Never, 0, ask{kind: issue, amount: 5}, answer{})
}

// five returns an issue of 5 to the first account, which then has a balance.
func five(client uint32, call, ret types.Instant, lsn types.LSN, has uint32) op {
	return write(client, call, ret, lsn, ask{kind: issue, amount: 5}, answer{from: has, to: has, nonce: 1})
}

// poor returns a payment that the first account cannot make: a stored rejection.
func poor(client uint32, call, ret types.Instant, lsn types.LSN) op {
	return write(client, call, ret, lsn, ask{kind: pay, to: 1, nonce: 1, amount: 999}, answer{why: "funds"})
}

// keeps returns a journal of the first operation of each client, at LSN 1, 2, 3 …
func keeps(clients ...uint32) (j []record) {
	for i, c := range clients {
		j = append(j, record{Place: types.Position{LSN: types.LSN(i + 1)}, Key: history.Key{Client: c, Number: 1}})
	}
	return j
}

// TestCertificateRules has, for each rule, the smallest history that satisfies it and the
// smallest that violates it. want is "" or the fault, with the indices of op and other.
func TestCertificateRules(t *testing.T) {
	const never = history.Never
	for _, c := range []struct {
		rule    string
		ops     []op
		journal []record
		want    string
	}{
		{"an empty history", nil, nil, ""},
		{"one after another", []op{five(1, 1, 2, 1, 5), five(2, 3, 4, 2, 10), read(3, 5, 6, 2, 10)}, keeps(1, 2), ""},
		{"the history's own order is of no matter", []op{read(3, 5, 6, 2, 10), five(2, 3, 4, 2, 10), five(1, 1, 2, 1, 5)}, keeps(1, 2), ""},
		{"a write returns before its call", []op{five(1, 2, 1, 1, 5)}, keeps(1), "Backward 0 -1"},
		{"a read returns before its call", []op{read(1, 2, 1, 0, 0)}, nil, "Backward 0 -1"},

		// An answered operation is in the journal, at the position of its answer.
		{"answered and gone", []op{five(1, 1, 2, 1, 5)}, nil, "Lost 0 -1"},
		{"answered and gone, with more behind it", []op{five(1, 1, 2, 1, 5), five(2, 3, 4, 2, 10)}, keeps(1, 2)[1:], "Lost 0 -1"},
		{"answered without a place", []op{five(1, 1, 2, 0, 5), five(2, 3, 4, 1, 10)}, keeps(2), "Lost 0 -1"},
		{"a place behind all journals", []op{five(1, 1, 2, 1<<50, 5)}, nil, "Lost 0 -1"},
		{"the position of another operation", []op{five(1, 1, 2, 1, 5), five(2, 1, 2, 2, 10)}, keeps(2, 1), "Taken 0 1"},
		{"two of one place", []op{five(1, 1, 2, 1, 5), five(2, 1, 2, 1, 5)}, keeps(1), "Lost 1 -1"},
		{"at another place", []op{five(1, 1, 2, 2, 5)}, keeps(1), "Elsewhere 0 -1"},
		{"at its place and at another", []op{five(1, 1, 2, 1, 5)}, keeps(1, 1), "Elsewhere 0 -1"},
		{"unknown, and done twice", []op{doubt(1, 1)}, keeps(1, 1), "Elsewhere 0 -1"},
		{"an entry without an operation", nil, keeps(9), "Unasked -1 -1"},
		{"a read has no record", []op{read(1, 1, 2, 1, 0)}, keeps(1), "Unasked -1 -1"},
		{"places ascend", []op{five(1, 1, 2, 1, 5), five(2, 1, 2, 2, 10)}, []record{keeps(1, 2)[1], keeps(1)[0]}, "Lost 0 -1"},
		{"positions ascend, unanswered operations included", []op{doubt(1, 1), doubt(2, 1)}, []record{keeps(1, 2)[1], keeps(1)[0]}, "Unsorted 0 -1"},
		{"places ascend, and are not the same", []op{doubt(1, 1), doubt(2, 1)}, []record{keeps(1)[0], keeps(2)[0]}, "Unsorted 1 -1"},
		{"the index counts within a frame", []op{doubt(1, 1), doubt(2, 1)},
			[]record{{types.Position{LSN: 1, Index: 2}, keeps(1)[0].Key}, {types.Position{LSN: 1, Index: 1}, keeps(2)[0].Key}}, "Unsorted 1 -1"},

		// An operation without an answer happened if and only if the journal has it.
		{"unknown, and never done", []op{doubt(1, 1), read(2, 2, 3, 0, 0)}, nil, ""},
		{"unknown, and done", []op{doubt(1, 1), read(2, 2, 3, 1, 5)}, keeps(1), ""},
		{"unknown, seen and not in the journal", []op{doubt(1, 1), read(2, 2, 3, 1, 5)}, nil, "Untrue 1 -1"},
		{"unknown, in the journal and not seen", []op{doubt(1, 1), read(2, 2, 3, 1, 0)}, keeps(1), "Untrue 1 -1"},
		{"unanswered, so its answer is not compared", []op{
			write(1, 1, never, 0, ask{kind: issue, amount: 5}, answer{why: "any"})}, keeps(1), ""},
		{"an unanswered read is ignored", []op{read(1, 1, never, 9, 77)}, nil, ""},
		{"operations of the node itself are called first", []op{five(2, 1, 2, 1, 5), doubt(1, history.Always), read(3, 3, 4, 2, 10)}, keeps(2, 1), ""},

		// Answers equal those of the model.
		{"a write with a wrong balance", []op{five(1, 1, 2, 1, 6)}, keeps(1), "Untrue 0 -1"},
		{"a rejection with a wrong nonce", []op{write(1, 1, 2, 1, ask{kind: pay, to: 1, nonce: 1, amount: 999}, answer{nonce: 2})}, keeps(1), "Untrue 0 -1"},
		{"a read behind the write of its place", []op{five(1, 1, 4, 1, 5), read(2, 2, 3, 1, 5)}, keeps(1), ""},
		{"a read before it", []op{five(1, 1, 4, 1, 5), read(2, 2, 3, 0, 0)}, keeps(1), ""},
		{"a read claims an earlier position", []op{five(1, 1, 4, 1, 5), read(2, 2, 3, 0, 5)}, keeps(1), "Untrue 1 -1"},
		{"a read of a position without an entry", []op{five(1, 1, 4, 1, 5), read(2, 5, 6, 7, 5)}, keeps(1), ""},

		// No operation returned before the call of one that precedes it.
		{"side by side, either order", []op{five(1, 1, 4, 2, 10), five(2, 2, 3, 1, 5)}, keeps(2, 1), ""},
		{"at one instant is side by side", []op{five(1, 1, 2, 2, 10), five(2, 2, 3, 1, 5)}, keeps(2, 1), ""},
		{"the later one is first", []op{five(1, 1, 2, 2, 10), five(2, 3, 4, 1, 5)}, keeps(2, 1), "Late 0 1"},
		{"the later one is first, with one in between", []op{five(1, 1, 2, 3, 15), five(2, 3, 4, 1, 5), five(3, 0, 9, 2, 10)}, keeps(2, 3, 1), "Late 0 1"},
		{"a stale read", []op{five(1, 1, 2, 1, 5), read(2, 3, 4, 0, 0)}, keeps(1), "Late 0 1"},
		{"a read of a write that was not called yet", []op{read(1, 1, 2, 1, 5), five(2, 3, 4, 1, 5)}, keeps(2), "Late 0 1"},
		{"one read is newer than the next", []op{five(1, 1, 9, 1, 5), read(2, 2, 3, 1, 5), read(3, 4, 5, 0, 0)}, keeps(1), "Late 1 2"},
		{"unanswered, and done before its call", []op{doubt(1, 3), five(2, 1, 2, 2, 10)}, keeps(1, 2), "Late 1 0"},
		{"unanswered, and read before its call", []op{doubt(1, 3), read(2, 1, 2, 1, 5)}, keeps(1), "Late 1 0"},
		{"unanswered and never done has no order", []op{doubt(1, 3), five(2, 1, 2, 1, 5)}, keeps(2), ""},

		// A Read is as late as possible, after rejections.
		{"a read that saw no rejection", []op{poor(1, 1, 2, 1), read(2, 3, 4, 0, 0)}, keeps(1), ""},
		{"two of them, as they came", []op{poor(1, 1, 2, 1), read(2, 5, 6, 0, 0), read(3, 3, 4, 0, 0)}, keeps(1), ""},
		{"one before the refusal, one behind it", []op{poor(1, 3, 4, 1), read(2, 5, 6, 0, 0), read(3, 1, 2, 0, 0)}, keeps(1), ""},
		{"a read before the rejection that it claims", []op{poor(1, 3, 4, 1), read(2, 1, 2, 1, 0)}, keeps(1), "Late 1 0"},
		{"a refusal is of no use behind a change", []op{five(1, 1, 2, 1, 5), poor(2, 3, 4, 2), read(3, 5, 6, 0, 0)}, keeps(1, 2), "Late 0 2"},
	} {
		got := ""
		if f := (execution{c.ops, c.journal}).certify(); f != nil {
			got = fmt.Sprintf("%s %d %d", name(f.Why), f.Op, f.Other)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.rule, got, c.want)
		}
	}
}

func name(w history.Why) string {
	return [...]string{"", "Backward", "Lost", "Taken", "Unasked", "Elsewhere", "Unsorted", "Untrue", "Late"}[w]
}

// TestFaultMessage: the message names the operation, its position and the answer of the model.
func TestFaultMessage(t *testing.T) {
	f := execution{[]op{five(7, 1, 2, 3, 6)}, []record{{types.Position{LSN: 3}, history.Key{Client: 7, Number: 1}}}}.certify()
	if f == nil || f.Key != (history.Key{Client: 7, Number: 1}) || f.Place.LSN != 3 {
		t.Fatalf("%+v", f)
	}
	for _, part := range []string{"client 7's op 1 at @3.0", "otherwise than the model", "from:5 ", "from:6 "} {
		if !strings.Contains(f.String(), part) {
			t.Errorf("%q is not in %q", part, f)
		}
	}
}

// TestRecorderNumbersCalls: keys count up from 1 per client, an unanswered call has no return,
// and the first answer of a key counts.
func TestRecorderNumbersCalls(t *testing.T) {
	r := history.NewRecorder[ask, answer](7)
	a := r.Call(1, history.Write, ask{amount: 1})
	b := r.Call(2, history.Read, ask{kind: look})
	c := r.Call(3, history.Write, ask{amount: 3})
	r.Return(c, 5, types.Position{LSN: 9}, answer{from: 3})
	r.Return(a, 4, types.Position{LSN: 8}, answer{from: 1})
	r.Return(a, 6, types.Position{LSN: 7}, answer{from: 2})
	want := []op{
		{Key: history.Key{Client: 7, Number: 1}, Call: 1, Return: 4, Place: types.Position{LSN: 8}, Kind: history.Write, Ask: ask{amount: 1}, Answer: answer{from: 1}},
		{Key: history.Key{Client: 7, Number: 2}, Call: 2, Return: history.Never, Kind: history.Read, Ask: ask{kind: look}},
		{Key: history.Key{Client: 7, Number: 3}, Call: 3, Return: 5, Place: types.Position{LSN: 9}, Kind: history.Write, Ask: ask{amount: 3}, Answer: answer{from: 3}},
	}
	for i, op := range r.Ops() {
		if op != want[i] || i != int(op.Number)-1 {
			t.Errorf("%d: %+v, want %+v", i, op, want[i])
		}
	}
	if len(r.Ops()) != len(want) || b.Number != 2 {
		t.Errorf("%d ops", len(r.Ops()))
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("another client's key was taken")
			}
		}()
		r.Return(history.Key{Client: 8, Number: 1}, 1, types.Position{}, answer{})
	}()
}
