package sim

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"macronode/chaos/charges"
	"macronode/core/record"
	"macronode/core/types"
)

// charged is the journal of a run with a prepaid tenant, and what its requests know.
type charged struct {
	charges.Config
	frames  []record.Sealed
	history []charges.Request
}

// chargedRun returns a run in which something of each kind is recorded.
func chargedRun(t *testing.T) charged {
	t.Helper()
	for seed := uint64(1); seed < 4000; seed++ {
		if prepaidOdds(seed) == 0 {
			continue
		}
		w := New(Choices(seed, 500))
		if err := w.Run(); err != nil {
			t.Fatal(err)
		}
		p := w.usage.prepaid
		if p.room != fewLines && len(p.history) > 8 && w.Saw["prepaid: events are paid"] > 0 && w.Saw["usage is sealed"] > 2 && w.Saw["prepaid: a payment in part"] > 0 {
			return charged{charges.Config{Lists: priceLists[:], Payer: prepaidPayer, Beneficiary: prepaidEarner}, w.testified.frames, p.history}
		}
	}
	t.Fatal("no run has something of each kind")
	return charged{}
}

// certified returns what the certificate says, "" if all is well.
func (c *charged) certified() string {
	j := charges.New(c.Config)
	for i := range c.frames {
		if err := j.Frame(&c.frames[i]); err != nil {
			return err.Error()
		}
	}
	if err := j.Explain(c.history); err != nil {
		return err.Error()
	}
	if err := j.Settled(priceLists[len(priceLists)-1]); err != nil {
		return err.Error()
	}
	return ""
}

// spoilt changes the payload of the first record of a kind of the accounting plane of the tenant that a change accepts.
func (c *charged) spoilt(kind int, change func(payload []byte) bool) charged {
	frames := slices.Clone(c.frames)
	for i := range frames {
		body := bytes.Clone(frames[i].Body)
		h, rest, _ := record.Open(body)
		var r record.Record
		for range h.Count {
			rest, _ = record.Next(rest, &r)
			if is, ok := isUsage(&r); ok && is == kind && r.Tenant == usageTenant && change(r.Payload) {
				frames[i].Body = body
				return charged{c.Config, frames, c.history}
			}
		}
	}
	return *c
}

func add(b []byte) bool {
	binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)+1)
	return true
}

// withUnitInNoLine changes the first usage that has a price.
func (c *charged) withUnitInNoLine(t *testing.T) charged {
	for n := 0; ; n++ {
		skip := n
		is := c.spoilt(recordMetered, func(b []byte) bool {
			if b[0]&prepaidFlag > 0 {
				skip--
			}
			return skip < 0 && add(end(b, 16))
		})
		switch why := is.certified(); {
		case why == "":
			t.Fatal("no usage has a price")
		case !strings.Contains(why, "C6"): // usage without a price is in slices alone
			return is
		}
	}
}

// end returns the last bytes of a payload.
func end(b []byte, n int) []byte { return b[len(b)-n:] }

// TestChargesAreCertified: the chain from each request to its payment is certified, and no change of it is.
func TestChargesAreCertified(t *testing.T) {
	c := chargedRun(t)
	if why := c.certified(); why != "" {
		t.Fatal(why)
	}
	var name []byte // of the last event
	c.spoilt(1, func(b []byte) bool {
		name = bytes.Clone(end(b, 40)[:16])
		return false
	})
	request := func(change func(all []charges.Request) []charges.Request) charged {
		return charged{c.Config, c.frames, change(slices.Clone(c.history))}
	}
	config := func(change func(*charges.Config)) charged {
		is := c
		change(&is.Config)
		return is
	}
	for _, s := range []struct {
		what string
		is   charged
		rule string
	}{
		{"an event is recorded again", c.spoilt(1, func(b []byte) bool {
			same := bytes.Equal(end(b, 40)[:16], name)
			copy(end(b, 40), name)
			return !same
		}), "C1"},
		{"an effect has no usage", config(func(c *charges.Config) { c.MetersEffects = true }), "C2"},
		{"a unit is in no line", c.withUnitInNoLine(t), "C3"},
		{"a line has another unit", c.spoilt(recordLines, func(b []byte) bool { return add(b[32+24:]) }), "C3"},
		{"a line has paid more than its price", c.spoilt(recordLines, func(b []byte) bool { return add(b[32+41:]) }), "C5"},
		{"a line has paid less than before", c.spoilt(recordLines, func(b []byte) bool {
			was := binary.LittleEndian.Uint64(b[32+40:])
			binary.LittleEndian.PutUint64(b[32+40:], was/2)
			return was > 1
		}), "C5"},
		{"another account is paid", config(func(c *charges.Config) { c.Beneficiary = "else" }), "C4"},
		{"lines are of another list", config(func(c *charges.Config) { c.Lists = c.Lists[1:] }), "C3"},
		{"a slice has other usage", c.spoilt(recordMetered, func(b []byte) bool { return add(end(b, 8)) }), "C6"},
		{"a slice follows another one", c.spoilt(recordSlice, func(b []byte) bool { return add(b[33:]) }), "cannot be read"},
		{"a request is not counted", request(func(all []charges.Request) []charges.Request { return append(all, all[0]) }), "C7"},
		{"a request was not served", request(func(all []charges.Request) []charges.Request { return all[1:] }), "C7"},
		{"a request is counted in another frame", request(func(all []charges.Request) []charges.Request {
			all[0].Frame++
			return all
		}), "C7"},
		{"a request is postpaid", request(func(all []charges.Request) []charges.Request {
			all[0].Prepaid = !all[0].Prepaid
			return all
		}), "C7"},
		{"a frame is missing", charged{c.Config, slices.Delete(slices.Clone(c.frames), 9, 10), c.history}, "follows"},
	} {
		if why := s.is.certified(); !strings.Contains(why, s.rule) || s.rule == "" {
			t.Errorf("%s: %q, want %s", s.what, why, s.rule)
		}
	}
	owes := false
	for n := range c.frames {
		cut := charged{c.Config, c.frames[:n], slices.DeleteFunc(slices.Clone(c.history), func(r charges.Request) bool { return r.Frame > types.LSN(n) })}
		j := charges.New(cut.Config)
		for i := range cut.frames {
			if err := j.Frame(&cut.frames[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Explain(cut.history); err != nil {
			t.Fatal(err)
		}
		owes = owes || j.Settled(priceLists[0]) != nil
	}
	if !owes {
		t.Error("C8: no part of the journal has arrears")
	}
}
