package offline

import (
	"context"
	"errors"
	"fmt"

	"macronode/adapters/backup"
	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/cmd/macronode/internal/datadir"
	"macronode/cmd/macronode/internal/exit"
	"macronode/core/types"
)

// copyFrames copies the frames of a journal into the backup in to, and the objects that the last of them has. k is nil if the node never had
// objects. If damage is returned, the backup is made and ends before it.
func (e Env) copyFrames(ctx context.Context, from fs.FS, to string, b backup.Bounds, k *objectCopy) (d backup.Done, damage *journalfile.Damage, err error) {
	into, err := datadir.OpenSegments(fs.Dir(to), "")
	if err != nil {
		return d, nil, exit.Unable(err)
	}
	for _, o := range into.Others {
		return d, nil, fmt.Errorf("%w: %s is not of it: %s", backup.ErrCopy, o.Name, o.Why)
	}
	into.Writers.Dir = into.Live // so that the directory of the segments can be put into that of the node
	b.Epoch = into.Writers.Next
	switch {
	case k == nil:
	case b.Upto == 0: // a damaged journal that is read from its begin ends too early: the frames behind the backup decide where the copy ends
		b.Before = func() (types.LSN, error) {
			_, err := k.settle()
			return 0, err
		}
	default:
		b.Before = k.settle
	}
	d, err = backup.Copy(ctx, from, into, b, e.Copied)
	if found, ok := errors.AsType[*journalfile.Damage](err); ok && d.LSN > 0 && !errors.Is(err, backup.ErrCopy) && !errors.Is(err, backup.ErrPast) {
		damage, err = found, nil
	}
	if err != nil || k == nil {
		return d, damage, err
	}
	if k.state == nil || k.state.LSN != d.LSN { // then the backup has the frames from which the objects are known
		k.readFrom(to, into)
	}
	return d, damage, k.finish(d.LSN)
}

// damagedError reports that a journal is damaged, and where the backup ends.
type damagedError struct {
	end    types.LSN
	damage *journalfile.Damage
}

func (e *damagedError) Error() string {
	d := e.damage
	return fmt.Sprintf("the journal is damaged at byte %d of %s (%s), and the backup ends at %v; see macronode verify", d.Offset, d.Segment, d.Why, e.end)
}

// Unwrap returns the damage.
func (e *damagedError) Unwrap() error { return e.damage }

// errNodeReadsLess means that a running node does not read the frames at the end of the backup, because they are behind damage.
var errNodeReadsLess = errors.New("the journal is damaged before the end of the backup, and the running node reads no frame behind the damage: stop the node and repeat the command")
