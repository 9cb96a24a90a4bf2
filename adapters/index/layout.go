package index

import (
	"encoding/binary"
	"math"

	"macronode/core/event"
	"macronode/core/types"
)

// A family is a view: the first byte of its keys.
type family byte

const (
	ofMark    family = iota + 1 // the mark of the tables: one key
	ofKey                       // idempotency keys
	ofRef                       // refs
	ofEntry                     // movements of an account that set its balance
	ofHeld                      // movements that set its held amount, or freeze it
	ofChange                    // movements of a tenant
	ofAccount                   // accounts and their assets
	ofAsset                     // assets
	ofHold                      // holds, as they were opened
	ofHolder                    // whose they are
	ofEnd                       // what became of them
	ofObject                    // objects by bucket and name
	ofBucket                    // buckets by name
	ofUpload                    // uploads in parts
	ofSlice                     // slices of usage
	ofPlane                     // rows of a View
	ofSliceAt                   // windows of slices by seq
	ofStream                    // streams of slices and movements
)

const (
	version    = 3
	idSize     = 16
	tenantSize = 4
	nameSize   = idSize + tenantSize // an account, a key or a ref of a tenant
	bucketSize = 7                   // of the time of a key
	eraSize    = 4
	eraBits    = eras(22) // one era is 4 million movements
	seqSize    = 8

	entrySize = 1 + eraSize + nameSize + idSize + seqSize
	heldSize  = 1 + nameSize + idSize + seqSize
)

// The layouts of the keys. Keys of one owner have the same group: the part of the key by which
// the tail finds them.

func markKey(b []byte) []byte { return append(b, byte(ofMark)) }

// The youngest bucket is first, so that the mark and new keys are adjacent, and expired keys are
// one range at the end.
func keyKey(b []byte, bucket uint64, t types.Tenant, id types.NameHash) []byte {
	types.Assert(bucket < 1<<(8*bucketSize), "index: a time after the last bucket")
	b = binary.BigEndian.AppendUint64(b, uint64(ofKey)<<56|^bucket&(1<<56-1))
	return name(b, t, id)
}

func refKey(b []byte, t types.Tenant, id types.NameHash) []byte {
	return name(append(b, byte(ofRef)), t, id)
}

func entryKey(b []byte, era uint32, t types.Tenant, account, asset types.NameHash, seq types.Seq) []byte {
	b = name(binary.BigEndian.AppendUint32(append(b, byte(ofEntry)), era), t, account)
	return binary.BigEndian.AppendUint64(append(b, asset[:]...), uint64(seq))
}

func heldKey(b []byte, t types.Tenant, account, asset types.NameHash, seq types.Seq) []byte {
	b = name(append(b, byte(ofHeld)), t, account)
	return binary.BigEndian.AppendUint64(append(b, asset[:]...), uint64(seq))
}

func changeKey(b []byte, t types.Tenant, seq types.Seq) []byte {
	b = binary.BigEndian.AppendUint32(append(b, byte(ofChange)), uint32(t))
	return binary.BigEndian.AppendUint64(b, uint64(seq))
}

func accountKey(b []byte, t types.Tenant, account, asset []byte) []byte {
	b = binary.BigEndian.AppendUint32(append(b, byte(ofAccount)), uint32(t))
	return append(append(append(b, account...), 0), asset...)
}

func assetKey(b []byte, t types.Tenant, asset []byte) []byte {
	return append(binary.BigEndian.AppendUint32(append(b, byte(ofAsset)), uint32(t)), asset...)
}

func holdKey(b []byte, t types.Tenant, id types.TxID) []byte {
	return append(binary.BigEndian.AppendUint32(append(b, byte(ofHold)), uint32(t)), id[:]...)
}

func holderKey(b []byte, t types.Tenant, account types.NameHash, id types.TxID) []byte {
	return append(name(append(b, byte(ofHolder)), t, account), id[:]...)
}

func endKey(b []byte, t types.Tenant, id types.TxID) []byte {
	return append(binary.BigEndian.AppendUint32(append(b, byte(ofEnd)), uint32(t)), id[:]...)
}

func name(b []byte, t types.Tenant, id types.NameHash) []byte {
	return binary.BigEndian.AppendUint32(append(b, id[:]...), uint32(t))
}

