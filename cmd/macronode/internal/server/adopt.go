package server

import (
	"errors"
	"os"
	"path/filepath"

	"macronode/adapters/backup"
	"macronode/adapters/durable"
	"macronode/adapters/epochs"
	"macronode/adapters/recovery"
)

// adoptBackup removes the files from the directory of the segments that make it that of a backup: the segments of a backup were put into the
// data directory. Otherwise the node would be taken for a backup if the mark were lost later, and the list of the backup for that of the node.
// What the files record is in the mark and in the list of the data directory before. A damaged journal keeps them: they are evidence.
func (s *journalStore) adoptBackup(r *recovery.Result) {
	var there []string
	for _, name := range [...]string{epochs.Name, backup.CutName} {
		if _, err := os.Stat(filepath.Join(s.segmentsDir(), name)); err == nil {
			there = append(there, name)
		}
	}
	if len(there) == 0 || r.Damage != nil || r.Found.Last == 0 {
		return
	}
	err := durable.Mark{Journal: r.Found.Journal, LSN: r.Found.Last, Root: r.Found.Root, At: r.State.At}.Write(s.dir, durable.Name)
	if err == nil {
		s.mark.lsn = r.Found.Last
		for _, name := range there {
			err = errors.Join(err, s.segments.Live.Remove(name))
		}
		err = errors.Join(err, s.segments.Live.SyncDir())
	}
	if err != nil {
		s.log.Warn("files of a backup not removed from the segments: without them, the node is not mistaken for a backup; the next start tries again",
			"path", s.segmentsDir(), "files", there, "err", err)
		return
	}
	s.log.Info("segments of a backup are now those of the node", "path", s.segmentsDir(), "removed", there, "last_lsn", uint64(r.Found.Last))
}
