package history_test

import (
	"macronode/core/types"
	"macronode/models/history"
)

// clerk is one client of a drawn execution.
type clerk struct {
	*history.Recorder[ask, answer]
	key    history.Key
	asking ask
	at     types.Position
	answer answer
	state  uint8 // idle, asked, done
}

const (
	idle uint8 = iota
	asked
	done
)

// play is an execution while it is drawn.
type play struct {
	dice    *types.Rand
	truth   bank
	at      types.Position // the last position of the journal
	moved   types.Position // the last one that changed something
	journal []record
}

func (p *play) pick(n int) int { return int(p.dice.Uint64n(uint64(n))) }

// draw runs clients against a real, serial bank; the dice decide when they call, wait and leave.
// The result is correct. Some calls without an answer took effect.
func draw(dice *types.Rand) execution {
	p := play{dice: dice, at: types.Position{LSN: 1}}
	clerks := make([]clerk, 2+p.pick(4))
	for i := range clerks {
		clerks[i].Recorder = history.NewRecorder[ask, answer](uint32(i + 1))
	}
	left, leave := 4+p.pick(37), p.pick(5)
	var now types.Instant
	for busy := 0; left > 0 || busy > 0; {
		now += types.Instant(p.pick(2)) // some at the same instant
		c := &clerks[p.pick(len(clerks))]
		switch {
		case c.state == idle && left == 0:
		case c.state == idle:
			p.call(c, now)
			left--
			busy++
		case leave > 0 && p.pick(12) == 0:
			c.state = idle
			leave--
			busy--
		case c.state == asked:
			p.do(c)
		default:
			c.Return(c.key, now, c.at, c.answer)
			c.state = idle
			busy--
		}
	}
	s := execution{journal: p.journal}
	for i := range clerks {
		s.ops = append(s.ops, clerks[i].Ops()...)
	}
	return s
}

func (p *play) call(c *clerk, now types.Instant) {
	c.state, c.asking = asked, p.wish()
	kind := history.Write
	if c.asking.kind == look {
		kind = history.Read
	}
	c.key = c.Call(now, kind, c.asking)
}

// do takes effect. A read claims the last position of the journal, or the last that changed
// something.
func (p *play) do(c *clerk) {
	if p.pick(4) == 0 {
		p.at = types.Position{LSN: p.at.LSN + 1} // a frame without an entry
	}
	if c.state = done; c.asking.kind == look {
		if c.at = p.at; p.pick(2) == 0 {
			c.at = p.moved
		}
		c.answer, _ = p.truth.Step(p.at, &c.asking)
		return
	}
	if p.at.Index++; p.pick(3) > 0 {
		p.at = types.Position{LSN: p.at.LSN + 1}
	}
	c.at = p.at
	p.journal = append(p.journal, record{Place: p.at, Key: c.key})
	var changed bool
	if c.answer, changed = p.truth.Step(p.at, &c.asking); changed {
		p.moved = p.at
	}
}

// wish draws mostly valid operations, and as many reads.
func (p *play) wish() ask {
	a := ask{kind: uint8(p.pick(3)), from: uint8(p.pick(accounts)), amount: uint32(1 + p.pick(4))}
	a.to = a.from
	if a.kind == pay {
		a.to = (a.from + 1 + uint8(p.pick(accounts-1))) % accounts
		a.nonce = p.truth[a.from].nonce + 1
		if p.pick(8) == 0 {
			a.nonce += uint16(p.pick(2)) * 2
		}
	}
	return a
}
