package journalfile_test

import (
	"errors"
	"slices"
	"testing"

	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/types"
)

// hidden returns the names of the segments that are not of a journal, and of those the ones that may be in the place of its newest.
func hidden(t *testing.T, files map[string][]byte, writers []types.Epoch) (all, ends []string) {
	t.Helper()
	d := disk(t, files)
	own, foreign, err := journalfile.Own(d, writers)
	must(t, err)
	left := names(t, own)
	for _, f := range foreign {
		if all = append(all, f.Name); f.IsEnd {
			ends = append(ends, f.Name)
		}
		if _, err := own.Open(f.Name); err == nil || slices.Contains(left, f.Name) {
			t.Errorf("%s can be read: %s", f.Name, f.Why)
		}
	}
	if len(left)+len(foreign) != len(names(t, d)) {
		t.Errorf("%q are left without %q", left, all)
	}
	return all, ends
}

// changed returns files with one changed; without a text, it is removed.
func changed(files map[string][]byte, name string, text []byte) map[string][]byte {
	m := map[string][]byte{}
	for n, b := range files {
		m[n] = b
	}
	if m[name] = text; text == nil {
		delete(m, name)
	}
	return m
}

// TestOwnHidesOtherWriters: a segment is of a journal if the process that wrote it is listed. A damaged start does not change that, if another
// part shows the process.
func TestOwnHidesOtherWriters(t *testing.T) {
	segments, _ := several(t)
	all := []types.Epoch{1, 2, 3, 4, 5}
	spoilt := slices.Clone(segments["00000002.seg"])
	spoilt[9] ^= 1
	for what, c := range map[string]struct {
		files     map[string][]byte
		writers   []types.Epoch
		all, ends []string
	}{
		"all are listed":           {segments, all, nil, nil},
		"there is no list":         {segments, nil, nil, nil},
		"the last writer is not":   {segments, all[:4], []string{"00000008.seg"}, []string{"00000008.seg"}},
		"a writer is not":          {segments, []types.Epoch{1, 3, 4, 5}, []string{"00000004.seg", "00000005.seg"}, nil},
		"a start is damaged":       {changed(segments, "00000002.seg", spoilt), all, nil, nil},
		"of another writer":        {changed(segments, "00000002.seg", spoilt), all[1:], []string{"00000001.seg", "00000002.seg", "00000003.seg"}, nil},
		"nothing is left":          {changed(segments, "00000002.seg", make([]byte, 500)), all, []string{"00000002.seg"}, nil},
		"empty, behind the last":   {changed(segments, "00000009.seg", []byte{}), all, []string{"00000009.seg"}, []string{"00000009.seg"}},
		"a copy behind the last":   {changed(segments, "00000009.seg", segments["00000003.seg"]), all, []string{"00000009.seg"}, []string{"00000009.seg"}},
		"a copy of the last":       {changed(segments, "00000009.seg", segments["00000008.seg"]), all, []string{"00000009.seg"}, []string{"00000009.seg"}},
		"an older one in place":    {changed(segments, "00000005.seg", segments["00000003.seg"]), all, []string{"00000005.seg"}, nil},
		"a newer one in place":     {changed(segments, "00000003.seg", segments["00000005.seg"]), all, []string{"00000003.seg"}, nil},
		"a newer one as the first": {changed(segments, "00000001.seg", segments["00000005.seg"]), all, []string{"00000001.seg"}, nil},
		"one is missing":           {changed(segments, "00000003.seg", nil), all, nil, nil},
	} {
		is, ends := hidden(t, c.files, c.writers)
		if !slices.Equal(is, c.all) || !slices.Equal(ends, c.ends) {
			t.Errorf("%s: %q are hidden, at the end %q", what, is, ends)
		}
	}
}

// TestSegmentsInARow: without a list, the writers are those of the segments that follow one another from the oldest one on.
func TestSegmentsInARow(t *testing.T) {
	segments, _ := several(t)
	without := changed(segments, "00000001.seg", nil)
	for what, c := range map[string]struct {
		files         map[string][]byte
		want          []types.Epoch
		lacks, breaks bool
	}{
		"none":                    {nil, nil, false, false},
		"all":                     {segments, []types.Epoch{1, 2, 3, 4, 5}, false, false},
		"without the first":       {without, []types.Epoch{1, 2, 3, 4, 5}, true, false},
		"up to a missing one":     {changed(segments, "00000002.seg", nil), []types.Epoch{1}, true, true},
		"up to one out of place":  {changed(segments, "00000005.seg", segments["00000007.seg"]), []types.Epoch{1, 2}, false, true},
		"the oldest is damaged":   {changed(segments, "00000001.seg", append(make([]byte, 130), segments["00000001.seg"][130:]...)), []types.Epoch{1}, false, true},
		"none of it can be known": {changed(segments, "00000001.seg", make([]byte, 99)), []types.Epoch{0}, false, true},
	} {
		is, err := journalfile.ReadInRow(disk(t, c.files))
		if must(t, err); !slices.Equal(is.Writers, c.want) || is.Lacks != c.lacks || is.Breaks != c.breaks {
			t.Errorf("%s: %+v, want %v", what, is, c.want)
		}
	}
}

// TestReadErrorIsNoOtherWriter: a disk that fails to read does not make a segment another's.
func TestReadErrorIsNoOtherWriter(t *testing.T) {
	segments, _ := several(t)
	d := disk(t, segments)
	d.FailRead = true
	if _, foreign, err := journalfile.Own(d, []types.Epoch{1}); !errors.Is(err, world.ErrRead) {
		t.Errorf("%v, %v", foreign, err)
	}
	d.FailRead = true
	if all, err := journalfile.ReadInRow(d); !errors.Is(err, world.ErrRead) {
		t.Errorf("%v, %v", all, err)
	}
}

// TestEpochIsRecordedFirst: the epoch of a writer is that of its caller, higher than the last one. If it cannot be recorded, nothing is written.
func TestEpochIsRecordedFirst(t *testing.T) {
	segments, _ := several(t)
	d := disk(t, segments)
	before := files(t, d)
	failed := errors.New("no space")
	_, _, err := journalfile.Reading{Epoch: func(types.Epoch) (types.Epoch, error) { return 0, failed }}.Recover(d, ours)
	if !errors.Is(err, failed) || files(t, d) != before {
		t.Errorf("%v", err)
	}
	j, _, err := journalfile.Reading{Epoch: func(last types.Epoch) (types.Epoch, error) {
		if last != 5 || files(t, d) != before {
			t.Errorf("the last writer was %d", last)
		}
		return 77, nil
	}}.Recover(d, ours)
	must(t, err)
	must(t, j.Close())
	if all, ends := hidden(t, changed(segments, "00000009.seg", read(t, d, "00000009.seg")), []types.Epoch{1, 2, 3, 4, 5}); len(all) != 1 || len(ends) != 1 {
		t.Errorf("the writer is not in its segment: %q", all)
	}
}
