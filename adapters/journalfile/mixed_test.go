package journalfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/record"
	"macronode/core/types"
)

// A past is a data directory, the frames that were sealed in it, and its writers.
type past struct {
	d       *world.Disk
	sealed  []record.Sealed
	writers []types.Epoch
}

// live adds runs to a past, each of some batches, with or without an end of the last segment that proves its frames. Epoch returns how far the
// epoch of a run is from the last one.
func (p *past) live(r *rapid.T, salt uint64, least int, epoch func() types.Epoch) {
	for range rapid.IntRange(1, 3).Draw(r, "runs") {
		j, _, err := journalfile.Reading{Epoch: func(last types.Epoch) (types.Epoch, error) {
			p.writers = append(p.writers, last+epoch())
			return last + epoch(), nil
		}}.Recover(p.d, ours)
		if err != nil {
			r.Fatal(err)
		}
		j.Roll = int64(rapid.SampledFrom([]int{150, 400, 900, 5000}).Draw(r, "roll"))
		for range rapid.IntRange(least, 5).Draw(r, "batches") {
			p.sealed = append(p.sealed, addSalted(r, j, rapid.IntRange(1, 4).Draw(r, "frames"), salt)...)
		}
		if err := j.Close(); err != nil {
			r.Fatal(err)
		}
	}
}

func (p *past) copied() past {
	return past{p.d.Copy(), slices.Clone(p.sealed), slices.Clone(p.writers)}
}

// has reports whether a frame is one of the past.
func (p *past) has(s record.Sealed) bool {
	return int(s.LSN) <= len(p.sealed) && same(s, p.sealed[s.LSN-1])
}

// TestMixedPasts: segments of a journal are mixed with those of a copy that was started, too, and of an older copy, and some are damaged. With
// the list of its writers, all that is delivered or read is the journal's own. Without, it is of one past, and the journal's own if a proof
// contradicts the segments. An inspection and reads agree. A start from a snapshot of the copy goes on with no frame.
func TestMixedPasts(t *testing.T) {
	saw := map[string]int{}
	rapid.Check(t, func(r *rapid.T) {
		own := past{d: world.NewDisk()}
		own.live(r, 1, 0, func() types.Epoch { return 1 })
		older := own.copied()
		own.live(r, 1, 0, func() types.Epoch { return 1 })
		other := own.copied()
		own.live(r, 1, 0, func() types.Epoch { return 3 })
		other.live(r, 9, 1, func() types.Epoch { return 5 })
		if len(own.sealed) == 0 {
			return
		}
		files, faults := mixture(r, own.d, other.d, older.d)
		var proofs []journalfile.Proof
		for n := range rapid.IntRange(0, 2).Draw(r, "proofs") {
			lsn := len(own.sealed)
			if n > 0 {
				lsn = rapid.IntRange(1, lsn).Draw(r, "proof")
			}
			last := own.sealed[lsn-1]
			proofs = append([]journalfile.Proof{{LSN: last.LSN, Root: last.Root, Source: "a file"}}, proofs...)
		}
		m := mixed{faults: faults, own: &own, other: &other, proofs: proofs, isListed: rapid.Bool().Draw(r, "list")}
		m.of = []*past{&own, &other}[rapid.IntRange(0, 1).Draw(r, "snapshot of")]
		m.from = types.LSN(rapid.IntRange(0, len(m.of.sealed)).Draw(r, "snapshot"))
		if wrong := m.shows(disk(r, files)); wrong != "" {
			r.Fatalf("%s\n%s", wrong, own.describe(files, other))
		}
		for _, word := range m.saw {
			saw[word]++
		}
	})
	for _, want := range []string{"listed", "not listed", "whole", "damaged", "foreign", "from a snapshot", "snapshot refused"} {
		if saw[want] == 0 {
			t.Errorf("never seen: %s, of %v", want, saw)
		}
	}
}

