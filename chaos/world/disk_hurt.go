package world

// The names of faults that Hurt gets.
const (
	ReadFailed  = "read failed"
	WriteFailed = "write failed" // and a part of it was written
	SyncFailed  = "sync failed"
	DirFailed   = "directory sync failed"
	SyncLied    = "sync lied"
	WentAstray  = "write went astray"
	WasFull     = "disk full"
	CutShort    = "disk full within a write"
	NameLost    = "name lost"
	WriteLost   = "write lost"
	WriteTorn   = "write torn"
	WriteMixed  = "write lost in parts"
	BitRotten   = "bit rotten"
	EndLost     = "end lost"
	FileLost    = "file lost"
)

// Hurts returns all names of faults.
func Hurts() []string {
	return []string{ReadFailed, WriteFailed, SyncFailed, DirFailed, SyncLied, WentAstray, WasFull, CutShort, NameLost, WriteLost, WriteTorn, WriteMixed, BitRotten, EndLost, FileLost}
}

// spend reports whether a failure was due, and resets it.
func (d *Disk) spend(due *bool, how, name string) bool {
	was := *due
	if *due = false; was {
		d.hurt(how, name)
	}
	return was
}

func (d *Disk) hurt(how, name string) {
	if d.Hurt != nil {
		d.Hurt(how, name)
	}
}
