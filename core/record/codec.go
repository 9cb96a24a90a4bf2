package record

import (
	"encoding/binary"

	"macronode/core/event"
	"macronode/core/types"
)

// codec writes or reads a record. Each layout is defined once, for both directions. A record has
// exactly one encoding: reading and writing a record gives the same bytes, or reading fails.
// Validation is the same in both directions.
type codec struct {
	b       []byte // written so far, or still to read
	reading bool
	bad     bool
}

func (c *codec) record(r *Record) {
	switch r.Kind {
	case Started:
		u64(c, &r.Journal)
		uvar(c, &r.CutBytes)
		uvar(c, &r.TailFrames)
	case Restored:
		u64(c, &r.Journal)
		uvar(c, &r.Upto)
		c.bytes(r.Root[:])
	case KeysForgotten:
		uvar(c, &r.Upto)
	case AllKeysRevoked:
	case BootstrapKeyCreated:
		c.key(c.apiKey(r))
	case KeyCreated:
		u64(c, &r.Caller)
		c.key(c.apiKey(r))
		c.restriction(r.APIKey)
	case KeyRevoked:
		u64(c, &r.Caller)
		u32(c, &r.Tenant)
		u64(c, &c.apiKey(r).ID)
	case HoldExpired:
		u32(c, &r.Tenant)
		uvar(c, &r.Seq)
		c.bytes(r.Hold[:])
		c.amount(&r.HeldBalance)
	default:
		if r.Kind.isOfPlane() {
			c.planeRecord(r)
			return
		}
		c.commandFields(r)
		c.outcome(r)
	}
}

// planeRecord is a record of a plane's own kind: the header of its command if it is the outcome of
// one, then the payload up to the end. A rejection has no payload.
func (c *codec) planeRecord(r *Record) {
	u32(c, &r.Tenant)
	outcome := len(r.Key.Text) > 0
	if c.boolean(&outcome); outcome {
		u64(c, &r.Caller)
		c.text(&r.Key.Text, types.MaxKey)
		c.bytes(r.Hash[:])
		u8(c, &r.Problem)
		c.bad = c.bad || len(r.Key.Text) == 0 || r.Problem != event.None && !r.Problem.Known()
	}
	if c.reading {
		r.Payload, c.b = c.b, nil
	} else {
		c.b = append(c.b, r.Payload...)
	}
	c.bad = c.bad || r.Problem != event.None && (!outcome || len(r.Payload) > 0)
}

// outcome encodes the fields of the outcome of an idempotency key.
func (c *codec) outcome(r *Record) {
	switch r.Kind {
	case Posted:
		c.posted(r)
	case Rejected:
		c.rejected(r)
	case Batched:
		c.batched(r)
	case HoldOpened:
		c.parties(r)
		uvar(c, &r.Nonce)
		uvar(c, &r.ExpiresAt)
		c.bad = c.bad || r.ExpiresAt < 0
		uvar(c, &r.Seq)
		c.amount(&r.HeldBalance)
		c.optionalFields(r)
	case HoldCaptured:
		c.bytes(r.Hold[:])
		c.parties(r)
		uvar(c, &r.Seq)
		c.amount(&r.FromBalance)
		c.amount(&r.ToBalance)
		c.amount(&r.HeldBalance)
		c.amount(&r.DebitedToday)
		c.optionalFields(r)
	case HoldReleased:
		c.bytes(r.Hold[:])
		c.parties(r)
		uvar(c, &r.Seq)
		c.amount(&r.HeldBalance)
		c.optionalFields(r)
	case FreezeChanged:
		c.text(&r.From.Text, types.MaxAccount)
		uvar(c, &r.Seq)
		c.optionalFields(r)
	default:
		c.bad = true
	}
}

func (c *codec) commandFields(r *Record) {
	u8(c, &r.Op)
	u32(c, &r.Tenant)
	u64(c, &r.Caller)
	c.text(&r.Key.Text, types.MaxKey)
	c.bytes(r.Hash[:])
	c.bad = c.bad || !r.Kind.mayRecord(r.Op)
}

func (c *codec) rejected(r *Record) {
	u8(c, &r.Problem)
	c.problemFields(r)
}

// batched encodes the number of items that follow, or the item whose problem rejected the batch.
func (c *codec) batched(r *Record) {
	c.boolean(&r.Atomic)
	uvar(c, &r.Items)
	if u8(c, &r.Problem); r.Problem != event.None {
		c.problemFields(r)
		c.bad = c.bad || !r.Atomic || r.Items >= types.MaxItems
		return
	}
	c.bad = c.bad || r.Items == 0 || r.Items > types.MaxItems
}

// problemFields encodes the fields that depend on the problem.
func (c *codec) problemFields(r *Record) {
	uvar(c, &r.Nonce)
	if c.bad = c.bad || !r.Problem.Known(); r.Problem == event.RefUsed {
		c.bytes(r.PriorRef[:])
	}
}

func (c *codec) parties(r *Record) {
	c.text(&r.From.Text, types.MaxAccount)
	c.text(&r.To.Text, types.MaxAccount)
	c.text(&r.Asset.Text, types.MaxAsset)
	c.amount(&r.Amount)
}

func (c *codec) posted(r *Record) {
	c.parties(r)
	uvar(c, &r.Nonce)
	uvar(c, &r.Seq)
	c.amount(&r.FromBalance)
	c.amount(&r.ToBalance)
	c.amount(&r.DebitedToday)
	c.optionalFields(r)
}