// group returns the part of a key that identifies its owner.
func group(key []byte) []byte {
	switch family(key[0]) {
	case ofKey:
		return key[1+bucketSize:]
	case ofEntry:
		return key[1+eraSize : 1+eraSize+nameSize]
	case ofHeld, ofHolder, ofObject:
		return key[1 : 1+nameSize]
	case ofChange, ofAccount, ofAsset, ofBucket, ofUpload, ofSlice:
		return key[1 : 1+tenantSize]
	case ofPlane:
		return key[1 : 1+1+tenantSize]
	case ofStream: // they are few, and listed together
		return key[1:1]
	default:
		return key[1:]
	}
}

// shelf returns the number of the table for a key. Later keys of a shelf are among its earlier
// ones or after them, and touch no other shelf.
func shelf(key []byte) uint64 {
	switch of := family(key[0]); of {
	case ofMark: // sorts before the youngest bucket
		return uint64(ofMark) << 56
	case ofKey:
		return binary.BigEndian.Uint64(key)
	case ofEntry:
		return uint64(of)<<56 | uint64(binary.BigEndian.Uint32(key[1:]))
	default:
		return uint64(of) << 56
	}
}

// eras is the number of bits of a seq below its era.
type eras uint8

func (e eras) of(seq types.Seq) uint32 { return uint32(seq >> e) }

// last returns the last seq of an era.
func (e eras) last(era uint32) types.Seq { return types.Seq(uint64(era)+1)<<e - 1 }

// seqOf returns the seq at the end of an entry's or a change's key, assetOf the asset before it.
func seqOf(key []byte) types.Seq {
	return types.Seq(binary.BigEndian.Uint64(key[len(key)-seqSize:]))
}

func assetOf(key []byte) types.NameHash {
	return types.NameHash(key[len(key)-seqSize-idSize : len(key)-seqSize])
}

// appendPlace appends the position of a record without its journal, which follows from the LSN.
func appendPlace(b []byte, p types.Position) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(p.LSN)), uint64(p.Index))
}

func appendAmount(b []byte, a types.Amount) []byte {
	if a.Hi > 0 {
		return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(append(b, 16), a.Hi), a.Lo)
	}
	at := len(b)
	b = append(b, 0)
	for lo := a.Lo; lo > 0; lo >>= 8 {
		b = append(b, byte(lo))
		b[at]++
	}
	return b
}

