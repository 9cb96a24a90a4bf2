// Package counter is a small durable plane: named counters of a tenant that only grow. It shows what
// a plane implements and gets for it: idempotency keys with byte-identical answers, authorization,
// snapshots, the wait for durability and recovery. docs/how-to/add-a-plane.md explains it step by
// step. The product does not link it.
package counter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"macronode/core/access"
	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/table"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// MaxName is the length of a counter's name in bytes.
const MaxName = 64

// kindAdded is the kind of the plane's only record. Its payload: delta 8 · value 8 · name.
const kindAdded = 0

// Add adds Delta to the counter Name. It implements command.Command.
type Add struct {
	command.Header
	Name  types.Name
	Delta uint64 // 1 or more
}

// Plane is the plane of examples.
func (*Add) Plane() types.Plane { return types.PlaneExample }

// ValidateFields returns why a is invalid.
func (a *Add) ValidateFields() error {
	if a.Delta == 0 || len(a.Name.Text) == 0 || len(a.Name.Text) > MaxName {
		return fmt.Errorf("counter: name must have 1 to %d bytes, delta must be 1 or more", MaxName)
	}
	return nil
}

// Validate returns why the texts of a are invalid. It is called where they are parsed.
func (a *Add) Validate() error {
	if err := errors.Join(types.CheckKey(a.Key.Text), a.ValidateFields()); err != nil {
		return err
	}
	if types.CheckKey(a.Name.Text) != nil {
		return errors.New("counter: name must have only A-Z a-z 0-9 _ : . -")
	}
	return nil
}

// Seal computes the digests of a, outside of the step.
func (a *Add) Seal() {
	a.Key.ID, a.Name.ID = digest.Name(a.Key.Text), digest.Name(a.Name.Text)
	a.Hash = digest.RequestHash(binary.LittleEndian.AppendUint64(append([]byte(nil), a.Name.Text...), a.Delta))
}

// Limits of a Plane: counters of all tenants, counters of one tenant, and tenants.
type Limits struct{ Counters, TenantCounters, Tenants int }

// Spec returns the plane for the list of planes of state.Limits.
func Spec(l Limits) plane.Spec {
	return plane.Spec{ID: types.PlaneExample, New: func(seed types.Hash64) plane.Plane { return New(l, seed) },
		Bytes: table.Bytes[key, value](l.Counters) + table.Bytes[types.Tenant, value](l.Tenants) + 2*table.UndoBytes[value](1)}
}

// Plane is the state of the plane.
type Plane struct {
	plane.NoRefs
	quota    int // counters of one tenant
	counters table.Table[key, value]
	tenants  table.Table[types.Tenant, value] // the number of counters of each
	payload  [16 + MaxName]byte               // scratch of Decide
}

var _ plane.Plane = (*Plane)(nil)

type key struct {
	tenant types.Tenant
	name   types.NameHash
}

func (k key) HashInto(h types.Hash64) types.Hash64 { return k.name.HashInto(k.tenant.HashInto(h)) }

type value uint64

func (v value) HashInto(h types.Hash64) types.Hash64 { return h.Mix(uint64(v)) }

// New returns a plane without counters.
func New(l Limits, seed types.Hash64) *Plane {
	p := &Plane{quota: l.TenantCounters, counters: table.New[key, value](l.Counters, seed), tenants: table.New[types.Tenant, value](l.Tenants, seed)}
	p.counters.ReserveUndo(1)
	p.tenants.ReserveUndo(1)
	return p
}

// ID is that of examples.
func (*Plane) ID() types.Plane { return types.PlaneExample }

// Value returns the value of a counter; 0 if it does not exist.
func (p *Plane) Value(t types.Tenant, name types.NameHash) uint64 {
	v, _ := p.counters.Get(key{t, name})
	return uint64(v)
}

// Len returns the number of counters of all tenants. Quota returns the number of counters of a tenant,
// and the highest permitted.
func (p *Plane) Len() int { return p.counters.Len() }
func (p *Plane) Quota(t types.Tenant) (used, limit int) {
	n, _ := p.tenants.Get(t)
	return int(n), p.quota
}

// hasRoom reports whether the tables have room for a new counter. A journal may have more counters of a
// tenant than its quota permits now.
func (p *Plane) hasRoom(t types.Tenant) bool {
	_, known := p.tenants.Find(t)
	return p.counters.Room() > 0 && (known || p.tenants.Room() > 0)
}

// put sets a counter.
func (p *Plane) put(k key, v value) {
	if _, known := p.counters.Find(k); !known {
		n, _ := p.tenants.Get(k.tenant)
		p.tenants.Put(k.tenant, n+1)
	}
	p.counters.Put(k, v)
}

// Authorized requires the scope issue.
func (*Plane) Authorized(at types.Time, keys *access.Keys, c command.Command) bool {
	return keys.Allows(at, c.Head().Caller, c.Head().Tenant, event.ScopeIssue)
}

// Cost is one idempotency key and two records: the outcome and the eviction of old keys.
func (*Plane) Cost(command.Command) command.Cost {
	return command.Cost{Rows: 1, Bytes: 2 * types.MaxRecord}
}