// describe lists the segments of files, and which frames of each past they have.
func (p *past) describe(files map[string][]byte, other past) (text string) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text += name + ":"
		b := files[name]
		if len(b) >= startSize {
			text += fmt.Sprintf(" begins at %d, known %d, epoch %d:", b[20], b[28], b[36])
		}
		for n := range max(len(p.sealed), len(other.sealed)) {
			has := func(of past) bool { return n < len(of.sealed) && bytes.Contains(b, of.sealed[n].Root[:]) }
			switch is, isOther := has(*p), has(other); {
			case is && isOther:
				text += fmt.Sprint(" ", n+1)
			case is:
				text += fmt.Sprint(" own ", n+1)
			case isOther:
				text += fmt.Sprint(" other ", n+1)
			}
		}
		text += "\n"
	}
	return text
}

// mixture takes the segments of the first disk, and then some of others in their place or behind the last, and damages some.
func mixture(r *rapid.T, own *world.Disk, others ...*world.Disk) (files map[string][]byte, faults int) {
	files = map[string][]byte{}
	for _, name := range names(r, own) {
		files[name] = read(r, own, name)
	}
	d := others[rapid.IntRange(0, len(others)-1).Draw(r, "of")]
	theirs := names(r, d)
	mixed := rapid.IntRange(0, 4).Draw(r, "mixed")
	if mixed < 4 {
		faults++
	}
	switch mixed {
	case 0: // some in a row
		from := rapid.IntRange(0, min(len(theirs)-1, len(files))).Draw(r, "from") // without a gap behind the last
		upto := rapid.IntRange(from, len(theirs)-1).Draw(r, "upto")
		for n := from; n <= upto; n++ {
			files[theirs[n]] = read(r, d, theirs[n])
		}
	case 1: // one under another number
		to := fmt.Sprintf("%08d.seg", rapid.IntRange(1, len(files)+1).Draw(r, "to"))
		files[to] = read(r, d, rapid.SampledFrom(theirs).Draw(r, "segment"))
	case 2: // all
		clear(files)
		for _, name := range theirs {
			files[name] = read(r, d, name)
		}
	case 3: // a part of one: two segments have the same bytes
		faults++
		to := rapid.SampledFrom(slices.Sorted(maps.Keys(files))).Draw(r, "to")
		from := read(r, d, rapid.SampledFrom(theirs).Draw(r, "segment"))
		begin := 0 // or the header of a group: inside of one, nothing shows the difference up to the next damage, which is documented
		if at := rapid.IntRange(0, len(files[to])).Draw(r, "begin"); at < len(files[to]) {
			begin = max(0, bytes.LastIndex(files[to][:at], []byte("MNB1")))
		}
		begin = min(begin, len(from))
		end := min(len(from), begin+rapid.IntRange(1, len(from)+1).Draw(r, "bytes"))
		rest := files[to][min(end, len(files[to])):]
		files[to] = slices.Concat(files[to][:begin], from[begin:end], rest)
	}
	for range rapid.IntRange(0, 2).Draw(r, "damages") {
		faults++
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(files))).Draw(r, "damaged")
		text := bytes.Clone(files[name])
		if len(text) == 0 {
			continue
		}
		at := rapid.IntRange(0, min(len(text)-1, len(bytes.TrimRight(text, "\x00"))+9)).Draw(r, "at")
		switch rapid.IntRange(0, 4).Draw(r, "kind") {
		case 0, 1:
			text[at] ^= 1 << rapid.IntRange(0, 7).Draw(r, "bit")
		case 2:
			clear(text[at:min(len(text), at+rapid.IntRange(1, 400).Draw(r, "bytes"))])
		case 3:
			text = text[:at]
		default:
			if delete(files, name); len(files) == 0 {
				files[name] = text
			}
			continue
		}
		files[name] = text
	}
	return files, faults
}

// mixed are the segments of two pasts in one directory, and what a start knows about them.
type mixed struct {
	faults     int
	own, other *past
	proofs     []journalfile.Proof
	isListed   bool
	of         *past     // of the snapshot
	from       types.LSN // its last frame; 0: there is none
	saw        []string
}

