package main

import (
	"fmt"
	"time"

	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
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
	lsn := f.m.follower.Mark() + 1
	body, _ := record.Add(record.Begin(nil, lsn, types.Time(time.Now().UnixMilli())), 0, &f.record)
	must(f.m.t, f.m.follower.Fold([]record.Sealed{{LSN: lsn, Body: body}}))
	return types.Position{LSN: lsn}
}
func (f *stepFrame) Savepoint() {}
func (f *stepFrame) Undo()      {}
func (f *stepFrame) Commit()    {}
func (f *stepFrame) FindRef(types.Tenant, types.NameHash, types.TxID) (types.TxID, bool) {
	return types.TxID{}, false
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
func objectSeries(own string) (float64, moves) {
	all := moves{queueSeries("recent_frames"): 2, seriesOf("storage_objects", "kind", "logical"): 2, seriesOf("storage_objects", "kind", "physical"): 1,
		seriesOf("storage_bytes", "kind", "logical"): 14, seriesOf("storage_bytes", "kind", "physical"): 7}
	by := all[own]
	delete(all, own)
	return by, all
}

func init() {
	object := 0
	for _, name := range []string{"storage_objects", "storage_bytes"} {
		causes[name] = func(m *metered, l []string) (float64, moves) {
			object++
			m.put(object, "photos")
			m.put(object, "books")
			return objectSeries(seriesOf(name, "kind", l[0]))
		}
	}
	causes["storage_transferred_bytes_total"] = func(m *metered, l []string) (float64, moves) {
		if l[0] == "in" {
			m.metrics.Objects().Stored(11)
		} else {
			m.metrics.Objects().Sent(11)
		}
		return 11, nil
	}
	causes["storage_unreadable_total"] = func(m *metered, _ []string) (float64, moves) { m.metrics.Objects().Damaged(); return 1, nil }
	causes["storage_collected_files_total"] = func(m *metered, _ []string) (float64, moves) {
		m.metrics.Collected(3, 40)
		return 3, moves{"storage_collected_bytes_total": 40}
	}
	causes["storage_collected_bytes_total"] = func(m *metered, _ []string) (float64, moves) {
		m.metrics.Collected(3, 40)
		return 40, moves{"storage_collected_files_total": 3}
	}
	queueCauses["uploads"] = func(m *metered, _ []string) (float64, moves) {
		_, err := m.objects.Begin()
		must(m.t, err)
		return 1, nil
	}
}