// Decide adds, or rejects a sum above the largest value. That rejection is stored: a retry cannot
// succeed. A quota or a full table is reported without a record: each may be enlarged.
func (p *Plane) Decide(_ types.Time, c command.Command, f plane.Frame, reply *event.Reply) {
	in, r := c.(*Add), f.Record()
	*r = record.Record{Kind: record.PlaneKind(types.PlaneExample, kindAdded), Tenant: in.Tenant, Caller: in.Caller, Key: in.Key, Hash: in.Hash}
	k := key{in.Tenant, in.Name.ID}
	was, known := p.counters.Get(k)
	sum := uint64(was) + in.Delta
	used, quota := p.Quota(in.Tenant)
	switch {
	case !known && used >= quota:
		reply.Problem = event.QuotaExceeded
		return
	case !known && !p.hasRoom(in.Tenant):
		reply.Problem = event.CapacityExceeded
		return
	case sum < in.Delta:
		r.Problem = event.AmountLimitExceeded
	default:
		r.Payload = append(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(p.payload[:0], in.Delta), sum), in.Name.Text...)
	}
	reply.Position = f.Add()
}

// added is the payload of a record.
type added struct {
	delta, value uint64
	name         []byte
}

func parse(b []byte) (a added, ok bool) {
	if len(b) <= 16 || len(b) > 16+MaxName {
		return a, false
	}
	return added{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), b[16:]}, true
}

// ReadAdded returns the counter that a record sets, and its value; false if r is not such a record.
func ReadAdded(r *record.Record) (name []byte, value uint64, ok bool) {
	a, ok := parse(r.Payload)
	return a.name, a.value, ok && r.Kind == record.PlaneKind(types.PlaneExample, kindAdded)
}

// HasTimers is false: nothing here depends on time.
func (*Plane) HasTimers() bool                        { return false }
func (*Plane) Expire(types.Time, *record.Record) bool { return false }

// Fits reports whether r continues its counter.
func (p *Plane) Fits(r *record.Record) bool {
	a, ok := parse(r.Payload)
	if !ok || r.Kind != record.PlaneKind(types.PlaneExample, kindAdded) {
		return false
	}
	was, known := p.counters.Get(key{r.Tenant, digest.Name(a.name)})
	return (known || p.hasRoom(r.Tenant)) && a.delta > 0 && a.value-a.delta == uint64(was) && a.value >= a.delta
}

// Apply sets the counter to the value of the record.
func (p *Plane) Apply(_ types.Time, _ types.TxID, r *record.Record) {
	a, ok := parse(r.Payload)
	types.Assert(ok, "counter: applies a record that does not fit")
	p.put(key{r.Tenant, digest.Name(a.name)}, value(a.value))
}

// Savepoint, Undo and Commit are those of the tables.
func (p *Plane) Savepoint() { p.counters.Savepoint(); p.tenants.Savepoint() }
func (p *Plane) Undo()      { p.counters.Undo(); p.tenants.Undo() }
func (p *Plane) Commit()    { p.counters.Commit(); p.tenants.Commit() }

const rowCounter = 1 // tenant 4 · name 16 · value 8

// Dump passes each counter to row.
func (p *Plane) Dump(row func(kind uint8, b []byte)) {
	for place := range p.counters.Len() {
		k, v := p.counters.Row(uint32(place))
		b := append(binary.LittleEndian.AppendUint32(nil, uint32(k.tenant)), k.name[:]...)
		row(rowCounter, binary.LittleEndian.AppendUint64(b, uint64(v)))
	}
}

// Load adds a row of Dump.
func (p *Plane) Load(kind uint8, b []byte) error {
	if kind != rowCounter || len(b) != 4+16+8 {
		return plane.ErrRow
	}
	k := key{types.Tenant(binary.LittleEndian.Uint32(b)), types.NameHash(b[4:20])}
	v := value(binary.LittleEndian.Uint64(b[20:]))
	if _, known := p.counters.Find(k); known || v == 0 {
		return plane.ErrRow
	}
	if !p.hasRoom(k.tenant) {
		return plane.ErrRoom
	}
	p.put(k, v)
	return nil
}

// Hash identifies the counters. The numbers of the tenants follow from them.
func (p *Plane) Hash() types.Hash64 { return p.counters.Hash() }

// CopyTo overwrites dst, or returns a new copy.
func (p *Plane) CopyTo(dst plane.Plane) plane.Plane {
	d, ok := dst.(*Plane)
	if !ok {
		d = new(Plane)
	}
	d.quota = p.quota
	p.counters.CopyTo(&d.counters)
	p.tenants.CopyTo(&d.tenants)
	return d
}

// Check returns what is wrong with the tables.
func (p *Plane) Check() error {
	sum := 0
	for place := range p.tenants.Len() {
		_, n := p.tenants.Row(uint32(place))
		sum += int(n)
	}
	if sum != p.counters.Len() {
		return fmt.Errorf("counter: %d counters, %d of all tenants", p.counters.Len(), sum)
	}
	return errors.Join(p.counters.Check(), p.tenants.Check())
}

// Render appends the answer of a record.
func (*Plane) Render(to []byte, s *record.Sealed, index uint16) (answer []byte, status int, owner types.Tenant, err error) {
	var r record.Record
	if _, err = record.Read(s.Body, index, &r); err != nil {
		return to, 0, 0, err
	}
	if r.Problem != event.None {
		answer, status = receipt.Rejection(to, s, index, &r)
		return answer, status, r.Tenant, nil
	}
	a, ok := parse(r.Payload)
	if !ok {
		return to, 0, 0, record.ErrFrame
	}
	to = append(append(strconv.AppendQuote(append(to, `{"name":`...), string(a.name)), `,"value":"`...), strconv.FormatUint(a.value, 10)...)
	return append(to, `"}`...), event.None.Status(), r.Tenant, nil
}
