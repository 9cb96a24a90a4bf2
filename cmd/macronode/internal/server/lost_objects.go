package server

import (
	"macronode/adapters/adminapi"
	"macronode/core/digest"
	"macronode/core/repair"
	"macronode/core/storage"
)

// isLost reports whether an object is known to be lost.
func (r *repairs) isLost(o storage.Stored) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost.Has(uint64(o.File))
}

// noteLost notes an object that no repair can make whole, unless it was deleted meanwhile.
func (r *repairs) noteLost(o storage.Stored) {
	if !r.journal.readModel.HasFile(o.Address, o.File) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost.Find(repair.LostObject{File: uint64(o.File), Address: digest.Value(o.Address), Size: o.Size})
}

// noteReadable notes an object that was read as a whole.
func (r *repairs) noteReadable(o storage.Stored) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost.Clear(uint64(o.File))
}

// forgetDeleted removes the lost objects that were deleted, or uploaded again, and returns how many are left. r.mu is held.
func (r *repairs) forgetDeleted() int {
	r.lost.Retain(func(o repair.LostObject) bool {
		return r.journal.readModel.HasFile(storage.Address(o.Address), storage.File(o.File))
	})
	return r.lost.Count()
}

// lostObjects returns how many objects are lost.
func (r *repairs) lostObjects() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.forgetDeleted()
}

// verifyLost has the workers read the objects that are known to be lost: their files may have been put back.
func (r *repairs) verifyLost() {
	r.mu.Lock()
	for _, o := range r.lost.Kept() {
		r.machine.Plan(repair.Task{File: o.File, Address: o.Address, Size: o.Size, Verify: true})
	}
	r.mu.Unlock()
	wake(r.work)
}

// listLost returns the lost objects that are kept. r.mu is held.
func (r *repairs) listLost() []adminapi.LostObject {
	list := []adminapi.LostObject{}
	for _, o := range r.lost.Kept() {
		list = append(list, adminapi.LostObject{Address: storage.Address(o.Address).String(), Bytes: o.Size})
	}
	return list
}
