package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"macronode/adapters/client"
	"macronode/adapters/client/wire"
)

// A resumedObject is the answer to a put that could be resumed.
type resumedObject struct {
	wire.StoredObject
	ResumedBytes string `json:"resumed_bytes"` // that the node had before the command
}

// resume stores a file under its address with a resumable upload. An upload that an earlier command began is continued.
func (v *putObjectCmd) resume(ctx context.Context, c *Console, k *client.Client, f *os.File, address string, size uint64) (*client.StoredObject, error) {
	state, err := v.uploadState(c, address)
	if err != nil {
		return nil, err
	}
	u, err := v.findUpload(ctx, k, state, c.now(), address, size)
	if err != nil {
		return nil, err
	}
	resumed, err := strconv.ParseUint(u.Offset, 10, 64)
	if err != nil {
		return nil, err
	}
	bar := c.bar("put", int64(size))
	bar.done, bar.first = int64(resumed), int64(resumed)
	o, err := k.SendUpload(ctx, u, size, f, func(offset uint64) { bar.Add(int64(offset) - bar.done) })
	bar.End()
	switch {
	case errors.Is(err, client.DigestMismatch):
		canceled := k.CancelUpload(ctx, address, v.Bucket, u.UploadID)
		if errors.Is(canceled, client.ErrUnknown) { // the upload ends by itself, and the object is not stored for certain
			canceled = nil
		}
		return nil, errors.Join(fmt.Errorf("the file changed while it was sent: %w", err), canceled, state.remove())
	case errors.Is(err, client.NotFound):
		return nil, errors.Join(fmt.Errorf("the upload has ended, repeat the command to begin again: %w", err), state.remove())
	case errors.Is(err, client.ErrUnknown):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w (repeat the command to go on where it ended)", err)
	}
	if o.Raw, err = json.Marshal(resumedObject{o.StoredObject, strconv.FormatUint(resumed, 10)}); err != nil {
		return nil, err
	}
	_ = state.remove() // the object is stored, and a completed upload is not continued
	return o, nil
}

// findUpload returns the upload that an earlier command began, or begins one.
func (v *putObjectCmd) findUpload(ctx context.Context, k *client.Client, state uploadState, now time.Time, address string, size uint64) (*client.ObjectUpload, error) {
	if id := state.read(); id != "" {
		switch u, err := k.GetUpload(ctx, address, v.Bucket, id); {
		case err == nil && !u.Complete:
			return u, nil
		case err != nil && !errors.Is(err, client.NotFound) && !errors.Is(err, client.BadRequest):
			return nil, err
		}
	}
	u, err := k.BeginUpload(ctx, address, v.Bucket, size)
	if err != nil {
		return nil, err
	}
	state.prune(now)
	return u, state.write(u.UploadID)
}