func appendText(b, text []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// values decodes the values. Its texts are views of its input.
type values struct {
	b   []byte
	bad bool
}

func (v *values) take(n int) []byte {
	if n > len(v.b) {
		v.b, v.bad = nil, true
		return nil
	}
	p := v.b[:n:n]
	v.b = v.b[n:]
	return p
}

func (v *values) one() byte {
	if p := v.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (v *values) uvar(most uint64) uint64 {
	n, size := binary.Uvarint(v.b)
	if size <= 0 || size > 1 && v.b[size-1] == 0 || n > most {
		v.b, v.bad = nil, true
		return 0
	}
	v.b = v.b[size:]
	return n
}

func (v *values) text(most int) []byte { return v.take(int(v.uvar(uint64(most)))) }

func (v *values) place() types.Position {
	return types.Position{LSN: types.LSN(v.uvar(types.MaxLSN)), Index: uint16(v.uvar(math.MaxUint16))}
}

func (v *values) time() types.Time { return types.Time(v.uvar(math.MaxInt64)) }

func (v *values) amount() (a types.Amount) {
	switch n := v.one(); {
	case n == 16:
		if p := v.take(16); p != nil {
			a = types.Amount{Hi: binary.BigEndian.Uint64(p), Lo: binary.BigEndian.Uint64(p[8:])}
		}
		v.bad = v.bad || a.Hi == 0
	case n <= 8:
		p := v.take(int(n))
		for i := range p {
			a.Lo |= uint64(p[i]) << (8 * i)
		}
		v.bad = v.bad || n > 0 && (p == nil || p[n-1] == 0)
	default:
		v.b, v.bad = nil, true
	}
	return a
}

// whole reports whether the input was decoded completely and correctly.
func (v *values) whole() bool { return !v.bad && len(v.b) == 0 }

// A seen is the value of a key: request hash, position, time.
type seen struct {
	asked types.RequestHash
	place types.Position
	at    types.Time
}

func (s *seen) put(b []byte) []byte {
	return binary.AppendUvarint(appendPlace(append(b, s.asked[:]...), s.place), uint64(s.at))
}

func (s *seen) read(b []byte) bool {
	v := values{b: b}
	copy(s.asked[:], v.take(len(s.asked)))
	s.place, s.at = v.place(), v.time()
	return v.whole()
}

// A change is the value of a movement of a tenant.
type change struct {
	place types.Position
	at    types.Time
}

func (c *change) put(b []byte) []byte {
	return binary.AppendUvarint(appendPlace(b, c.place), uint64(c.at))
}

func (c *change) read(b []byte) bool {
	v := values{b: b}
	c.place, c.at = v.place(), v.time()
	return v.whole()
}

// sets has the fields that an entry sets.
type sets byte

const (
	credit sets = 1 << iota
	setsBalance
	setsHeld
	hasHold
	hasNonce
	hasRef
	hasMemo
	hidden // another entry of the same seq, which sets the balance, is shown
)

// An entry is the value of a movement from the side of one account. An entry lacks the fields of
// an event.Entry that other entries set: the balance if it only sets the held amount, and the
// reverse.
type entry struct {
	sets    sets
	op      event.Op
	place   types.Position
	at      types.Time
	amount  types.Amount
	balance types.Amount
	held    types.Amount
	nonce   types.Nonce
	hold    types.TxID
	asset   []byte
	other   []byte
	ref     []byte
	memo    []byte
}

func (e *entry) put(b []byte) []byte {
	b = appendPlace(append(b, byte(e.sets), byte(e.op)), e.place)
	b = binary.AppendUvarint(b, uint64(e.at))
	b = appendAmount(b, e.amount)
	if e.sets&setsBalance != 0 {
		b = appendAmount(b, e.balance)
	}
	if e.sets&setsHeld != 0 {
		b = appendAmount(b, e.held)
	}
	if e.sets&hasNonce != 0 {
		b = binary.AppendUvarint(b, uint64(e.nonce))
	}
	if e.sets&hasHold != 0 {
		b = append(b, e.hold[:]...)
	}
	b = appendText(appendText(b, e.asset), e.other)
	if e.sets&hasRef != 0 {
		b = appendText(b, e.ref)
	}
	if e.sets&hasMemo != 0 {
		b = appendText(b, e.memo)
	}
	return b
}

func (e *entry) read(b []byte) bool {
	v := values{b: b}
	*e = entry{sets: sets(v.one()), op: event.Op(v.one())}
	e.place, e.at, e.amount = v.place(), v.time(), v.amount()
	if e.sets&setsBalance != 0 {
		e.balance = v.amount()
	}
	if e.sets&setsHeld != 0 {
		e.held = v.amount()
	}
	if e.sets&hasNonce != 0 {
		e.nonce = types.Nonce(v.uvar(math.MaxUint64))
	}
	if e.sets&hasHold != 0 {
		copy(e.hold[:], v.take(len(e.hold)))
	}
	e.asset, e.other = v.text(types.MaxAsset), v.text(types.MaxAccount)
	if e.sets&hasRef != 0 {
		e.ref = v.text(types.MaxKey)
	}
	if e.sets&hasMemo != 0 {
		e.memo = v.text(types.MaxMemo)
	}
	return v.whole()
}

// A hold is the value of a hold as it was opened.
type hold struct {
	opened, until   types.Time
	amount          types.Amount
	from, to, asset []byte
}

func (h *hold) put(b []byte) []byte {
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(h.opened)), uint64(h.until))
	return appendText(appendText(appendText(appendAmount(b, h.amount), h.from), h.to), h.asset)
}

func (h *hold) read(b []byte) bool {
	v := values{b: b}
	h.opened, h.until, h.amount = v.time(), v.time(), v.amount()
	h.from, h.to, h.asset = v.text(types.MaxAccount), v.text(types.MaxAccount), v.text(types.MaxAsset)
	return v.whole()
}

// An end is the value of the end of a hold.
type end struct {
	state    event.HoldOutcome
	place    types.Position
	captured types.Amount
}

func (e *end) put(b []byte) []byte {
	return appendAmount(appendPlace(append(b, byte(e.state)), e.place), e.captured)
}

func (e *end) read(b []byte) bool {
	v := values{b: b}
	e.state, e.place, e.captured = event.HoldOutcome(v.one()), v.place(), v.amount()
	return v.whole() && event.HoldActive < e.state && e.state <= event.HoldExpired
}
