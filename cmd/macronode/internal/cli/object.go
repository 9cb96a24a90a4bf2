package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"macronode/adapters/client"
	"macronode/cmd/macronode/internal/exit"
)

// Run stores a file or standard input. A file that the bucket has already is not sent.
func (v *putObjectCmd) Run(c *Console) error {
	return c.node().withClient(v.clientFlags, func(ctx context.Context, k *client.Client) error {
		if v.File == "-" {
			bar := c.bar("put", 0)
			o, err := k.PutObject(ctx, "", v.Bucket, -1, readOnce(bar.reader(c.in)))
			bar.End()
			return c.printStored(o, err)
		}
		f, err := os.Open(v.File)
		if err != nil {
			return exit.Unable(err)
		}
		defer f.Close() //nolint:errcheck // it is only read
		o, err := v.put(ctx, c, k, f)
		return c.printStored(o, err)
	})
}

// put stores a file under its address.
func (v *putObjectCmd) put(ctx context.Context, c *Console, k *client.Client, f *os.File) (*client.StoredObject, error) {
	is, err := f.Stat()
	if err != nil {
		return nil, exit.Unable(err)
	}
	bar := c.bar("hash", is.Size())
	address, size, err := client.Address(bar.reader(f))
	bar.End()
	if err != nil {
		return nil, exit.Unable(err)
	}
	if held, err := k.StatObject(ctx, address, v.Bucket); err == nil && held.Size == uint64(size) && !v.Again {
		return client.KeptObject(held), nil
	}
	if size > client.PartSize {
		return v.resume(ctx, c, k, f, address, uint64(size))
	}
	bar = c.bar("put", size)
	defer bar.End()
	return k.PutObject(ctx, address, v.Bucket, size, func() (io.ReadCloser, error) {
		bar.done = 0
		_, err := f.Seek(0, io.SeekStart)
		return io.NopCloser(bar.reader(io.LimitReader(f, size))), err
	})
}

var errInput = errors.New("standard input cannot be sent a second time")

// readOnce returns content that can be read once.
func readOnce(r io.Reader) client.Content {
	used := false
	return func() (io.ReadCloser, error) {
		if used {
			return nil, errInput
		}
		used = true
		return io.NopCloser(r), nil
	}
}

// printStored prints the result of a put.
func (c *Console) printStored(o *client.StoredObject, err error) error {
	switch {
	case err != nil:
		return askAgain(err, "repeat the command")
	case c.tree.JSON:
		return c.printLine("%s", o.Raw)
	}
	return c.printLine("%s", o.Address)
}

// Run writes an object to a file or to standard output. What was received before is not fetched again.
func (v *getObjectCmd) Run(c *Console) error {
	return c.node().withClient(v.clientFlags, func(ctx context.Context, k *client.Client) error {
		if v.File == "" || v.File == "-" {
			_, err := k.GetObject(ctx, v.Address, v.Bucket, 0, nil, c.out)
			return err
		}
		return v.fetch(ctx, c, k)
	})
}

// fetch receives an object into FILE.part, which becomes FILE after its content was verified.
func (v *getObjectCmd) fetch(ctx context.Context, c *Console, k *client.Client) (err error) {
	if old, err := os.Lstat(v.File); err == nil && !old.Mode().IsRegular() {
		return exit.Unable(fmt.Errorf("%s is no regular file: write to it with > %s", v.File, quote(v.File)))
	}
	part := v.File + ".part"
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return exit.Unable(err)
	}
	defer f.Close() //nolint:errcheck // it was synced
	have, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return exit.Unable(err)
	}
	held, err := k.StatObject(ctx, v.Address, v.Bucket)
	if err != nil {
		return errors.Join(err, removeEmpty(part, have))
	}
	if uint64(have) > held.Size {
		return exit.Unable(fmt.Errorf("%s is longer than the object: remove it", part))
	}
	bar := c.bar("get", int64(held.Size))
	bar.done = have
	size, err := k.GetObject(ctx, v.Address, v.Bucket, uint64(have), io.NewSectionReader(f, 0, have), bar.writer(f))
	bar.End()
	if errors.Is(err, client.ErrContent) {
		return errors.Join(err, os.Remove(part))
	}
	if err == nil {
		err = errors.Join(f.Sync(), os.Rename(part, v.File))
	}
	if err != nil {
		return err
	}
	if c.tree.JSON {
		return c.printJSON(client.ObjectStat{Address: v.Address, Bucket: v.Bucket, Size: size})
	}
	return nil
}

// removeEmpty removes a file if nothing was received.
func removeEmpty(name string, size int64) error {
	if size > 0 {
		return nil
	}
	return os.Remove(name)
}

// Run shows the size of an object.
func (v *statObjectCmd) Run(c *Console) error {
	return c.node().withClient(v.clientFlags, func(ctx context.Context, k *client.Client) error {
		o, err := k.StatObject(ctx, v.Address, v.Bucket)
		switch {
		case err != nil:
			return err
		case c.tree.JSON:
			return c.printJSON(o)
		}
		return c.printLine("%s has %d bytes", o.Address, o.Size)
	})
}

var objectColumns = []column{{"name", 67}, {"bytes", 0}}

// Run lists the objects of a bucket.
func (v *listObjectsCmd) Run(c *Console) error {
	return c.node().withClient(v.clientFlags, func(ctx context.Context, k *client.Client) error {
		return list(c, k.Objects(ctx, v.Bucket, listOptions(v.Limit)), objectColumns, func(o client.ObjectItem) [][]string {
			return [][]string{{o.Name, o.Size}}
		})
	})
}

// Run removes objects from a bucket. If the node rejects one, the others are removed nevertheless. If it does not answer, the rest is not tried.
func (v *removeObjectCmd) Run(c *Console) error {
	return c.node().withClient(v.clientFlags, func(ctx context.Context, k *client.Client) error {
		var failures []error
		for i, address := range v.Address {
			o, err := k.DeleteObject(ctx, address, v.Bucket)
			if err == nil {
				if err := c.printDeleted(o); err != nil {
					return errors.Join(append(failures, err)...)
				}
				continue
			}
			failures = append(failures, fmt.Errorf("%s: %w", address, askAgain(err, "repeat the command from this address on; not_found then means that it is deleted")))
			if left := len(v.Address) - i - 1; left > 0 && !errors.As(err, new(*client.Problem)) {
				return errors.Join(append(failures, fmt.Errorf("the last %d objects were not tried", left))...)
			}
		}
		if len(failures) > 0 && len(v.Address) > 1 {
			failures = append(failures, fmt.Errorf("%d of %d objects were not deleted", len(failures), len(v.Address)))
		}
		return errors.Join(failures...)
	})
}

// printDeleted prints the result of a removal.
func (c *Console) printDeleted(o *client.DeletedObject) error {
	if c.tree.JSON {
		return c.printLine("%s", o.Raw)
	}
	return c.printLine("%s is deleted from the bucket %s", o.Address, o.Bucket)
}
