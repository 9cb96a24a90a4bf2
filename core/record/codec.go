package record

import (
	"encoding/binary"

	"macronode/core/event"
	"macronode/core/words"
)

// codec writes a record, or reads one: each layout is said once, for both ways.
// What is read is written back to the same bytes, or refused: there is one way to
// write a record. What is bad is so in both ways.
type codec struct {
	b       []byte // written so far, or left to read
	reading bool
	bad     bool
}

func (c *codec) record(r *Record) {
	switch r.Kind {
	case Booted:
		u64(c, &r.Journal)
		uvar(c, &r.Cut)
		uvar(c, &r.Tail)
	case Restored:
		u64(c, &r.Journal)
		uvar(c, &r.Upto)
		c.bytes(r.Root[:])
	case Forgot:
		uvar(c, &r.Upto)
	case KeyMade:
		c.key(&r.Grant)
	case Moved:
		c.asked(r)
		c.moved(r)
	case Refused:
		c.asked(r)
		one(c, &r.Problem)
		uvar(c, &r.Nonce)
		c.bad = c.bad || !r.Problem.Known()
	default:
		c.bad = true
	}
}

func (c *codec) asked(r *Record) {
	one(c, &r.Op)
	u32(c, &r.Tenant)
	u64(c, &r.Caller)
	c.text(&r.Key.Text, words.MaxKey)
	c.bytes(r.Asked[:])
	c.bad = c.bad || !r.Op.Known()
}

func (c *codec) moved(r *Record) {
	c.text(&r.From.Text, words.MaxAccount)
	c.text(&r.To.Text, words.MaxAccount)
	c.text(&r.Asset.Text, words.MaxAsset)
	c.amount(&r.Amount)
	uvar(c, &r.Nonce)
	uvar(c, &r.Seq)
	c.amount(&r.FromNow)
	c.amount(&r.ToNow)
	c.amount(&r.Spent)
	c.memo(&r.Memo)
}

func (c *codec) key(k *event.Key) {
	u64(c, &k.ID)
	u32(c, &k.Tenant)
	c.bytes(k.Hash[:])
	uvar(c, &k.Scopes)
	c.truth(&k.Boot)
	c.bad = c.bad || k.Scopes&^event.AllScopes != 0
}

// bytes are fixed in number.
func (c *codec) bytes(p []byte) {
	if !c.reading {
		c.b = append(c.b, p...)
		return
	}
	copy(p, c.take(len(p)))
}

// take is the next n bytes, or none and bad.
func (c *codec) take(n int) []byte {
	if n > len(c.b) {
		c.b, c.bad = nil, true
		return nil
	}
	p := c.b[:n:n]
	c.b = c.b[n:]
	return p
}

func one[T ~uint8](c *codec, v *T) {
	if !c.reading {
		c.b = append(c.b, byte(*v))
	} else if p := c.take(1); p != nil {
		*v = T(p[0])
	}
}

func (c *codec) truth(v *bool) {
	var b uint8
	if *v {
		b = 1
	}
	one(c, &b)
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

// uvar is a number in as few bytes as it takes, seven bits each.
func uvar[T ~uint16 | ~uint32 | ~uint64](c *codec, v *T) {
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

// text is a length and so many bytes.
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

// memo is a text behind a byte that says what else there is: bit 0 a memo. The
// other bits are for what a money record may carry one day.
func (c *codec) memo(t *[]byte) {
	var has uint8
	if len(*t) > 0 {
		has = 1
	}
	if one(c, &has); has == 1 {
		c.text(t, words.MaxMemo)
		c.bad = c.bad || len(*t) == 0
	}
	c.bad = c.bad || has > 1
}

// amount is a length and its little-endian bytes, the last not zero.
func (c *codec) amount(a *words.Amount) {
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
	if one(c, &n); n > 16 {
		c.b, c.bad = nil, true
		return
	}
	p := c.take(int(n))
	copy(raw[:], p)
	c.bad = c.bad || n > 0 && p != nil && p[n-1] == 0
	*a = words.Amount{Hi: binary.LittleEndian.Uint64(raw[8:]), Lo: binary.LittleEndian.Uint64(raw[:])}
}