func (m *mixed) note(is bool, word, otherwise string) {
	if !is {
		word = otherwise
	}
	m.saw = append(m.saw, word)
}

// shows opens a journal, and returns what is wrong with what it delivers, reads and reports.
func (m *mixed) shows(d *world.Disk) (wrong string) {
	writers, doubt := m.own.writers, journalfile.Doubt{}
	if m.note(m.isListed, "listed", "not listed"); !m.isListed {
		is, err := journalfile.ReadInRow(still{d})
		if err != nil {
			return err.Error()
		}
		writers, doubt = is.Writers, journalfile.Doubt{Why: "the list is missing", IsGap: is.Breaks}
	}
	segments, foreign, err := journalfile.Own(d, writers)
	if err != nil {
		return err.Error()
	}
	m.note(len(foreign) > 0, "foreign", "no foreign")
	r := journalfile.Reading{}
	if r.Verdict, err = journalfile.Judge(segments, m.proofs, doubt); err != nil {
		return err.Error()
	}
	m.note(r.Verdict.Against.LSN > 0, "contradicted", "not contradicted")
	for _, p := range m.proofs {
		r.Known = p.LSN
	}
	for _, p := range foreign {
		if p.IsEnd {
			r.Unsure = errors.New(p.Name)
		}
	}
	lost := map[types.LSN]bool{}
	inspected, err := r.Inspect(segments, func(d *journalfile.Damage) error {
		for lsn := d.From; lsn <= d.To; lsn++ {
			lost[lsn] = true
		}
		return nil
	})
	if err != nil {
		return "inspected: " + err.Error()
	}
	var k kept
	r.Each = k.each
	if m.from > 0 {
		s := m.of.sealed[m.from-1]
		r.From = journalfile.From{LSN: s.LSN, Root: s.Root, Journal: s.Journal}
	}
	j, found, err := r.Recover(segments, ours)
	if m.from > 0 {
		isApart := errors.Is(err, journalfile.ErrApart)
		if m.note(isApart, "snapshot refused", "from a snapshot"); isApart {
			k.frames, r.From = nil, journalfile.From{}
			j, found, err = r.Recover(segments, ours)
		} else if m.isListed && !m.own.has(m.of.sealed[m.from-1]) {
			return fmt.Sprintf("a start from frame %v of a copy, %v", m.from, err)
		}
	}
	if err != nil && !errors.Is(err, journalfile.ErrDamaged) {
		return "recovered: " + err.Error()
	}
	defer j.Close()
	m.note(err == nil, "whole", "damaged")
	if err == nil && found.Last < r.Known {
		return fmt.Sprintf("all is delivered, up to %v of %v", found.Last, r.Known)
	}
	shown := slices.Clone(k.frames)
	for lsn := types.LSN(1); lsn <= found.Known; lsn++ {
		s, err := j.Read(lsn)
		switch {
		case err == nil == lost[lsn] && lsn <= inspected.Known && m.faults < 2: // where several starts are damaged, it may be unknown of which journal a frame is
			return fmt.Sprintf("reading %v: %v, inspected as lost %v", lsn, err, lost)
		case err == nil:
			shown = append(shown, s)
		case !errors.Is(err, journalfile.ErrDamaged) && !errors.Is(err, journalfile.ErrGone):
			return fmt.Sprintf("reading %v: %v", lsn, err)
		}
	}
	if r.From.LSN > 0 {
		shown = append(shown, m.of.sealed[r.From.LSN-1])
	}
	isOf := func(p *past) bool {
		return !slices.ContainsFunc(shown, func(s record.Sealed) bool { return !p.has(s) })
	}
	switch {
	case isOf(m.own):
	case m.isListed:
		return fmt.Sprintf("frames of another past are shown, %v", err)
	case r.Verdict.Against.LSN > 0, doubt.IsGap:
		return fmt.Sprintf("frames of another past are shown, although %+v, %v", r.Verdict, err)
	case !isOf(m.other):
		return fmt.Sprintf("frames of two pasts are shown, %v", err)
	}
	return ""
}
