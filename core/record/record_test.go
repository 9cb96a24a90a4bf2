package record

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/types"
)

// anyRecord draws a valid record.
func anyRecord() *rapid.Generator[Record] {
	amount := rapid.Custom(func(t *rapid.T) types.Amount {
		return types.Amount{Hi: rapid.Uint64().Draw(t, "hi"), Lo: rapid.Uint64().Draw(t, "lo")}
	})
	return rapid.Custom(func(t *rapid.T) Record {
		name := func(what string, most int) types.Name {
			return types.Name{Text: rapid.SliceOfN(rapid.Byte(), 0, most).Draw(t, what)}
		}
		k := Kind(rapid.Uint8Range(1, uint8(numKinds)-1).Draw(t, "kind"))
		r := Record{Kind: k}
		switch k {
		case Started:
			r.Journal, r.CutBytes = types.JournalID(rapid.Uint64().Draw(t, "journal")), rapid.Uint64().Draw(t, "cut")
			r.TailFrames = rapid.Uint32().Draw(t, "tail")
		case Restored:
			r.Journal, r.Upto = types.JournalID(rapid.Uint64().Draw(t, "journal")), types.LSN(rapid.Uint64().Draw(t, "upto"))
			copy(r.Root[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "root"))
		case KeysForgotten:
			r.Upto = types.LSN(rapid.Uint64().Draw(t, "upto"))
		case BootstrapKeyCreated:
			r.APIKey = &event.Key{ID: types.KeyID(rapid.Uint64().Draw(t, "id")), Tenant: types.Tenant(rapid.Uint32().Draw(t, "tenant")),
				Scopes: event.Scopes(rapid.Uint16Range(0, uint16(event.AllScopes)).Draw(t, "scopes")), Bootstrap: rapid.Bool().Draw(t, "boot")}
			copy(r.APIKey.Hash[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "hash"))
		case KeyCreated:
			r.Caller, r.APIKey = types.KeyID(rapid.Uint64().Draw(t, "caller")), anyKey(t)
		case KeyRevoked:
			r.Caller, r.Tenant = types.KeyID(rapid.Uint64().Draw(t, "caller")), types.Tenant(rapid.Uint32().Draw(t, "tenant"))
			r.APIKey = &event.Key{ID: types.KeyID(rapid.Uint64().Draw(t, "id"))}
		case HoldExpired:
			r.Tenant, r.Seq = types.Tenant(rapid.Uint32().Draw(t, "tenant")), types.Seq(rapid.Uint64().Draw(t, "seq"))
			r.Hold, r.HeldBalance = anyTxID(t), amount.Draw(t, "held now")
		case AllKeysRevoked:
		default:
			r.Op = rapid.SampledFrom(of(k)).Draw(t, "op")
			r.Tenant, r.Caller = types.Tenant(rapid.Uint32().Draw(t, "tenant")), types.KeyID(rapid.Uint64().Draw(t, "caller"))
			r.Key = name("key", types.MaxKey)
			copy(r.Hash[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "asked"))
		}
		if r.IsMovement() && k != HoldExpired {
			r.From, r.Seq = name("from", types.MaxAccount), types.Seq(rapid.Uint64().Draw(t, "seq"))
			r.Ref, r.Memo = name("ref", types.MaxKey), name("memo", types.MaxMemo).Text
		}
		switch k {
		case Posted, HoldOpened, HoldCaptured, HoldReleased:
			r.To, r.Asset, r.Amount = name("to", types.MaxAccount), name("asset", types.MaxAsset), amount.Draw(t, "amount")
		}
		switch k {
		case Posted, HoldOpened, Rejected:
			r.Nonce = types.Nonce(rapid.Uint64().Draw(t, "nonce"))
		}
		switch k {
		case Posted, HoldCaptured:
			r.FromBalance, r.ToBalance, r.DebitedToday = amount.Draw(t, "from now"), amount.Draw(t, "to now"), amount.Draw(t, "spent")
		}
		switch k {
		case HoldOpened, HoldCaptured, HoldReleased:
			r.HeldBalance = amount.Draw(t, "held now")
		}
		switch k {
		case HoldCaptured, HoldReleased:
			r.Hold = anyTxID(t)
		case HoldOpened:
			r.ExpiresAt = types.Time(rapid.Int64Min(0).Draw(t, "until"))
		case Rejected:
			anyProblem(t, &r)
		case Batched:
			r.Atomic = rapid.Bool().Draw(t, "atomic")
			r.Items = rapid.Uint16Range(1, types.MaxItems).Draw(t, "items")
			if r.Atomic && rapid.Bool().Draw(t, "refused") {
				r.Items--
				r.Nonce = types.Nonce(rapid.Uint64().Draw(t, "nonce"))
				anyProblem(t, &r)
			}
		}
		return r
	})
}

