package sim

import (
	"macronode/core/digest"
	"macronode/core/repair"
	"macronode/core/storage"
)

// findsLost notes an object that no repair can make whole, unless it was deleted meanwhile. None of its copies may be good, if
// no provider did anything wrong since there were harms.
func (f *fileWorld) findsLost(w *World, o storage.Stored, harms int) {
	if !w.fol.HasFile(o.Address, o.File) {
		return
	}
	if f.isReadable(o.Address, o.File, f.all(), false) && f.harms() == harms && !f.isFailing() {
		w.fail("files-lost-good", "object %v, file %d, is reported lost; good are %b", o.Address, o.File, f.good(o.Address, o.File))
	}
	w.Saw["files: an object is found lost"]++
	f.lost.Find(repair.LostObject{File: uint64(o.File), Address: digest.Value(o.Address), Size: o.Size})
}

// clears notes an object that was read as a whole.
func (f *fileWorld) clears(w *World, o storage.Stored) {
	w.note(f.lost.Has(uint64(o.File)), "files: an object that was found lost is read again")
	f.lost.Clear(uint64(o.File))
}

// forgetDeleted removes the lost objects that were deleted or uploaded again, and returns how many are left.
func (f *fileWorld) forgetDeleted(w *World) int {
	before := f.lost.Count()
	f.lost.Retain(func(o repair.LostObject) bool { return w.fol.HasFile(storage.Address(o.Address), storage.File(o.File)) })
	w.note(f.lost.Count() < before, "files: a lost object is deleted or uploaded again")
	return f.lost.Count()
}

// certifyLost checks after the calm that an object is known to be lost if it is, and only then.
func (f *fileWorld) certifyLost(w *World, o storage.Stored, isLost bool) {
	if is := f.lost.Has(uint64(o.File)); is != isLost || isLost && !f.hasLost {
		w.fail("files-lost-unknown", "object %v, file %d, is lost: %v; known: %v, and the node was told %v", o.Address, o.File, isLost, is, f.hasLost)
	}
}
