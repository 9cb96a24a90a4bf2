package server

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"macronode/adapters/export"
	"macronode/adapters/index"
	plane "macronode/core/export"
	"macronode/core/types"
)

// exportStreams reads what sinks get: streams, and their items.
type exportStreams struct {
	journal *journalStore
	index   *index.Indexer

	known atomic.Pointer[[]streamHead] // that the index has; nil: not read yet
}

var (
	errNoLane     = errors.New("the lane does not exist any more")
	errNotIndexed = errors.New("the index does not have the item now")
)

// A streamHead is a stream and its last item.
type streamHead struct {
	index.Stream
	head uint64
}

// name returns the name of the stream in core/export.
func streamName(s index.Stream) string {
	if s.Dimension == "" {
		return plane.WalletStream
	}
	return plane.UsageStream(s.Dimension)
}

// heads returns the streams that a sink wants; nil if the index cannot be read now.
func (e *exportStreams) heads() []streamHead {
	list := []streamHead{}
	err := e.index.Streams(func(s index.Stream) bool {
		at := streamHead{Stream: s}
		if s.Dimension == "" {
			at.head = uint64(e.journal.readModel.Seq(s.Tenant))
		} else {
			at.head = e.journal.readModel.SliceSeq(s.Tenant, s.Dimension)
		}
		list = append(list, at)
		return true
	})
	if err != nil {
		return nil
	}
	return list
}

// lastUpto returns the position of the last item of a stream in the frames up to one; 0: there is none. All items up to the head of
// the stream are in the index. Frames and positions grow together.
func (e *exportStreams) lastUpto(s streamHead, frame types.LSN) (uint64, error) {
	if frame == 0 {
		return 0, nil
	}
	var failed error
	n := sort.Search(int(s.head), func(i int) bool {
		at, err := e.frameOf(s.Stream, uint64(i)+1)
		failed = errors.Join(failed, err)
		return err != nil || at > frame
	})
	return uint64(n), failed
}

// frameOf returns the frame of an item.
func (e *exportStreams) frameOf(s index.Stream, position uint64) (types.LSN, error) {
	if s.Dimension != "" {
		at, ok, err := e.index.SliceAt(s.Tenant, s.Dimension, position)
		if err != nil || !ok {
			return 0, errors.Join(errNotIndexed, err)
		}
		return at.LSN, nil
	}
	found, _, err := e.index.Changes(s.Tenant, types.Seq(position-1), 1)
	if err != nil || len(found) == 0 || uint64(found[0].Seq) != position {
		return 0, errors.Join(errNotIndexed, err)
	}
	return found[0].ID.Position().LSN, nil
}

// item reads the item at a position of a lane.
func (e *exportStreams) item(ctx context.Context, lane types.LaneID, position uint64) (*export.Item, error) {
	l, ok := e.journal.readModel.Lane(lane)
	if !ok {
		return nil, errNoLane
	}
	item := &export.Item{Tenant: lane.Tenant.Text(), Seq: position}
	dimension, usage := plane.DimensionOf(string(l.Stream))
	if !usage {
		return item, e.movement(lane.Tenant, item)
	}
	s, ok, err := e.index.SliceAt(lane.Tenant, dimension, position)
	if err != nil || !ok {
		return nil, errors.Join(errNotIndexed, err)
	}
	item.Stream, item.Dimension = export.Usage, dimension
	item.Time, item.Body = time.UnixMilli(int64(s.Due)), s.AppendJSON(nil)
	return item, e.name(item, s.LSN)
}

// name sets the ID and the source of an item, which are of the journal that wrote its frame: a receiver that got the item before a
// restore knows it afterwards.
func (e *exportStreams) name(item *export.Item, frame types.LSN) error {
	journal, err := e.index.JournalAt(frame)
	if err != nil {
		return errors.Join(errNotIndexed, err)
	}
	item.Source, item.ID = fmt.Sprintf("/macronode/%016x", uint64(journal)), itemID(journal, item)
	return nil
}

// movement completes the item of a movement of the wallet.
func (e *exportStreams) movement(t types.Tenant, item *export.Item) error {
	found, _, err := e.index.Changes(t, types.Seq(item.Seq-1), 1)
	if err != nil || len(found) == 0 || uint64(found[0].Seq) != item.Seq {
		return errors.Join(errNotIndexed, err)
	}
	body, owner, err := e.journal.readModel.Change(nil, found[0].ID.Position())
	if err != nil || owner != t {
		return errors.Join(errNotIndexed, err)
	}
	item.Stream, item.Time = export.Wallet, time.UnixMilli(int64(found[0].At))
	item.Body = append([]byte(`{"tenant":"`+item.Tenant+`",`), body[1:]...) // a change of the API leaves it out: it is that of the key
	return e.name(item, found[0].ID.Position().LSN)
}

// itemID returns the ID of an item. Other journals, streams and positions have other IDs. It has no full stop: a name has no tilde.
func itemID(journal types.JournalID, i *export.Item) string {
	name := i.Stream
	if i.Dimension != "" {
		name += "-" + i.Dimension
	}
	return fmt.Sprintf("%016x-%s-%s-%d", uint64(journal), i.Tenant, strings.ReplaceAll(name, ".", "~"), i.Seq)
}