// of returns the operations of which a kind can be the outcome.
func of(k Kind) []event.Op {
	switch k {
	case Posted:
		return []event.Op{event.Issue, event.Transfer, event.Burn}
	case HoldOpened:
		return []event.Op{event.Hold}
	case HoldCaptured:
		return []event.Op{event.Capture}
	case HoldReleased:
		return []event.Op{event.Release}
	case FreezeChanged:
		return []event.Op{event.Freeze, event.Unfreeze}
	case Batched:
		return []event.Op{event.Batch}
	case Rejected:
		return []event.Op{event.Issue, event.Transfer, event.Burn, event.Hold, event.Capture, event.Release, event.Freeze, event.Unfreeze}
	default:
		return nil
	}
}

func anyTxID(t *rapid.T) (id types.TxID) {
	copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "txid"))
	return id
}

func anyProblem(t *rapid.T, r *Record) {
	r.Problem = event.Problem(rapid.Uint8Range(1, uint8(event.RecordUnreadable)).Draw(t, "problem"))
	if r.Problem == event.RefUsed {
		r.PriorRef = anyTxID(t)
	}
}

func anyKey(t *rapid.T) *event.Key {
	patterns := func(what string) string {
		return rapid.StringMatching(`([a-zA-Z0-9:/_-]{1,40}\*?|\*)(,[a-zA-Z0-9:/_-]{1,40}\*?|,\*){0,5}|`).Filter(func(s string) bool {
			return len(s) <= types.MaxPatterns
		}).Draw(t, what)
	}
	k := event.Key{ID: types.KeyID(rapid.Uint64().Draw(t, "id")), Tenant: types.Tenant(rapid.Uint32().Draw(t, "tenant")),
		Scopes: event.Scopes(rapid.Uint16Range(0, uint16(event.AllScopes)).Draw(t, "scopes")), Bootstrap: rapid.Bool().Draw(t, "boot"),
		Expires: types.Time(rapid.Int64().Draw(t, "expires"))}
	copy(k.Hash[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "hash"))
	return cover(k, rapid.StringMatching(`[a-zA-Z0-9_:.-]{0,64}`).Draw(t, "label"), patterns("accounts"), patterns("assets"))
}

// TestFramesRoundTrip: a frame returns its records in order, by walking and by index, whatever
// precedes it in its arena.
func TestFramesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "before")
		lsn := types.LSN(rapid.Uint64Range(1, types.MaxLSN).Draw(t, "lsn"))
		at := types.Time(rapid.Int64Min(0).Draw(t, "at"))
		var in []Record
		for range rapid.IntRange(0, 6).Draw(t, "count") {
			in = append(in, anyRecord().Draw(t, "record"))
		}

		arena, off := Begin(bytes.Clone(before), lsn, at), uint32(len(before))
		for i := range in {
			var index uint16
			if arena, index = Add(arena, off, &in[i]); int(index) != i {
				t.Fatalf("record %d got the index %d", i, index)
			}
		}
		if !bytes.Equal(arena[:off], before) {
			t.Fatalf("what stood before the frame is now %x", arena[:off])
		}
		body := arena[off:]

		h, rest, err := Open(body)
		if err != nil || (h != Header{LSN: lsn, At: at, Count: uint16(len(in))}) {
			t.Fatalf("head %+v, %v", h, err)
		}
		walked, found := goldens()[6].rec, goldens()[6].rec // reading overwrites every field
		for i := range in {
			if rest, err = Next(rest, &walked); err != nil || !equal(&walked, &in[i]) {
				t.Fatalf("record %d is read as %+v, %v", i, walked, err)
			}
			if _, err := Read(body, uint16(i), &found); err != nil || !equal(&found, &in[i]) {
				t.Fatalf("record %d is found as %+v, %v", i, found, err)
			}
		}
		if len(rest) > 0 {
			t.Fatalf("%d bytes are left", len(rest))
		}
	})
}

// again decodes and encodes a body, or returns the error.
func again(body []byte) ([]byte, error) {
	h, rest, err := Open(body)
	if err != nil {
		return nil, err
	}
	written := Begin(nil, h.LSN, h.At)
	for range h.Count {
		var r Record
		if rest, err = Next(rest, &r); err != nil {
			return nil, err
		}
		written, _ = Add(written, 0, &r)
	}
	return append(written, rest...), nil
}

