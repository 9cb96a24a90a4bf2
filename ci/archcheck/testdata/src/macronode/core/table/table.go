package table

import (
	_ "github.com/zeebo/blake3" // want `layer core/table may not import module github.com/zeebo/blake3`
	"unsafe"
)

func Bytes(n *int) uintptr {
	_ = unsafe.Pointer(n) // want `layer core/table may not use unsafe.Pointer`
	return unsafe.Sizeof(*n)
}
