package journalfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"macronode/adapters/journalfile"
	"macronode/chaos/world"
	"macronode/core/record"
	"macronode/core/types"
)

// A past is a data directory and the frames that were sealed in it.
type past struct {
	d      *world.Disk
	sealed []record.Sealed
}

// live adds runs to a past, each of some batches, with or without an end of the last segment that proves its frames.
func (p *past) live(r *rapid.T, salt uint64, least int) {
	for range rapid.IntRange(1, 3).Draw(r, "runs") {
		j, _, err := journalfile.Recover(p.d, ours, nil)
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

func (p *past) copied() past { return past{p.d.Copy(), slices.Clone(p.sealed)} }

// TestMixedPasts: segments of a journal, of a copy that went on otherwise and of an older copy are mixed, and some are damaged. What is
// delivered is of one of the pasts. Up to the latest proof whose frame there is, all that is delivered or read is the journal's own. An
// inspection and reads agree.
func TestMixedPasts(t *testing.T) {
	saw := map[string]int{}
	rapid.Check(t, func(r *rapid.T) {
		own := past{d: world.NewDisk()}
		own.live(r, 1, 0)
		older := own.copied()
		own.live(r, 1, 0)
		other := own.copied()
		own.live(r, 1, 0)
		other.live(r, 9, 1)
		if len(own.sealed) == 0 {
			return
		}
		files, isDamaged := mixture(r, own.d, other.d, older.d)
		var proofs []journalfile.Proof
		for n := range rapid.IntRange(0, 2).Draw(r, "proofs") {
			lsn := len(own.sealed)
			if n > 0 {
				lsn = rapid.IntRange(1, lsn).Draw(r, "proof")
			}
			last := own.sealed[lsn-1]
			proofs = append([]journalfile.Proof{{LSN: last.LSN, Root: last.Root, Source: "a file"}}, proofs...)
		}
		is, wrong := shows(disk(r, files), proofs, own, other)
		if wrong != "" && !isDamaged {
			r.Fatalf("%s\n%s", wrong, own.describe(r, files, other))
		}
		for _, word := range is {
			saw[word]++
		}
	})
	for _, want := range []string{"proved", "not proved", "whole", "damaged"} {
		if saw[want] == 0 {
			t.Errorf("never seen: %s, of %v", want, saw)
		}
	}
}

// describe lists the segments of files, and which frames of each past they have.
func (p *past) describe(r *rapid.T, files map[string][]byte, other past) (text string) {
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
func mixture(r *rapid.T, own *world.Disk, others ...*world.Disk) (files map[string][]byte, isDamaged bool) {
	files = map[string][]byte{}
	for _, name := range names(r, own) {
		files[name] = read(r, own, name)
	}
	d := others[rapid.IntRange(0, len(others)-1).Draw(r, "of")]
	theirs := names(r, d)
	switch rapid.IntRange(0, 2).Draw(r, "mixed") {
	case 0: // some in a row
		from := rapid.IntRange(0, min(len(theirs)-1, len(files))).Draw(r, "from") // without a gap behind the last
		upto := rapid.IntRange(from, len(theirs)-1).Draw(r, "upto")
		for n := from; n <= upto; n++ {
			files[theirs[n]] = read(r, d, theirs[n])
		}
	case 1: // one under another number
		to := fmt.Sprintf("%08d.seg", rapid.IntRange(1, len(files)+1).Draw(r, "to"))
		files[to] = read(r, d, rapid.SampledFrom(theirs).Draw(r, "segment"))
	}
	for range rapid.IntRange(0, 2).Draw(r, "damages") {
		isDamaged = true
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
	return files, isDamaged
}

// shows opens a journal, and returns whether it is proved and whole, and what is wrong with what it delivers, reads and reports.
func shows(d *world.Disk, proofs []journalfile.Proof, own, other past) (is []string, wrong string) {
	reading := journalfile.Reading{}
	var err error
	if reading.Proof, reading.Older, err = journalfile.Reached(d, proofs); err != nil {
		return nil, err.Error()
	}
	for _, p := range proofs {
		reading.Known = p.LSN
	}
	lost := map[types.LSN]bool{}
	var damage []journalfile.Damage
	inspected, err := reading.Inspect(still{d}, func(d *journalfile.Damage) error {
		damage = append(damage, *d)
		for lsn := d.From; lsn <= d.To; lsn++ {
			lost[lsn] = true
		}
		return nil
	})
	if err != nil {
		return nil, "inspected: " + err.Error()
	}
	var k kept
	reading.Each = k.each
	j, found, err := reading.Recover(d, ours)
	if err != nil && !errors.Is(err, journalfile.ErrDamaged) {
		return nil, "recovered: " + err.Error()
	}
	defer j.Close()
	proved := int(reading.Proof.LSN)
	isReported := slices.ContainsFunc(damage, func(d journalfile.Damage) bool { return strings.Contains(d.Why, "earlier frames perhaps too") })
	isApart := proved > 0 && (proved > len(other.sealed) || !same(own.sealed[proved-1], other.sealed[proved-1])) // so that nothing behind it is of the other past
	isOf := func(p past) bool {
		return len(k.frames) <= len(p.sealed) && slices.EqualFunc(k.frames, p.sealed[:len(k.frames)], same)
	}
	n := len(k.frames)
	hidden := slices.IndexFunc(k.frames, func(s record.Sealed) bool {
		return (isApart || int(s.LSN) <= proved) && !isReported && int(s.LSN) <= len(own.sealed) && !same(s, own.sealed[s.LSN-1]) && !lost[s.LSN] // an inspection reports that nothing shows that it is of the journal
	})
	switch {
	case !isOf(own) && !isOf(other):
		return nil, fmt.Sprintf("%d frames are delivered that are of no past, proved up to %d; %v", n, proved, err)
	case hidden >= 0:
		return nil, fmt.Sprintf("%d frames are delivered, of them %v of another past, proved up to %d; %v; inspected %v", n, hidden+1, proved, err, damage)
	case err == nil && n < int(reading.Known):
		return nil, fmt.Sprintf("%d frames are delivered as all, proved up to %d", n, proved)
	}
	isBehindGap := false // whose frames are behind one is not known
	for lsn := types.LSN(1); lsn <= found.Known; lsn++ {
		isBehindGap = isBehindGap || int(lsn) > len(own.sealed) || int(lsn) > proved && lost[lsn]
		s, err := j.Read(lsn)
		isOwn := int(lsn) <= len(own.sealed) && same(s, own.sealed[lsn-1])
		switch {
		case err == nil && !isOwn && (isApart && int(lsn) > proved && !isBehindGap || int(lsn) <= proved && !isReported || int(lsn) > len(other.sealed) || !same(s, other.sealed[lsn-1])):
			return nil, fmt.Sprintf("reading %v: another frame, proved up to %d; inspected %v", lsn, proved, damage)
		case err == nil == lost[lsn] && lsn <= inspected.Known:
			return nil, fmt.Sprintf("reading %v: %v; inspected %v", lsn, err, damage)
		case err != nil && !errors.Is(err, journalfile.ErrDamaged) && !errors.Is(err, journalfile.ErrGone):
			return nil, fmt.Sprintf("reading %v: %v", lsn, err)
		}
	}
	return []string{map[bool]string{true: "whole", false: "damaged"}[err == nil], map[bool]string{true: "not proved", false: "proved"}[proved == 0]}, ""
}
