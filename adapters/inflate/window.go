package inflate

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// MaxWindow is the largest zstd window that is accepted, in bytes: RFC 8878 recommends it.
const MaxWindow = 8 << 20

// lowerWindows lowers each window in the frame headers of zstd data that is larger than most and not larger than MaxWindow. It suffices
// for output of at most most bytes, a power of two from 128 KiB, because nothing refers to more than there is. Invalid data stays as it is
// from there on.
func lowerWindows(packed []byte, most uint64) {
	windowOf := func(size uint64) byte { return byte(bits.Len64(size)-11) << 3 } // of a power of two
	for len(packed) >= 6 {
		if len(packed) >= 8 && packed[0]&0xf0 == 0x50 && bytes.Equal(packed[1:4], []byte{0x2a, 0x4d, 0x18}) { // is skipped
			packed = after(packed, 8+uint64(binary.LittleEndian.Uint32(packed[4:])))
			continue
		}
		if !bytes.Equal(packed[:4], []byte{0x28, 0xb5, 0x2f, 0xfd}) {
			return
		}
		about := packed[4]
		hasWindow := about&0x20 == 0
		if w := &packed[5]; hasWindow && *w > windowOf(most) && *w <= windowOf(MaxWindow) {
			*w = windowOf(most)
		}
		packed = after(packed, headerSize(about))
		for isLast := false; !isLast; {
			if len(packed) < 3 {
				return
			}
			head := uint64(packed[0]) | uint64(packed[1])<<8 | uint64(packed[2])<<16
			size := head >> 3
			if head>>1&3 == 1 { // one byte, repeated
				size = 1
			}
			isLast = head&1 == 1
			packed = after(packed, 3+size)
		}
		if about&4 != 0 {
			packed = after(packed, 4) // the checksum
		}
	}
}

// headerSize returns the size of a frame header, with its magic number, by its descriptor.
func headerSize(about byte) uint64 {
	n := 5 + [...]uint64{0, 1, 2, 4}[about&3] + [...]uint64{0, 2, 4, 8}[about>>6]
	if about&0x20 == 0 || about>>6 == 0 {
		n++ // a window, or a content size of one byte
	}
	return n
}

// after returns what follows the first n bytes.
func after(b []byte, n uint64) []byte { return b[min(n, uint64(len(b))):] }
