package faults

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// node is a file of a disk, or its directory. Other operations pass through.
type node struct {
	*fs.LoopbackNode
	disk *Disk
}

// file is an open file. The kernel does not see the descriptor below it, because it would use it directly.
type file struct{ *os.File }

// names is the open directory.
type names struct {
	fs.FileHandle
	disk *Disk
}

// WrapChild makes every file of the disk a node.
func (n *node) WrapChild(_ context.Context, below fs.InodeEmbedder) fs.InodeEmbedder {
	return &node{LoopbackNode: below.(*fs.LoopbackNode), disk: n.disk}
}

func (n *node) name() string { return n.Path(n.Root()) }

func (n *node) meet(op Op, data []byte) (half bool, err syscall.Errno) {
	return n.disk.meet(Call{Op: op, Name: n.name(), Data: data})
}

// Open and Create disable the page cache of the kernel for the file.
func (n *node) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return open(filepath.Join(n.disk.dir, n.name()), int(flags))
}

func open(path string, flags int) (fs.FileHandle, uint32, syscall.Errno) {
	f, err := os.OpenFile(path, flags&(syscall.O_ACCMODE|syscall.O_TRUNC), 0)
	if err != nil {
		return nil, 0, fs.ToErrno(err)
	}
	return file{f}, fuse.FOPEN_DIRECT_IO, 0
}

func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	made, below, _, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	if errno := below.(fs.FileReleaser).Release(ctx); errno != 0 {
		return nil, nil, 0, errno
	}
	f, how, errno := open(filepath.Join(n.disk.dir, n.name(), name), os.O_RDWR)
	return made, f, how, errno
}

// Read, Write and Fsync are affected by troubles.
func (n *node) Read(_ context.Context, f fs.FileHandle, to []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if _, errno := n.disk.meet(Call{Op: Read, Name: n.name(), Size: len(to)}); errno != 0 {
		return nil, errno
	}
	got, err := f.(file).ReadAt(to, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fs.ToErrno(err)
	}
	return fuse.ReadResultData(to[:got]), 0
}

func (n *node) Write(_ context.Context, f fs.FileHandle, what []byte, off int64) (uint32, syscall.Errno) {
	half, errno := n.meet(Write, what)
	if errno != 0 {
		return 0, errno
	}
	if half {
		what = what[:(len(what)+1)/2]
	}
	if err := n.disk.written(f.(file).File, off, len(what)); err != nil {
		return 0, fs.ToErrno(err)
	}
	wrote, err := f.(file).WriteAt(what, off)
	return uint32(wrote), fs.ToErrno(err)
}

// Fsync does not sync the file below: the machine of the test does not crash.
func (n *node) Fsync(_ context.Context, f fs.FileHandle, _ uint32) syscall.Errno {
	if _, errno := n.meet(Sync, nil); errno != 0 {
		return errno
	}
	at, err := f.(file).Stat()
	if err != nil {
		return fs.ToErrno(err)
	}
	n.disk.synced(at.Sys().(*syscall.Stat_t).Ino)
	return 0
}

// Statfs reports the free space.
func (n *node) Statfs(ctx context.Context, out *fuse.StatfsOut) syscall.Errno {
	if _, errno := n.meet(Free, nil); errno != 0 {
		return errno
	}
	if errno := n.LoopbackNode.Statfs(ctx, out); errno != 0 {
		return errno
	}
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if room := n.disk.room; room != nil {
		out.Bavail = *room / uint64(out.Bsize)
		out.Bfree = out.Bavail
	}
	return 0
}

// OpendirHandle makes the directory syncable.
func (n *node) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	below, how, errno := n.LoopbackNode.OpendirHandle(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return names{below, n.disk}, how, 0
}

// Fsyncdir, Readdirent and Releasedir are the operations of a directory.
func (d names) Fsyncdir(context.Context, uint32) syscall.Errno {
	_, errno := d.disk.meet(Call{Op: SyncDir})
	return errno
}
func (d names) Readdirent(ctx context.Context) (*fuse.DirEntry, syscall.Errno) {
	return d.FileHandle.(fs.FileReaddirenter).Readdirent(ctx)
}
func (d names) Releasedir(ctx context.Context, flags uint32) {
	d.FileHandle.(fs.FileReleasedirer).Releasedir(ctx, flags)
}

// Flush and Release end an open file.
func (f file) Flush(context.Context) syscall.Errno   { return 0 }
func (f file) Release(context.Context) syscall.Errno { return fs.ToErrno(f.Close()) }
