package invoice

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"macronode/core/digest"
	"macronode/core/types"
)

const refPrefix = "macronode charge 1\n"

// Ref returns the ref of the transfer that charges c, within the ledger of a tenant. It follows from tenant, dimension,
// seq and asset alone. A ref can be used once, so a slice is charged once, whatever its amount.
func (c *Charge) Ref(t types.Tenant) string {
	return Slice{Dimension: c.Dimension, Seq: c.Seq}.Ref(t, c.Asset)
}

// Ref returns the ref of the transfer that charges s in an asset.
func (s Slice) Ref(t types.Tenant, asset string) string {
	b := binary.LittleEndian.AppendUint32([]byte(refPrefix), uint32(t))
	b = binary.LittleEndian.AppendUint64(b, s.Seq)
	b = append(append(b, byte(len(s.Dimension))), s.Dimension...)
	sum := digest.Sum(append(append(b, byte(len(asset))), asset...))
	return types.ChargeRef + strconv.FormatUint(s.Seq, 10) + ":" + hex.EncodeToString(sum[:16])
}
