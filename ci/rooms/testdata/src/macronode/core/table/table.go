package table

import (
	_ "github.com/zeebo/blake3" // want `room core/table may not borrow github.com/zeebo/blake3`
	"unsafe"
)

func Bytes(n *int) uintptr {
	_ = unsafe.Pointer(n) // want `room core/table may not take unsafe.Pointer`
	return unsafe.Sizeof(*n)
}
