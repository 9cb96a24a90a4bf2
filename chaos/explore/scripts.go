package explore

import (
	"fmt"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

// begin is the start time of every world.
const begin = types.Time(1_700_000_000_000)

func ask(key int, op event.Op, from, to string, amount, nonce uint64) wish {
	w := wish{key: key}
	w.r.Key.Text = fmt.Appendf(nil, "key%d", key)
	w.r.Item = event.Item{Op: op, From: types.Name{Text: []byte(from)}, To: types.Name{Text: []byte(to)}, Asset: types.Name{Text: []byte("EUR/2")},
		Amount: types.MinorUnits(amount), Nonce: types.Nonce(nonce)}
	return w
}

func issue(key int, to string, amount uint64) wish { return ask(key, event.Issue, "", to, amount, 0) }

func transfer(key int, from, to string, amount, nonce uint64) wish {
	return ask(key, event.Transfer, from, to, amount, nonce)
}

func burn(key int, from string, amount, nonce uint64) wish {
	return ask(key, event.Burn, from, "", amount, nonce)
}

func hold(key int, from string, amount, nonce uint64, until time.Duration) wish {
	w := ask(key, event.Hold, from, "", amount, nonce)
	w.r.ExpiresAt = begin.Add(until)
	return w
}

func capture(key, of int, from, to string, amount uint64) wish {
	w := ask(key, event.Capture, from, to, amount, 0)
	w.hold = of + 1
	return w
}

func freeze(key int, of string) wish {
	w := ask(key, event.Freeze, of, "", 0, 0)
	w.r.Asset = types.Name{}
	return w
}

func unfreeze(key int, of string) wish {
	w := freeze(key, of)
	w.r.Op = event.Unfreeze
	return w
}

// batch returns several requests under one key.
func batch(key int, atomic bool, items ...wish) wish {
	w := ask(key, event.Batch, "", "", 0, 0)
	w.r.Item, w.r.Atomic = event.Item{Op: event.Batch}, atomic
	for _, one := range items {
		w.r.Items = append(w.r.Items, one.r.Item)
	}
	return w
}

// named returns a request with a ref.
func (w wish) named(ref int) wish {
	w.r.Ref.Text = fmt.Appendf(nil, "ref%d", ref)
	return w
}

// others returns a request of the second tenant, under the name of another key.
func (w wish) others(name int) wish {
	w.r.Tenant, w.r.Key.Text = other.Tenant, fmt.Appendf(nil, "key%d", name)
	return w
}

func release(key, of int, from string) wish {
	w := ask(key, event.Release, from, "", 0, 0)
	w.hold = of + 1
	return w
}
