package objectstore

import (
	"fmt"
	"math"

	"macronode/core/coding"
	"macronode/core/digest"
	"macronode/core/placement"
)

// partBytes returns how many bytes a copy of an object of some bytes takes, or its largest shard of a scheme.
func partBytes(scheme coding.Scheme, size uint64) uint64 {
	nodes := digest.NodeLen * (digest.Groups(size) - 1)
	if !scheme.Applies(size) {
		return size + nodes
	}
	return max(scheme.ShardLen(size, 0), scheme.ShardLen(size, int(scheme.Data))) + nodes
}

// reserved is how many bytes of a provider uploads leave free.
func (s *Store) reserved() uint64 { return s.limits.Reserve + freeCheck }

// spare returns how many bytes of uploads a provider can take, and how many are free. If it cannot take some bytes, a collection is wanted.
func (s *Store) spare(p *member, bytes uint64) (spare, free uint64, err error) {
	if free, err = p.Port.Free(); err != nil {
		return 0, 0, err
	}
	spare = free - min(free, s.reserved())
	if spare < bytes {
		s.wantCollection(0)
	} else {
		s.wantCollection(spare)
	}
	return spare, free, nil
}

// checkSpace returns ErrNoSpace if a provider has no space for uploads, or cannot take some bytes.
func (s *Store) checkSpace(p *member, bytes uint64) error {
	spare, free, err := s.spare(p, bytes)
	switch {
	case err != nil:
		return err
	case spare == 0:
		return fmt.Errorf("%w: %d bytes are free, %d are reserved", ErrNoSpace, free, s.reserved())
	case spare < bytes:
		return fmt.Errorf("%w: %d bytes are free, %d are reserved, and %d are needed", ErrNoSpace, free, s.reserved(), bytes)
	}
	return nil
}

// choose chooses providers by their free space: what pick returns when it knows that of all which it returns. No others are asked: each
// question may take its time. One that was full at the last write or probe is not asked until it is probed again.
func (s *Store) choose(bytes uint64, pick func(*placement.State) placement.Set) {
	state, asked := placement.State{Healthy: s.healthy()}, placement.Set(0)
	for i, p := range s.providers {
		if p.full.Load() == nil {
			state.Spare[i] = math.MaxUint64
		}
	}
	for {
		unasked := pick(&state) & state.Room(0) &^ asked
		if unasked == 0 {
			return
		}
		asked |= unasked
		for i, p := range s.providers {
			if !unasked.Has(i) {
				continue
			}
			spare, _, err := s.spare(p, bytes)
			if state.Spare[i] = spare; p.note(err) != nil {
				state.Healthy &= s.healthy()
			}
		}
	}
}

// Refused returns why an upload failed for lack of space since the last call; nil: none did. A disk that has some space may have too little for a
// large object.
func (s *Store) Refused() error {
	if why := s.refused.Swap(nil); why != nil {
		return fmt.Errorf("an upload was refused: %s", *why)
	}
	return nil
}

// room returns the healthy providers that can take some bytes.
func (s *Store) room(bytes uint64) (room placement.Set) {
	s.choose(bytes, func(state *placement.State) placement.Set {
		room = state.Room(bytes)
		return room
	})
	return room
}

// Expect notes how many bytes the content will have: providers without room for it are passed over. It is called before the first byte, and not
// if the number is unknown.
func (u *Upload) Expect(bytes uint64) { u.expected = bytes }

// partBytes returns how many bytes each target will take, as far as it is known.
func (u *Upload) partBytes() uint64 {
	size := max(u.expected, u.Size())
	if u.scheme.IsSet() {
		size = max(size, u.scheme.Stripe()+1) // else it would have copies
	}
	return partBytes(u.scheme, size)
}

// noteRoom notes what was asked of the targets: if all have room for the upload, they are not asked again at once.
func (u *Upload) noteRoom(chosen, room placement.Set) {
	if u.checked = 0; chosen&^room == 0 {
		u.checked = freeCheck
	}
}

// checkSpace keeps the reserve of the disk free. A repair begins only if there is room for all that it writes.
func (u *Upload) checkSpace(t *target) error {
	bytes := uint64(0)
	if u.repairs && u.written == 0 {
		bytes = u.partBytes()
	}
	return u.store.checkSpace(t.member, bytes)
}
