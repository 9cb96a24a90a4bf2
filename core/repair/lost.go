package repair

import (
	"math/bits"
	"slices"

	"macronode/core/digest"
	"macronode/core/types"
)

// MaxLost is the number of lost objects that are kept.
const MaxLost = 1000

// otherBits is the number of lost objects that can be counted without being kept. Two files share a bit if their numbers differ by a
// multiple of it.
const otherBits = 1 << 16

// A LostObject is an object that no repair can make whole: each provider has answered, and what is left of the copies or shards is too little.
type LostObject struct {
	File    uint64 // the number that identifies it
	Address digest.Value
	Size    uint64
}

// Lost is the bounded set of the lost objects.
//
//	inventory, repair ──► Find ──► kept ──► Clear: it was read again
//	                       │ full    └────► Retain: it was deleted, or uploaded again
//	                       ▼
//	                     counted as another one, until a scrub that began later has ended
//
// It is volatile: after a restart an inventory finds what is missing, and a scrub or a read what is damaged.
//
// Invariants:
//
//	L1  at most the limit of objects are kept, each once, the oldest finding first
//	L2  an object that is found lost is kept until Clear or Retain, or it is counted because there was no room
//	L3  Others is at most the number of different objects that are not kept and were found without room since the last scrub that has
//	    ended began
type Lost struct {
	limit  int
	kept   []LostObject
	others fileBits // found without room since the last scrub that has ended began
	next   fileBits // found without room since the last scrub began
}

// fileBits has a bit for the numbers of files.
type fileBits [otherBits / 64]uint64

func (b *fileBits) add(file uint64)    { b[file%otherBits/64] |= 1 << (file % 64) }
func (b *fileBits) remove(file uint64) { b[file%otherBits/64] &^= 1 << (file % 64) }

// NewLost returns an empty set that keeps at most limit objects.
func NewLost(limit int) *Lost {
	types.Assert(limit > 0, "repair: a set of lost objects without room")
	return &Lost{limit: limit}
}

// at returns the place of an object, or -1.
func (l *Lost) at(file uint64) int {
	return slices.IndexFunc(l.kept, func(o LostObject) bool { return o.File == file })
}

// Has reports whether an object is kept.
func (l *Lost) Has(file uint64) bool { return l.at(file) >= 0 }

// Find adds an object that was found lost. If there is no room, it is counted, at most once.
func (l *Lost) Find(o LostObject) {
	switch {
	case l.Has(o.File):
	case len(l.kept) < l.limit:
		l.kept = append(l.kept, o)
		l.others.remove(o.File)
		l.next.remove(o.File)
	default:
		l.others.add(o.File)
		l.next.add(o.File)
	}
}

// Clear removes an object that was read as a whole.
func (l *Lost) Clear(file uint64) {
	if at := l.at(file); at >= 0 {
		l.kept = slices.Delete(l.kept, at, at+1)
	}
}

// Retain removes the objects of which is is false: they were deleted, or their content was uploaded again and is in another file.
func (l *Lost) Retain(is func(LostObject) bool) {
	l.kept = slices.DeleteFunc(l.kept, func(o LostObject) bool { return !is(o) })
}

// BeginScrub is called before a scrub reads the first object, EndScrub after it has read the last one. What was found without room
// before the scrub began is forgotten when it has ended: the scrub has found it again if it is still lost.
func (l *Lost) BeginScrub() { l.next = fileBits{} }
func (l *Lost) EndScrub()   { l.others = l.next }

// Kept returns the objects that are kept, the oldest finding first. The caller must not change them.
func (l *Lost) Kept() []LostObject { return l.kept }

// Others returns how many others were found and not kept. It has those that were deleted since.
func (l *Lost) Others() (n int) {
	for _, word := range l.others {
		n += bits.OnesCount64(word)
	}
	return n
}

// Count returns how many objects are lost.
func (l *Lost) Count() int { return len(l.kept) + l.Others() }