// TestEncodingIsUnique: a frame with a changed byte is rejected, or it decodes to other records
// whose encoding it is.
func TestEncodingIsUnique(t *testing.T) {
	read, refused := 0, 0
	try := func(name, what string, body []byte) {
		written, err := again(body)
		switch {
		case errors.Is(err, ErrFrame):
			refused++
		case err != nil:
			t.Fatalf("%s %s: %v", name, what, err)
		case !bytes.Equal(written, body):
			t.Fatalf("%s %s: read from\n%x\nand written as\n%x", name, what, body, written)
		default:
			read++
		}
	}
	for i, g := range goldens() {
		body := g.frame(i)
		for at := range body {
			for _, c := range []byte{0, 1, 2, 0x7f, 0x80, 0xff, body[at] ^ 1, body[at] + 1, body[at] - 1} {
				changed := bytes.Clone(body)
				changed[at] = c
				try(g.name, fmt.Sprintf("with %#x at %d", c, at), changed)
			}
		}
	}
	if read == 0 || refused == 0 {
		t.Errorf("%d were read, %d refused", read, refused)
	}
}

// TestTruncateRemovesRecords: a truncated frame equals a frame without the removed records.
func TestTruncateRemovesRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "before")
		arena, off := Begin(bytes.Clone(before), 3, 4), uint32(len(before))
		add := func(most int) {
			for range rapid.IntRange(0, most).Draw(t, "count") {
				r := anyRecord().Draw(t, "record")
				arena, _ = Add(arena, off, &r)
			}
		}
		add(3)
		kept, count := bytes.Clone(arena), Count(arena, off)
		add(3)
		arena = arena[:len(kept)]
		Truncate(arena, off, count)
		if !bytes.Equal(arena, kept) || Count(arena, off) != count {
			t.Fatalf("%d records are\n%x, were\n%x", count, arena, kept)
		}
		if h, _, err := OpenWhole(arena[off:]); err != nil || h.Count != count {
			t.Fatalf("%+v, %v", h, err)
		}
	})
}

// TestSeekMatchesRead: Seek returns the bytes from the record that Read returns.
func TestSeekMatchesRead(t *testing.T) {
	body := Begin(nil, 5, 6)
	for _, g := range goldens() {
		body, _ = Add(body, 0, &g.rec)
	}
	for i := range goldens() {
		h, rest, err := Seek(body, uint16(i))
		if err != nil || (h != Header{LSN: 5, At: 6, Count: uint16(len(goldens()))}) {
			t.Fatalf("record %d: %+v, %v", i, h, err)
		}
		for _, g := range goldens()[i:] {
			var r Record
			if rest, err = Next(rest, &r); err != nil || !equal(&r, &g.rec) {
				t.Fatalf("from %d on, %s is %+v, %v", i, g.name, r, err)
			}
		}
		if len(rest) > 0 {
			t.Fatalf("from %d on, %d bytes are left", i, len(rest))
		}
	}
	if _, rest, err := Seek(body, uint16(len(goldens()))); !errors.Is(err, ErrFrame) || rest != nil {
		t.Errorf("after the last: %d bytes, %v", len(rest), err)
	}
}

// TestTruncatedFrameIsRejected cuts a frame at every byte.
func TestTruncatedFrameIsRejected(t *testing.T) {
	for i, g := range goldens() {
		body := g.frame(i)
		for at := range body {
			if _, err := again(body[:at]); !errors.Is(err, ErrFrame) {
				t.Fatalf("%s cut at %d of %d: %v", g.name, at, len(body), err)
			}
		}
	}
}

// TestLongestFrameRoundTrips fills a frame with the longest records.
func TestLongestFrameRoundTrips(t *testing.T) {
	for _, g := range goldens() {
		body := Begin(nil, 1, 0)
		for range types.MaxRecords {
			body, _ = Add(body, 0, &g.rec)
		}
		if len(body) > types.MaxFrame {
			t.Errorf("%d times %s are %d bytes", types.MaxRecords, g.name, len(body))
		}
		if written, err := again(body); err != nil || !bytes.Equal(written, body) {
			t.Errorf("%d times %s: %v", types.MaxRecords, g.name, err)
		}
		var last Record
		if _, err := Read(body, types.MaxRecords-1, &last); err != nil || !equal(&last, &g.rec) {
			t.Errorf("the last of %d times %s: %+v, %v", types.MaxRecords, g.name, last, err)
		}
		if broken(func() { Add(body, 0, &g.rec) }) == "" {
			t.Errorf("%s fits once more", g.name)
		}
	}
}

