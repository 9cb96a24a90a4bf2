package receipt

import (
	"encoding/hex"
	"strconv"
	"time"

	"macronode/core/digest"
	"macronode/core/record"
	"macronode/core/types"
)

// A field of a receipt. Absent fields are omitted.
type field uint8

const (
	txid field = iota
	op
	from
	dest
	asset
	amountMinor
	heldMinor
	nonce
	idem
	ref
	stamp
	seq
	indexOf
	prevRoot
	root
	holdID
	expiresAt
)

// receipt writes a receipt. Its hash covers the same fields sorted by name (RFC 8785), so that it
// can be verified from the parsed receipt.
func (p *proof) receipt(to []byte) []byte {
	var b [1536]byte
	canon := append(b[:0], '{')
	for _, f := range [...]field{amountMinor, asset, expiresAt, from, heldMinor, holdID, idem, indexOf, nonce, op,
		prevRoot, ref, root, seq, dest, stamp, txid} {
		canon = p.write(canon, f)
	}
	sum := digest.Sum(append(canon, '}'))
	to = append(to, '{')
	if p.r.Kind == record.HoldExpired {
		for _, f := range [...]field{txid, op, holdID, heldMinor, stamp, seq, indexOf, prevRoot, root} {
			to = p.write(to, f)
		}
		return append(hash(to, &sum), '}')
	}
	for _, f := range [...]field{txid, op, from, dest, asset, amountMinor, nonce, idem, ref, stamp, seq, indexOf, prevRoot, root} {
		to = p.write(to, f)
	}
	return append(p.write(p.write(hash(to, &sum), holdID), expiresAt), '}')
}

func hash(to []byte, sum *[32]byte) []byte {
	return append(hex.AppendEncode(append(to, `,"receipt_hash":"b3:`...), sum[:]), '"')
}

// has reports whether p has a field. Every record has the fields that are not listed here.
func (p *proof) has(f field) bool {
	k := p.r.Kind
	switch f {
	case from:
		return len(p.r.From.Text) > 0
	case dest:
		return len(p.r.To.Text) > 0
	case asset, amountMinor:
		return k != record.FreezeChanged && k != record.HoldExpired
	case nonce:
		return p.r.Nonce > 0
	case idem:
		return k != record.HoldExpired
	case ref:
		return len(p.r.Ref.Text) > 0
	case heldMinor:
		return k == record.HoldExpired
	case holdID:
		return k == record.HoldOpened || k == record.HoldCaptured || k == record.HoldReleased || k == record.HoldExpired
	case expiresAt:
		return k == record.HoldOpened
	default:
		return true
	}
}

func (p *proof) write(to []byte, f field) []byte {
	if !p.has(f) {
		return to
	}
	if to[len(to)-1] != '{' {
		to = append(to, ',')
	}
	r := p.r
	switch f {
	case txid:
		id := TxID(p.id())
		return text(to, `"txid":`, id[:])
	case op:
		return text(to, `"op":`, p.op())
	case from:
		return text(to, `"from":`, r.From.Text)
	case dest:
		return text(to, `"to":`, r.To.Text)
	case asset:
		return text(to, `"asset":`, r.Asset.Text)
	case amountMinor:
		return append(r.Amount.Append(append(to, `"amount_minor":"`...)), '"')
	case heldMinor:
		return append(r.HeldBalance.Append(append(to, `"held_minor":"`...)), '"')
	case nonce:
		return strconv.AppendUint(append(to, `"nonce":`...), uint64(r.Nonce), 10)
	case idem:
		return text(to, `"idem":`, r.Key.Text)
	case ref:
		return text(to, `"ref":`, r.Ref.Text)
	case stamp:
		return append(Stamp(append(to, `"ts":"`...), p.at), '"')
	case seq:
		return strconv.AppendUint(append(to, `"seq":`...), uint64(r.Seq), 10)
	case indexOf:
		return strconv.AppendUint(append(to, `"index":`...), uint64(p.index), 10)
	case prevRoot:
		return append(hex.AppendEncode(append(to, `"prev_root":"`...), p.in.Prev[:]), '"')
	case root:
		return append(hex.AppendEncode(append(to, `"root":"`...), p.in.Root[:]), '"')
	case holdID:
		id := HoldID(p.hold())
		return text(to, `"hold_id":`, id[:])
	case expiresAt:
		return append(Stamp(append(to, `"expires_at":"`...), r.ExpiresAt), '"')
	}
	return to
}

func (p *proof) id() types.TxID {
	return types.NewTxID(p.in.Journal, types.Position{LSN: p.in.LSN, Index: p.index})
}

// hold returns the hold that p opens or ends.
func (p *proof) hold() types.TxID {
	if p.r.Kind == record.HoldOpened {
		return p.id()
	}
	return p.r.Hold
}

func (p *proof) op() string {
	if p.r.Kind == record.HoldExpired {
		return "expire"
	}
	return p.r.Op.String()
}

// text writes a name and a text that needs no escapes.
func text[T ~string | ~[]byte](to []byte, name string, s T) []byte {
	return append(append(append(append(to, name...), '"'), s...), '"')
}

// Stamp writes t as RFC 3339 with milliseconds.
func Stamp(to []byte, t types.Time) []byte {
	return time.UnixMilli(int64(t)).UTC().AppendFormat(to, "2006-01-02T15:04:05.000Z")
}