// apiKey returns the key of r. It is a pointer because few records have one, and it is large.
func (c *codec) apiKey(r *Record) *event.Key {
	if r.APIKey == nil {
		types.Assert(c.reading, "record: the API key is missing")
		r.APIKey = new(event.Key)
	}
	return r.APIKey
}

func (c *codec) key(k *event.Key) {
	u64(c, &k.ID)
	u32(c, &k.Tenant)
	c.bytes(k.Hash[:])
	uvar(c, &k.Scopes)
	c.boolean(&k.Bootstrap)
	c.bad = c.bad || k.Scopes&^event.AllScopes != 0
}

// restriction encodes what a key covers in addition to its scopes.
func (c *codec) restriction(k *event.Key) {
	label, accounts, assets := []byte(k.Label.String()), []byte(k.Accounts.String()), []byte(k.Assets.String())
	c.text(&label, types.MaxLabel)
	c.text(&accounts, types.MaxPatterns)
	c.text(&assets, types.MaxPatterns)
	uvar(c, &k.Expires)
	c.bad = c.bad || len(label) > 0 && types.CheckLabel(label) != nil
	if c.reading && !c.bad {
		var errs [2]error
		k.Label = types.NewLabel(label)
		k.Accounts, errs[0] = types.ParsePatterns(accounts)
		k.Assets, errs[1] = types.ParsePatterns(assets)
		c.bad = errs[0] != nil || errs[1] != nil
	}
}

// bytes encodes a fixed number of bytes.
func (c *codec) bytes(p []byte) {
	if !c.reading {
		c.b = append(c.b, p...)
		return
	}
	copy(p, c.take(len(p)))
}

// take returns the next n bytes; if there are fewer, it returns none and sets bad.
func (c *codec) take(n int) []byte {
	if n > len(c.b) {
		c.b, c.bad = nil, true
		return nil
	}
	p := c.b[:n:n]
	c.b = c.b[n:]
	return p
}

func u8[T ~uint8](c *codec, v *T) {
	if !c.reading {
		c.b = append(c.b, byte(*v))
	} else if p := c.take(1); p != nil {
		*v = T(p[0])
	}
}

func (c *codec) boolean(v *bool) {
	var b uint8
	if *v {
		b = 1
	}
	u8(c, &b)
	*v, c.bad = b == 1, c.bad || b > 1
}

func u32[T ~uint32](c *codec, v *T) {
	if !c.reading {
		c.b = binary.LittleEndian.AppendUint32(c.b, uint32(*v))
	} else if p := c.take(4); p != nil {
		*v = T(binary.LittleEndian.Uint32(p))
	}
}

func u64[T ~uint64](c *codec, v *T) {
	if !c.reading {
		c.b = binary.LittleEndian.AppendUint64(c.b, uint64(*v))
	} else if p := c.take(8); p != nil {
		*v = T(binary.LittleEndian.Uint64(p))
	}
}

// uvar encodes a number in as few bytes as possible, seven bits each.
func uvar[T ~uint16 | ~uint32 | ~uint64 | ~int64](c *codec, v *T) {
	if !c.reading {
		c.b = binary.AppendUvarint(c.b, uint64(*v))
		return
	}
	n, size := binary.Uvarint(c.b)
	if size <= 0 || size > 1 && c.b[size-1] == 0 || uint64(T(n)) != n {
		c.b, c.bad = nil, true
		return
	}
	*v, c.b = T(n), c.b[size:]
}

// text encodes a length and as many bytes.
func (c *codec) text(t *[]byte, most int) {
	n := uint64(len(*t))
	uvar(c, &n)
	switch {
	case n > uint64(most):
		c.b, c.bad = nil, true
	case c.reading:
		*t = c.take(int(n))
	default:
		c.b = append(c.b, *t...)
	}
}

// optionalFields encodes the optional fields of a movement: bit 0 a memo, bit 1 a ref. The other
// bits are reserved.
func (c *codec) optionalFields(r *Record) {
	const memo, ref = 1, 2
	var has uint8
	if len(r.Memo) > 0 {
		has |= memo
	}
	if len(r.Ref.Text) > 0 {
		has |= ref
	}
	u8(c, &has)
	c.bad = c.bad || has > memo|ref
	if has&memo != 0 {
		c.text(&r.Memo, types.MaxMemo)
		c.bad = c.bad || len(r.Memo) == 0
	}
	if has&ref != 0 {
		c.text(&r.Ref.Text, types.MaxKey)
		c.bad = c.bad || len(r.Ref.Text) == 0
	}
}

// amount encodes a length and little-endian bytes, the last of them not zero.
func (c *codec) amount(a *types.Amount) {
	var raw [16]byte
	if !c.reading {
		binary.LittleEndian.PutUint64(raw[:], a.Lo)
		binary.LittleEndian.PutUint64(raw[8:], a.Hi)
		n := len(raw)
		for n > 0 && raw[n-1] == 0 {
			n--
		}
		c.b = append(append(c.b, byte(n)), raw[:n]...)
		return
	}
	var n uint8
	if u8(c, &n); n > 16 {
		c.b, c.bad = nil, true
		return
	}
	p := c.take(int(n))
	copy(raw[:], p)
	c.bad = c.bad || n > 0 && p != nil && p[n-1] == 0
	*a = types.Amount{Hi: binary.LittleEndian.Uint64(raw[8:]), Lo: binary.LittleEndian.Uint64(raw[:])}
}