// TestReadSkipsByLength: records before an index are skipped by length; their content is not
// validated.
func TestReadSkipsByLength(t *testing.T) {
	want := Record{Kind: KeysForgotten, Upto: 9}
	body := Begin(nil, 1, 0)
	for range 3 {
		body, _ = Add(body, 0, &want)
	}
	more := append(bytes.Clone(body), body[headerSize:]...) // three more than the header has
	for i := range 2 * (prefixSize + 1) {                   // all bytes of the first two but their lengths
		if at := i % (prefixSize + 1); at == 0 || at == prefixSize {
			body[headerSize+i] = 0xee
		}
	}
	var r Record
	if _, err := Read(body, 2, &r); err != nil || !equal(&r, &want) {
		t.Errorf("%+v, %v", r, err)
	}
	for _, c := range []struct {
		index uint16
		body  []byte
	}{
		{0, body}, // an invalid kind
		{3, more},
		{1<<16 - 1, body},
		{2, body[:headerSize+2*(prefixSize+1)+1]},
		{0, nil},
	} {
		if _, err := Read(c.body, c.index, &r); !errors.Is(err, ErrFrame) {
			t.Errorf("record %d of %d bytes: %v", c.index, len(c.body), err)
		}
	}
	body[headerSize+1] = 0xff // the first record is longer than all
	if _, err := Read(body, 2, &r); !errors.Is(err, ErrFrame) {
		t.Errorf("behind a record that never ends: %v", err)
	}
}

// TestOutcomesAndMovements lists the kinds with an answer and the kinds with a Seq.
func TestOutcomesAndMovements(t *testing.T) {
	for k, want := range map[Kind][2]bool{
		Started: {}, KeysForgotten: {}, BootstrapKeyCreated: {}, Restored: {}, KeyCreated: {}, KeyRevoked: {}, AllKeysRevoked: {},
		Posted: {true, true}, HoldOpened: {true, true}, HoldCaptured: {true, true}, HoldReleased: {true, true}, FreezeChanged: {true, true},
		Rejected: {true, false}, Batched: {true, false}, HoldExpired: {false, true},
	} {
		r := Record{Kind: k}
		if got := [2]bool{r.IsOutcome(), r.IsMovement()}; got != want {
			t.Errorf("%v: keyed and counted %v, want %v", k, got, want)
		}
	}
}

// TestIdentifyComputesDigests: every name that is present gets a digest.
func TestIdentifyComputesDigests(t *testing.T) {
	for i, g := range goldens() {
		var r Record
		if _, err := Read(g.frame(i), 0, &r); err != nil {
			t.Fatal(err)
		}
		r.Identify()
		for _, n := range []types.Name{r.Key, r.From, r.To, r.Asset, r.Ref} {
			if want := digest.Name(n.Text); len(n.Text) > 0 && n.ID != want || len(n.Text) == 0 && n.ID != (types.NameHash{}) {
				t.Errorf("%s: %q is %x", g.name, n.Text, n.ID)
			}
		}
	}
}

// TestCodecDoesNotAllocate writes into a large buffer and reads. Only an API key is allocated.
func TestCodecDoesNotAllocate(t *testing.T) {
	for i, g := range goldens() {
		if g.rec.APIKey != nil {
			continue
		}
		body, room := g.frame(i), make([]byte, 0, 2*types.MaxRecord)
		var r Record
		n := testing.AllocsPerRun(1000, func() {
			if _, err := Read(body, 0, &r); err != nil {
				t.Fatal(err)
			}
			r.Identify()
			Add(Begin(room, 1, 0), 0, &r)
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", g.name, n)
		}
	}
}

// TestTextsPointIntoFrame: appending to one text does not overwrite the next.
func TestTextsPointIntoFrame(t *testing.T) {
	var r Record
	rec := Record{Kind: Posted, Op: event.Issue, Key: text("key"), To: text("ann"), Asset: text("EUR"), Ref: text("r"), Memo: []byte("m")}
	body, _ := Add(Begin(nil, 1, 0), 0, &rec)
	if _, err := Read(body, 0, &r); err != nil {
		t.Fatal(err)
	}
	was := bytes.Clone(body)
	for _, v := range [][]byte{r.Key.Text, r.To.Text, r.Asset.Text, r.Ref.Text, r.Memo} {
		_ = append(v, strings.Repeat("!", 8)...)
	}
	if !bytes.Equal(was, body) {
		t.Errorf("the frame is now %x", body)
	}
}

// broken returns the assertion that f violates.
func broken(f func()) (why types.InvariantError) {
	defer func() {
		if b, ok := recover().(types.InvariantError); ok {
			why = b
		}
	}()
	f()
	return ""
}
