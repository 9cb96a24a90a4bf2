package flow_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/storage"
	"macronode/core/types"
)

// counter is a node beside a model of the requests that took effect.
type counter struct {
	*system
	requests, bytes uint64
	full            bool // the plane of usage has no room for another row
}

// do sends a command that has usage, and expects that it is counted if it takes effect.
func (c *counter) do(t *rapid.T, what string, in command.Command, takesEffect func(event.Reply) bool) event.Reply {
	r := &accounting.Request{Labels: accounting.NewRequestLabels("wallet", "post", what), In: uint64(rapid.IntRange(0, 3).Draw(t, "bytes"))}
	if c.full {
		r.Labels = accounting.NewRequestLabels("wallet", "post", fmt.Sprint("other-", c.serial))
	}
	in.Head().Usage = accounting.NewRequestUsage(r)
	before := c.frames
	if q, ok := in.(*event.Request); ok {
		c.step(q)
	} else {
		c.execute(in)
	}
	counts := takesEffect(c.reply) && !c.full
	if c.reply.Counted != counts {
		t.Fatalf("%s: %q, counted %v, want %v", what, c.reply.Problem.Code(), c.reply.Counted, counts)
	}
	if counts {
		c.requests, c.bytes = c.requests+1, c.bytes+r.In
	}
	if c.frames > before+1 {
		t.Fatalf("%s: %d frames", what, c.frames-before)
	}
	c.seen[fmt.Sprintf("%s %v", what, counts)] = true
	return c.reply
}

// sums returns the usage that the plane has.
func (c *counter) sums() (requests, bytes uint64) {
	c.view.Plane(types.PlaneAccounting).(*accounting.Plane).Open(1, func(r accounting.OpenRow) bool {
		switch string(r.Dimension) {
		case "requests":
			requests += r.Value
		case "bytes_in":
			bytes += r.Value
		}
		return true
	})
	return requests, bytes
}

// money is a request of the wallet.
func (c *counter) money(op event.Op, from, to string, amount uint64, nonce types.Nonce, key types.Name) *event.Request {
	in := &event.Request{Header: command.Header{Ticket: 1, Caller: keys[0].ID, Tenant: 1, Key: key}, Item: event.Item{Op: op, Asset: name(price.Asset), Amount: types.MinorUnits(amount), Nonce: nonce}}
	if from != "" {
		in.From = name(from)
	}
	if to != "" {
		in.To = name(to)
	}
	return in
}

// TestEffectsAreCountedInTheirFrame: a request counts in the frame of its effect, and only if it has one: no replay and no
// rejection counts. If the plane of usage has no room, the request is decided all the same.
func TestEffectsAreCountedInTheirFrame(t *testing.T) {
	seen := map[string]bool{}
	wanted := []string{"issue true", "replay false", "transfer true", "transfer false", "batch true", "batch false", "mixed true", "put true", "put false", "delete true", "delete false", "issue false"}
	checkUntilSeen(t, seen, wanted, func(t *rapid.T) {
		c := &counter{system: newFreeSystem(t, seen)}
		none := func(r event.Reply) bool { return r.Problem == event.None }
		never := func(event.Reply) bool { return false }
		var funds uint64
		nonce := types.Nonce(1)
		t.Repeat(map[string]func(*rapid.T){
			"issue": func(t *rapid.T) {
				key := c.key()
				in := c.money(event.Issue, "", "ann", 5, 0, key)
				in.Seal(nil)
				c.do(t, "issue", in, none)
				funds += 5
				again := c.money(event.Issue, "", "ann", 5, 0, key)
				again.Seal(nil)
				c.do(t, "replay", again, never)
			},
			"transfer": func(t *rapid.T) {
				in := c.money(event.Transfer, "ann", "bob", 3, nonce, c.key())
				in.Seal(nil)
				enough := funds >= 3
				r := c.do(t, "transfer", in, func(event.Reply) bool { return enough })
				if enough {
					funds -= 3
				}
				if r.Problem == event.None { // a rejection for lack of funds is recorded, and uses no nonce
					if enough {
						nonce++
					}
				}
			},
			"batch": func(t *rapid.T) {
				atomic := rapid.Bool().Draw(t, "atomic")
				in := &event.Request{Header: command.Header{Ticket: 1, Caller: keys[0].ID, Tenant: 1, Key: c.key()}, Item: event.Item{Op: event.Batch}, Atomic: atomic,
					Items: []event.Item{c.money(event.Issue, "", "ann", 1, 0, types.Name{}).Item, c.money(event.Transfer, "ann", "bob", 9, nonce, types.Name{}).Item}}
				in.Seal(nil)
				enough := funds+1 >= 9
				what := "batch"
				if !atomic {
					what = "mixed"
				}
				c.do(t, what, in, func(event.Reply) bool { return enough || !atomic })
				if enough {
					funds -= 8
					nonce++
				} else if !atomic {
					funds++
				}
			},
			"put": func(t *rapid.T) {
				object := rapid.IntRange(0, 2).Draw(t, "object")
				put := &storage.Put{Header: c.head(), Bucket: storage.Bucket("photos"), Address: address(object), Size: 1, File: storage.File(c.serial)}
				put.Seal()
				c.do(t, "put", put, none) // also if it is stored already: the answer is recorded
				c.stored[fmt.Sprint(object)] = 1
			},
			"delete": func(t *rapid.T) {
				object := rapid.IntRange(0, 2).Draw(t, "object")
				del := &storage.Delete{Header: c.head(), Bucket: storage.Bucket("photos"), Address: address(object)}
				del.Seal()
				has := c.stored[fmt.Sprint(object)] > 0
				c.do(t, "delete", del, func(event.Reply) bool { return has })
				c.stored[fmt.Sprint(object)] = 0
			},
			"fill": func(t *rapid.T) {
				if c.full || rapid.IntRange(0, 9).Draw(t, "whether") > 0 {
					return
				}
				for i := 0; ; i++ {
					in := c.money(event.Issue, "", "bob", 1, 0, c.key())
					in.Seal(nil)
					in.Usage = accounting.NewRequestUsage(&accounting.Request{Labels: accounting.NewRequestLabels("wallet", "post", fmt.Sprint("full-", i))})
					if c.step(in); !c.reply.Counted {
						break
					}
					c.requests++
				}
				c.full = true
			},
			"": func(t *rapid.T) {
				if requests, bytes := c.sums(); requests != c.requests || bytes != c.bytes {
					t.Fatalf("%d requests of %d bytes are counted, want %d of %d", requests, bytes, c.requests, c.bytes)
				}
			},
		})
	})
}

// newFreeSystem returns a system in which objects are free.
func newFreeSystem(t *rapid.T, seen map[string]bool) *system {
	was := price
	price = flow.Price{Asset: was.Asset, Payer: was.Payer, Beneficiary: was.Beneficiary}
	defer func() { price = was }()
	return newSystem(t, seen)
}

func address(object int) storage.Address { return storage.Address{byte(object + 1)} }
