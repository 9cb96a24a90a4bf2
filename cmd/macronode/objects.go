package main

import (
	"context"
	"path/filepath"
	"time"

	"macronode/adapters/config"
	"macronode/adapters/fs"
	"macronode/adapters/objectstore"
	"macronode/core/storage"
)

// objectsName is the directory of the files of objects, in that of the node.
const objectsName = "objects"

// storageLimits is the room that the configuration gives to the storage plane.
func storageLimits(c *config.Config) storage.Limits {
	s := &c.Storage
	return storage.Limits{Objects: s.Objects, Holdings: s.Holdings, Buckets: s.Buckets,
		TenantQuota: storage.Usage{Bytes: uint64(s.TenantBytes), Objects: uint64(s.TenantObjects)},
		BucketQuota: storage.Usage{Bytes: uint64(s.BucketBytes), Objects: uint64(s.BucketObjects)}}
}

// objectFileLimits are the limits on the files of objects. Uploads keep twice the reserve of the journal free, so that
// they never stop it.
func objectFileLimits(c *config.Config) objectstore.Limits {
	return objectstore.Limits{Uploads: c.Storage.Uploads, Reserve: 2 * uint64(c.Journal.Reserve), Object: storage.MaxObject}
}

// objectFiles is the directory of the files of objects.
func (l *life) objectFiles() string { return filepath.Join(string(l.dir), objectsName) }

// newObjects returns the store of the files of objects. Nothing is read or made before the journal is recovered: the
// directory may be a backup.
func (l *life) newObjects() *objectstore.Store {
	return objectstore.New(fs.Dir(l.objectFiles()), l.settings().objects)
}

// recoverObjects makes the directory of the files of objects and reads what is there.
func (l *life) recoverObjects() error {
	if _, err := fs.Make(l.objectFiles()); err != nil {
		return err
	}
	if err := l.objects.Recover(); err != nil {
		return err
	}
	return l.checkObjects()
}

// checkObjects reserves the numbers of all files that rows name, and logs how many of these files are missing.
func (l *life) checkObjects() error {
	files, err := l.objects.Files()
	if err != nil {
		return err
	}
	missing := 0
	for from, done := uint32(0), false; !done; {
		var list []storage.Stored
		list, from, done = l.follower.Objects(from, objectBatch)
		for _, o := range list {
			l.objects.Reserve(o.File)
			if files.Has(o) {
				continue
			}
			if missing++; missing <= maxNamed {
				l.log.Error("file of an object is missing", "address", o.Address.String(), "size", o.Size)
			}
		}
	}
	if missing > 0 {
		l.log.Error("objects without a file: reads of them fail until the files are put back", "objects", missing, "directory", l.objectFiles())
	}
	return nil
}

const (
	objectBatch = 4096 // rows that are read together
	maxNamed    = 10   // missing files that are logged one by one
)

// collectObjects removes the files that no row names, now and then. While the journal takes no writes nothing is removed:
// rows may be missing from a damaged one.
func (l *life) collectObjects(ctx context.Context) {
	for sleep(ctx, l.settings().collect) == nil {
		if !l.ear.status().Writes || l.damaged.Load() {
			continue
		}
		began := time.Now()
		c, err := l.objects.Collect(l.follower.HasFile)
		l.metrics.Collected(c.Files, c.Bytes)
		if err != nil {
			l.log.Error("unused files of objects not removed", "err", err)
		}
		if c.Files > 0 {
			l.log.Info("unused files of objects removed", "files", c.Files, "bytes", c.Bytes, "took", time.Since(began))
		}
	}
}

// showObjects shows the storage plane.
func (l *life) showObjects() {
	l.show("uploads", func() (int, int) { return l.objects.Uploads(), l.settings().objects.Uploads })
	of := func(pick func(logical, physical storage.Usage) uint64) func() float64 {
		return func() float64 { return float64(pick(l.follower.Stored())) }
	}
	l.metrics.Sample("storage_objects", of(func(u, _ storage.Usage) uint64 { return u.Objects }), "logical")
	l.metrics.Sample("storage_objects", of(func(_, u storage.Usage) uint64 { return u.Objects }), "physical")
	l.metrics.Sample("storage_bytes", of(func(u, _ storage.Usage) uint64 { return u.Bytes }), "logical")
	l.metrics.Sample("storage_bytes", of(func(_, u storage.Usage) uint64 { return u.Bytes }), "physical")
}
