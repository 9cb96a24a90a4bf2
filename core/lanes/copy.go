package lanes

import "macronode/core/types"

// Hash identifies what m will do: its lanes, tenants and retries. Counters are not in it, nor the order in which free places are taken.
func (m *Machine) Hash() types.Hash64 {
	h := m.keys.Hash().Mix(uint64(m.known.Hash()))
	for p := range m.keys.Capacity() {
		if k, _, taken := m.keys.At(uint32(p)); taken {
			h = m.lanes[p].hashInto(k.HashInto(h.Mix(uint64(p))))
		}
	}
	for at := range m.known.Capacity() {
		if t, _, taken := m.known.At(uint32(at)); taken {
			h = m.tenants[at].hashInto(t.HashInto(h.Mix(uint64(at))))
		}
	}
	h = m.dice.HashInto(m.owed.HashInto(h)).Mix(uint64(m.ring.first) | uint64(m.ring.last)<<32).Mix(uint64(m.inflight) | uint64(m.commands)<<32)
	h = h.MixBool(m.again).MixBool(m.stopped).MixBool(m.several).MixBool(m.open).Mix(uint64(m.leaving))
	return m.failed.HashInto(h).Mix(uint64(m.failures)).Mix(uint64(m.probes)).Mix(uint64(m.probeAt)).Mix(uint64(m.refusals)).Mix(uint64(m.commandAt))
}

func (l *lane) hashInto(h types.Hash64) types.Hash64 {
	h = h.Mix(uint64(l.tenant)).Mix(l.cursor).Mix(l.acked).Mix(l.head).Mix(uint64(l.stage)).Mix(uint64(l.tries)).Mix(uint64(l.due))
	h = h.MixBool(l.permanent).Mix(uint64(l.since)).Mix(uint64(l.reason)).Mix(uint64(l.status))
	return h.MixBool(l.blocked).MixBool(l.owed).MixBool(l.asked).MixBool(l.leaving).Mix(uint64(l.prev)).Mix(uint64(l.next))
}

func (t *tenant) hashInto(h types.Hash64) types.Hash64 {
	return h.Mix(uint64(t.lanes)).Mix(uint64(t.out)).Mix(uint64(t.first)).Mix(uint64(t.last)).Mix(uint64(t.credit)).MixBool(t.turn).Mix(uint64(t.prev)).Mix(uint64(t.next))
}

// CopyTo overwrites dst, reusing its memory.
func (m *Machine) CopyTo(dst *Machine) {
	was := *dst
	*dst = *m
	dst.keys, dst.known, dst.owed, dst.retries = was.keys, was.known, was.owed, was.retries
	m.keys.CopyTo(&dst.keys)
	m.known.CopyTo(&dst.known)
	m.owed.CopyTo(&dst.owed)
	m.retries.CopyTo(&dst.retries, m.limits.Active)
	dst.lanes, dst.tenants = append(was.lanes[:0], m.lanes...), append(was.tenants[:0], m.tenants...)
}
