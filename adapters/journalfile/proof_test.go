package journalfile_test

import (
	"errors"
	"testing"

	"macronode/adapters/journalfile"
	"macronode/core/types"
)

// TestContradictedFramesAreNotRead: if the frame of a proof has another root, nothing behind the last confirmed one before it is delivered, read
// or a begin. An inspection reports it.
func TestContradictedFramesAreNotRead(t *testing.T) {
	segments, sealed := several(t)
	end := types.LSN(len(sealed))
	right := func(lsn types.LSN) journalfile.Proof {
		return journalfile.Proof{LSN: lsn, Root: sealed[lsn-1].Root, Source: "a file"}
	}
	wrong := func(lsn types.LSN) journalfile.Proof {
		return journalfile.Proof{LSN: lsn, Root: types.Root{1}, Source: "a copy's"}
	}
	for what, c := range map[string]struct {
		proofs []journalfile.Proof
		upto   types.LSN // what is read
		of     types.LSN // the proof that is contradicted; 0: none
	}{
		"none":                                {nil, end, 0},
		"right":                               {[]journalfile.Proof{right(7), right(end)}, end, 0},
		"wrong, and a later one is right":     {[]journalfile.Proof{right(3), wrong(7), right(9)}, 3, 7},
		"wrong":                               {[]journalfile.Proof{wrong(7)}, 0, 7},
		"wrong, and an earlier one is right":  {[]journalfile.Proof{right(5), wrong(7)}, 5, 7},
		"two are wrong":                       {[]journalfile.Proof{right(5), wrong(7), wrong(9)}, 5, 7},
		"of a frame that is missing":          {[]journalfile.Proof{right(9), wrong(end + 9)}, end, 0},
		"of a missing frame, before it wrong": {[]journalfile.Proof{right(4), wrong(9), wrong(end + 9)}, 4, 9},
	} {
		d := disk(t, segments)
		r := journalfile.Reading{}
		var err error
		r.Verdict, err = journalfile.Judge(d, c.proofs, journalfile.Doubt{})
		must(t, err)
		if r.Verdict.Against.LSN != c.of || c.of > 0 && r.Verdict.Confirmed != c.upto {
			t.Errorf("%s: %+v", what, r.Verdict)
		}
		lost := end - c.upto
		_, err = r.Inspect(still{d}, func(d *journalfile.Damage) error {
			if d.From != c.upto+1 || d.To != end || !r.Verdict.IsReason(d) {
				t.Errorf("%s: %v", what, d)
			}
			lost -= d.To + 1 - d.From
			return nil
		})
		if must(t, err); lost != 0 {
			t.Errorf("%s: %d lost frames are not reported", what, lost)
		}
		var k kept
		r.Each = k.each
		j, _, err := r.Recover(d, ours)
		if int(c.upto) != len(k.frames) || (err != nil) != (c.of > 0) || c.of > 0 && !r.Verdict.IsReason(err) {
			t.Errorf("%s: %d frames, %v", what, len(k.frames), err)
		}
		for lsn := types.LSN(1); lsn <= end; lsn++ {
			if s, err := j.Read(lsn); (err == nil) != (lsn <= c.upto) || err == nil && !same(s, sealed[lsn-1]) || err != nil && !errors.Is(err, journalfile.ErrDamaged) {
				t.Errorf("%s: reading %v: %v", what, lsn, err)
			}
		}
		must(t, j.Close())
		for lsn := types.LSN(1); lsn <= end; lsn++ {
			r.From = after(sealed[lsn-1])
			if _, err := r.Scan(still{disk(t, segments)}); errors.Is(err, journalfile.ErrApart) != (lsn > c.upto) {
				t.Errorf("%s: from %v: %v", what, lsn, err)
			}
		}
	}
}

// TestDoubtHidesWhatIsNotConfirmed: if it is in doubt of which past the segments are, and the frame of the latest proof is missing or there is a
// gap, only what a proof confirms is read. A proof that came with the segments confirms nothing.
func TestDoubtHidesWhatIsNotConfirmed(t *testing.T) {
	segments, sealed := several(t)
	end := types.LSN(len(sealed))
	proof := func(lsn types.LSN, isWeak bool) journalfile.Proof {
		p := journalfile.Proof{LSN: lsn, Source: "a file", IsWeak: isWeak}
		if lsn <= end {
			p.Root = sealed[lsn-1].Root
		}
		return p
	}
	for what, c := range map[string]struct {
		proofs []journalfile.Proof
		doubt  journalfile.Doubt
		upto   types.LSN
	}{
		"no doubt":               {[]journalfile.Proof{proof(5, false), proof(end+9, false)}, journalfile.Doubt{}, end},
		"the latest is there":    {[]journalfile.Proof{proof(5, false)}, journalfile.Doubt{Why: "no list"}, end},
		"the latest is missing":  {[]journalfile.Proof{proof(5, false), proof(end+9, false)}, journalfile.Doubt{Why: "no list"}, 5},
		"a gap":                  {[]journalfile.Proof{proof(5, false)}, journalfile.Doubt{Why: "no list", IsGap: true}, 5},
		"only a weak one":        {[]journalfile.Proof{proof(5, false), proof(9, true), proof(end+9, false)}, journalfile.Doubt{Why: "a backup"}, 5},
		"a weak one is missing":  {[]journalfile.Proof{proof(5, false), proof(end+9, true)}, journalfile.Doubt{Why: "a backup"}, end},
		"nothing is known":       {nil, journalfile.Doubt{Why: "no list"}, end},
		"a gap and nothing else": {nil, journalfile.Doubt{Why: "no list", IsGap: true}, 0},
	} {
		d := disk(t, segments)
		v, err := journalfile.Judge(d, c.proofs, c.doubt)
		must(t, err)
		var k kept
		_, err = journalfile.Reading{Verdict: v, Each: k.each}.Scan(d)
		if len(k.frames) != int(c.upto) || (c.upto < end) != v.IsReason(err) {
			t.Errorf("%s: %d frames, %v", what, len(k.frames), err)
		}
	}
}
