package server

import (
	"fmt"
	"syscall"
	"time"

	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/repair"
	"macronode/core/storage"
	"macronode/core/types"
)

// stepFrame is the frame of one put, which the read model folds at once.
type stepFrame struct {
	m      *metered
	record record.Record
}

func (f *stepFrame) Record() *record.Record { return &f.record }
func (f *stepFrame) Add() types.Position {
	f.m.plane.Apply(0, types.TxID{}, &f.record)
	lsn := f.m.store.readModel.Mark() + 1
	body, _ := record.Add(record.Begin(nil, lsn, types.Time(time.Now().UnixMilli())), 0, &f.record)
	testkit.Must(f.m.t, f.m.store.readModel.Fold([]record.Sealed{{LSN: lsn, Body: body}}))
	return types.Position{LSN: lsn}
}
func (f *stepFrame) Savepoint() {}
func (f *stepFrame) Undo()      {}
func (f *stepFrame) Commit()    {}
func (f *stepFrame) FindRef(types.Tenant, types.NameHash, command.PriorOutcome) (command.PriorOutcome, bool) {
	return command.PriorOutcome{}, false
}

// put stores an object of 7 bytes in a bucket.
func (m *metered) put(object int, bucket string) {
	c := &storage.Put{Header: command.Header{Tenant: 1}, Bucket: storage.Bucket(bucket), Address: storage.Address(digest.Sum(fmt.Append(nil, object))), Size: 7, File: storage.File(object)}
	c.Seal()
	var r event.Reply
	if m.plane.Decide(0, c, &stepFrame{m: m}, &r); r.Problem != event.None {
		m.t.Fatal(r.Problem)
	}
}

// objectSeries are the series of an object in two buckets.
func objectSeries(own string) (float64, testkit.Moves) {
	all := testkit.Moves{testkit.QueueSeries("recent_frames"): 2, testkit.Series("storage_objects", "kind", "logical"): 2, testkit.Series("storage_objects", "kind", "physical"): 1,
		testkit.Series("storage_bytes", "kind", "logical"): 14, testkit.Series("storage_bytes", "kind", "physical"): 7}
	by := all[own]
	delete(all, own)
	return by, all
}

func init() {
	object := 0
	for _, name := range []string{"storage_objects", "storage_bytes"} {
		causes[name] = func(m *metered, l []string) (float64, testkit.Moves) {
			object++
			m.put(object, "photos")
			m.put(object, "books")
			return objectSeries(testkit.Series(name, "kind", l[0]))
		}
	}
	causes["storage_transferred_bytes_total"] = func(m *metered, l []string) (float64, testkit.Moves) {
		if l[0] == "in" {
			m.metrics.Objects().Stored(11)
		} else {
			m.metrics.Objects().Sent(11)
		}
		return 11, nil
	}
	causes["storage_unreadable_total"] = func(m *metered, _ []string) (float64, testkit.Moves) { m.metrics.Objects().Damaged(); return 1, nil }
	causes["storage_collected_files_total"] = func(m *metered, _ []string) (float64, testkit.Moves) {
		m.metrics.Collected(3, 40)
		return 3, testkit.Moves{"storage_collected_bytes_total": 40}
	}
	causes["storage_collections_deferred_total"] = func(m *metered, _ []string) (float64, testkit.Moves) {
		m.metrics.CollectionDeferred()
		return 1, nil
	}
	causes["storage_collected_bytes_total"] = func(m *metered, _ []string) (float64, testkit.Moves) {
		m.metrics.Collected(3, 40)
		return 40, testkit.Moves{"storage_collected_files_total": 3}
	}
	causes["repair_copies_total"] = func(m *metered, l []string) (float64, testkit.Moves) {
		switch r := m.metrics.Repairs(); l[0] {
		case "lost":
			r.Lost()
		case "waiting":
			r.Waiting()
		default:
			r.Repaired(l[0] == "restored")
		}
		return 1, nil
	}
	causes["repair_wait_seconds"] = func(m *metered, _ []string) (float64, testkit.Moves) {
		m.metrics.Repairs().Waited(time.Second)
		return 1, testkit.Moves{"repair_wait_seconds_sum": 1}
	}
	causes["storage_lost_objects"] = func(m *metered, _ []string) (float64, testkit.Moves) {
		object++
		m.put(object, "photos")
		m.put(object, "books")
		_, moves := objectSeries("")
		m.objects.repairs.noteLost(storage.Stored{Address: storage.Address(digest.Sum(fmt.Append(nil, object))), Object: storage.Object{Size: 7, File: storage.File(object)}})
		return 1, moves
	}
	causes["storage_unremoved_files"] = func(m *metered, _ []string) (float64, testkit.Moves) {
		m.objects.unremoved.Add(2)
		return 2, nil
	}
	causes["storage_failed_providers"] = func(m *metered, _ []string) (float64, testkit.Moves) {
		m.objects.files.MarkFailed(0, syscall.EIO)
		return 1, nil
	}
	planned := storage.File(0)
	plan := func(m *metered) {
		planned++
		m.objects.repairs.plan(storage.Stored{Object: storage.Object{File: planned}}, false, false)
	}
	causes["repair_skipped_total"] = func(m *metered, _ []string) (float64, testkit.Moves) {
		before := m.objects.repairs.status()
		for range repair.DefaultQueue - before.Waiting + 3 {
			plan(m)
		}
		return 3, testkit.Moves{testkit.QueueSeries("repairs"): float64(repair.DefaultQueue - before.Waiting)}
	}
	queueCauses["repairs"] = func(m *metered, _ []string) (float64, testkit.Moves) {
		plan(m)
		return 1, nil
	}
	queueCauses["uploads"] = func(m *metered, _ []string) (float64, testkit.Moves) {
		_, err := m.objects.files.Begin(1)
		testkit.Must(m.t, err)
		return 1, nil
	}
}
