package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/idempotency"
	"macronode/core/lifecycle/drain"
	"macronode/core/node"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/storage"
	"macronode/core/types"
	"macronode/core/wallet/ledger"
)

// keys are the API keys of the tenants 1 and 2, and one that may only read.
var keys = [...]event.Key{
	{ID: 7, Tenant: 1, Scopes: event.AllScopes, Bootstrap: true},
	{ID: 8, Tenant: 2, Scopes: event.ScopeStore},
	{ID: 9, Tenant: 1, Scopes: event.AllScopes &^ event.ScopeStore},
}

const (
	maxObjects, maxHoldings, maxBuckets = 4, 7, 3
	tenantBytes, bucketBytes            = 100, 60
	tenantObjects, bucketObjects        = 5, 3
)

func limits() state.Limits {
	return state.Limits{
		Ledger:      ledger.Limits{Accounts: 1, Holdings: 1, Assets: 1, Tenants: 2, TenantAccounts: 1, TenantHoldings: 1, TenantAssets: 1},
		Idempotency: idempotency.Limits{Keys: 64, PerTenant: 64, Tenants: 2, TTL: time.Hour},
		Keys:        len(keys),
		Planes: []plane.Spec{storage.Spec(storage.Limits{Objects: maxObjects, Holdings: maxHoldings, Buckets: maxBuckets, TenantBuckets: maxBuckets,
			TenantQuota: storage.Usage{Bytes: tenantBytes, Objects: tenantObjects}, BucketQuota: storage.Usage{Bytes: bucketBytes, Objects: bucketObjects}})},
	}
}

// place is an object in a bucket of a tenant.
type place struct {
	tenant types.Tenant
	bucket string
	object int
}

// size is that of an object. No two are equal, so that a mistaken object shows in the sums.
func size(object int) uint64 { return [...]uint64{0, 10, 21, 33, 45, 59}[object] }

func address(object int) storage.Address {
	return storage.Address(digest.Sum(fmt.Appendf(nil, "object %d", object)))
}

// model is the reference model: what is held after a frame, and the outcomes of keys.
type model struct {
	held     map[place]bool
	files    map[int]storage.File // of the objects that are held
	outcomes map[string]string    // by tenant and idempotency key: the answer
}

func (m model) clone() model {
	c := model{map[place]bool{}, maps.Clone(m.files), map[string]string{}}
	for k, v := range m.held {
		c.held[k] = v
	}
	for k, v := range m.outcomes {
		c.outcomes[k] = v
	}
	return c
}

// usage sums what a tenant holds, in one bucket if that is named.
func (m model) usage(t types.Tenant, bucket string) (u storage.Usage) {
	for k := range m.held {
		if k.tenant == t && (bucket == "" || k.bucket == bucket) {
			u.Bytes += size(k.object)
			u.Objects++
		}
	}
	return u
}

// rows counts what the tables of the plane hold.
func (m model) rows() (objects map[int]bool, buckets map[place]bool) {
	objects, buckets = map[int]bool{}, map[place]bool{}
	for k := range m.held {
		objects[k.object] = true
		buckets[place{tenant: k.tenant, bucket: k.bucket}] = true
	}
	return objects, buckets
}

// put is what a Put of k does.
func (m model) put(k place) (answer string, no event.Problem) {
	answer = fmt.Sprintf(`{"address":%q,"bucket":%q,"size":"%d","created":%v}`, address(k.object), k.bucket, size(k.object), !m.held[k])
	if m.held[k] {
		return answer, event.None
	}
	total, used := m.usage(k.tenant, ""), m.usage(k.tenant, k.bucket)
	if total.Bytes+size(k.object) > tenantBytes || used.Bytes+size(k.object) > bucketBytes || total.Objects == tenantObjects || used.Objects == bucketObjects {
		return "", event.QuotaExceeded
	}
	m.held[k] = true
	if objects, buckets := m.rows(); len(m.held) > maxHoldings || len(objects) > maxObjects || len(buckets) > maxBuckets {
		delete(m.held, k)
		return "", event.CapacityExceeded
	}
	return answer, event.None
}

func (m model) delete(k place) (answer string, no event.Problem) {
	if !m.held[k] {
		return "", event.NotFound
	}
	delete(m.held, k)
	if objects, _ := m.rows(); !objects[k.object] {
		delete(m.files, k.object)
	}
	return fmt.Sprintf(`{"address":%q,"bucket":%q,"size":"%d","deleted":true}`, address(k.object), k.bucket, size(k.object)), event.None
}

// system is a node, its disk and the model.
type system struct {
	*rapid.T
	node     *node.Node
	view     state.State // folds every frame
	out      event.Effects
	now      types.Now
	bodies   [][]byte
	hashes   []types.Hash64
	models   []model // after each frame
	model    model
	unsynced uint64
	durable  int
	ticket   types.Ticket
	file     storage.File
	pending  map[types.Ticket]string // answers that wait
	acked    map[types.Ticket]bool
	problem  event.Problem // of the last reply
}

func newSystem(t *rapid.T) *system {
	s := &system{T: t, now: types.Now{Mono: 1, Wall: 1_700_000_000_000}, model: model{map[place]bool{}, map[int]storage.File{}, map[string]string{}}}
	s.view = state.New(limits(), 3)
	s.start(state.New(limits(), 1))
	for i := range keys {
		s.step(&event.CreateKey{Caller: keys[0].ID * types.KeyID(min(i, 1)), Tenant: keys[0].Tenant, Key: keys[i]})
		s.sync()
	}
	return s
}

func (s *system) start(recovered state.State) {
	s.pending, s.acked = map[types.Ticket]string{}, map[types.Ticket]bool{}
	s.node = node.New(node.Config{State: limits(), MaxHeldReplies: 64, MaxReplayWaiters: 16, MaxHeldPerTenant: 64, MaxUnsyncedBytes: 1 << 20, CommitTimeout: time.Hour,
		StallThreshold: time.Hour, SyncTimeout: time.Hour, HeartbeatInterval: time.Hour, SweepInterval: time.Hour, StartTimeout: time.Hour,
		Drain: drain.Times{Drain: time.Second, Abort: time.Second}}, recovered, s.now.Mono, types.NewRand(1))
	s.step(event.Recovered{Recovery: event.Recovery{Journal: 9}})
	for c := range types.NumServices {
		s.step(event.ServiceUp{Service: c})
	}
	s.sync()
}

func (s *system) step(in event.Event) {
	s.now.Mono++
	s.now.Wall++
	s.out.Reset()
	s.node.Step(s.now, in, &s.out)
	for _, f := range s.out.Frames {
		s.bodies = append(s.bodies, bytes.Clone(s.out.Body(f)))
		s.hashes = append(s.hashes, s.node.StateHash())
		s.models = append(s.models, s.model.clone())
		s.unsynced += uint64(f.Len)
		if err := s.view.Fold(s.out.Body(f), nil); err != nil {
			s.Fatal(err)
		}
	}
	for _, r := range s.out.Replies {
		s.problem = r.Problem
		if r.Position.LSN == 0 {
			continue
		}
		if int(r.Position.LSN) > s.durable {
			s.Fatalf("%d was answered before its frame was durable", r.Ticket)
		}
		if got := s.render(r.Position); got != s.pending[r.Ticket] {
			s.Fatalf("%d is answered %s, want %s", r.Ticket, got, s.pending[r.Ticket])
		}
		s.acked[r.Ticket] = true
	}
	if err := s.node.Check(); err != nil {
		s.Fatal(err)
	}
}

func (s *system) render(p types.Position) string {
	st := state.New(limits(), 1)
	f := record.Sealed{Journal: 9, LSN: p.LSN, Body: s.bodies[p.LSN-1]}
	answer, status, _, err := st.Render(nil, &f, p.Index)
	if err != nil || (status == 201) != strings.Contains(string(answer), `"created":true`) {
		s.Fatalf("render %v: %s with status %d, %v", p, answer, status, err)
	}
	return string(answer)
}

// command sends a Put or a Delete, with or without an idempotency key, and compares.
func (s *system) command(*rapid.T) {
	caller := rapid.SampledFrom(keys[:2]).Draw(s.T, "caller")
	k := place{caller.Tenant, rapid.SampledFrom([]string{"photos", "books"}).Draw(s.T, "bucket"), rapid.IntRange(0, 5).Draw(s.T, "object")}
	key := rapid.SampledFrom([]string{"", "", "", "a", "b", "c"}).Draw(s.T, "key")
	replace := rapid.Bool().Draw(s.T, "replace")
	deletes := rapid.IntRange(0, 2).Draw(s.T, "deletes") == 0
	s.ticket++
	s.file++
	head := command.Header{Ticket: s.ticket, Caller: caller.ID, Tenant: caller.Tenant, Key: types.Name{Text: []byte(key)}}
	name := fmt.Sprint(caller.Tenant, key)
	before := s.model.clone()
	var answer string
	var no event.Problem
	var c command.Command
	if deletes {
		answer, no = s.model.delete(k)
		d := &storage.Delete{Header: head, Bucket: storage.Bucket(k.bucket), Address: address(k.object)}
		d.Seal()
		c = d
	} else {
		answer, no = s.model.put(k)
		if _, known := s.model.files[k.object]; no == event.None && (!known || replace) {
			s.model.files[k.object] = s.file
		}
		p := &storage.Put{Header: head, Bucket: storage.Bucket(k.bucket), Address: address(k.object), Size: size(k.object), File: s.file, Replace: replace}
		p.Seal()
		c = p
	}
	asked := fmt.Sprint(deletes, k)
	first, used := s.model.outcomes[name]
	if key != "" && used {
		s.model, answer, no = before, strings.TrimPrefix(first, asked), event.None
		if answer == first {
			no = event.IdempotencyConflict
		}
	} else if key != "" && no == event.None {
		s.model.outcomes[name] = asked + answer
	}
	if no == event.None {
		s.pending[s.ticket] = answer
	}
	frames := len(s.bodies)
	s.problem = event.None
	s.step(&event.Execute{Command: c})
	if recorded := len(s.bodies) > frames; recorded != (no == event.None && !(key != "" && used)) {
		s.Fatalf("%s with key %q: recorded %v, the model has %v %q", asked, key, recorded, no, answer)
	}
	s.sync()
	if s.problem != no || no == event.None && !s.acked[s.ticket] {
		s.Fatalf("%s with key %q: %v, the model has %v", asked, key, s.problem, no)
	}
	s.compare()
}

// compare holds the plane against the model.
func (s *system) compare() {
	p := s.view.Plane(types.PlaneStorage).(*storage.Plane)
	var logical, physical storage.Usage
	for object := range 6 {
		held := false
		for _, k := range keys[:2] {
			for _, bucket := range [...]string{"photos", "books"} {
				has := s.model.held[place{k.Tenant, bucket, object}]
				if got := p.Holds(k.Tenant, storage.Bucket(bucket).ID, address(object)); got != has {
					s.Fatalf("tenant %d, bucket %s, object %d: held %v, want %v", k.Tenant, bucket, object, got, has)
				}
				if has {
					held = true
					logical = storage.Usage{Bytes: logical.Bytes + size(object), Objects: logical.Objects + 1}
				}
			}
		}
		if o, ok := p.Find(address(object)); ok != held || ok && (o.Size != size(object) || o.File != s.model.files[object]) {
			s.Fatalf("object %d: %v, %v, held %v", object, o, ok, held)
		}
		if held {
			physical = storage.Usage{Bytes: physical.Bytes + size(object), Objects: physical.Objects + 1}
		}
	}
	for _, k := range keys[:2] {
		for _, bucket := range [...]string{"", "photos", "books"} {
			id := types.NameHash{}
			if bucket != "" {
				id = storage.Bucket(bucket).ID
			}
			if got, want := p.Usage(k.Tenant, id), s.model.usage(k.Tenant, bucket); got != want {
				s.Fatalf("tenant %d, bucket %q uses %v, want %v", k.Tenant, bucket, got, want)
			}
		}
	}
	if l, ph := p.Totals(); l != logical || ph != physical {
		s.Fatalf("totals %v and %v, want %v and %v", l, ph, logical, physical)
	}
}

func (s *system) sync() {
	if s.unsynced == 0 {
		return
	}
	size := s.unsynced
	s.unsynced, s.durable = 0, len(s.bodies)
	s.step(event.Durable{Upto: types.LSN(s.durable), Bytes: size})
	s.step(event.Applied{Upto: types.LSN(s.durable)})
}

// crash recovers from a snapshot and the frames behind it.
func (s *system) crash(*rapid.T) {
	left := len(s.bodies)
	cut := rapid.IntRange(0, left).Draw(s.T, "snapshot after")
	old, recovered := state.New(limits(), 1), state.New(limits(), 2)
	for i, body := range s.bodies {
		if i == cut && i > 0 {
			old.Dump(func(row []byte) {
				if err := recovered.Load(row); err != nil {
					s.Fatalf("snapshot after frame %d: %v", cut, err)
				}
			})
		}
		if err := old.Fold(body, nil); err != nil {
			s.Fatal(err)
		}
	}
	for _, body := range s.bodies[recovered.LSN:] {
		if err := recovered.Fold(body, nil); err != nil {
			s.Fatal(err)
		}
	}
	var folded, loaded state.RowSum
	old.Dump(folded.Add)
	if recovered.Dump(loaded.Add); folded.Root() != loaded.Root() {
		s.Fatalf("the rows after frame %d depend on the snapshot of frame %d", recovered.LSN, cut)
	}
	if recovered.Hash() != s.hashes[left-1] {
		s.Fatalf("recovery made another state")
	}
	if err := recovered.Check(); err != nil {
		s.Fatal(err)
	}
	s.start(recovered)
	s.compare()
}

// TestPlaneAgreesWithModel compares the plane in a whole node with a set of places: under retries,
// deduplication, quotas, full tables and recoveries from snapshots.
func TestPlaneAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSystem(t)
		t.Repeat(map[string]func(*rapid.T){"command": s.command, "command again": s.command, "third command": s.command, "crash": s.crash})
	})
}

// TestAuthorization: a key without the scope store changes nothing.
func TestAuthorization(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSystem(t)
		put := &storage.Put{Header: command.Header{Ticket: 1, Caller: keys[2].ID, Tenant: 1}, Bucket: storage.Bucket("photos"), Address: address(1), Size: 10, File: 1}
		put.Seal()
		frames := len(s.bodies)
		s.step(&event.Execute{Command: put})
		s.sync()
		if s.problem != event.Forbidden || len(s.bodies) != frames {
			t.Fatalf("a reader's Put: %v", s.problem)
		}
	})
}

// TestCommandsWithoutKeyNeedNoIndex: after old keys were evicted, a command with a key needs what the index knows of
// it. One without a key does not.
func TestCommandsWithoutKeyNeedNoIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSystem(t)
		put := func(key string, object int) event.Problem {
			s.ticket++
			c := &storage.Put{Header: command.Header{Ticket: s.ticket, Caller: keys[0].ID, Tenant: 1, Key: types.Name{Text: []byte(key)}}, Bucket: storage.Bucket("photos"),
				Address: address(object), Size: size(object), File: 1}
			c.Seal()
			answer, _ := s.model.put(place{1, "photos", object})
			s.pending[s.ticket], s.problem = answer, event.None
			s.step(&event.Execute{Command: c})
			s.sync()
			return s.problem
		}
		for i := range 40 { // more than half of the window
			if no := put(fmt.Sprint("a", i), 1); no != event.None {
				t.Fatal(no)
			}
		}
		s.step(event.Indexed{Upto: types.LSN(len(s.bodies))})
		if no := put("", 2); no != event.None {
			t.Fatal(no)
		}
		if no := put("b", 3); no != event.StaleIndexRead {
			t.Fatalf("a key that the index was not asked for: %v", no)
		}
		if no := put("", 0); no != event.None {
			t.Fatalf("a command without a key: %v", no)
		}
	})
}

// TestUndo: a savepoint that is undone leaves no trace of the record behind it.
func TestUndo(t *testing.T) {
	p := storage.New(storage.Limits{Objects: 2, Holdings: 2, Buckets: 4}, 1)
	replaced := payload(1, 1, 10, 6, storage.Usage{Bytes: 10, Objects: 1}, storage.Usage{Bytes: 10, Objects: 1}, "photos")
	stored := payload(0, 1, 10, 5, storage.Usage{Bytes: 10, Objects: 1}, storage.Usage{Bytes: 10, Objects: 1}, "photos")
	deleted := payload(2, 1, 10, 6, storage.Usage{}, storage.Usage{}, "photos")
	for _, r := range [...]record.Record{stored, replaced, deleted} {
		before := p.Hash()
		p.Savepoint()
		if !p.Fits(&r) {
			t.Fatalf("%v does not fit", r.Kind)
		}
		p.Apply(0, types.TxID{}, &r)
		p.Undo()
		if err := p.Check(); p.Hash() != before || err != nil {
			t.Errorf("%v leaves a trace: %v", r.Kind, err)
		}
		p.Savepoint()
		p.Apply(0, types.TxID{}, &r)
		p.Commit()
		if p.Hash() == before {
			t.Errorf("%v changes nothing", r.Kind)
		}
	}
}

// payload is a record of the plane.
func payload(kind uint8, object int, size, file uint64, tenant, bucket storage.Usage, name string) record.Record {
	a := address(object)
	b := append([]byte(nil), a[:]...)
	for _, n := range [...]uint64{size, file, tenant.Bytes, tenant.Objects, bucket.Bytes, bucket.Objects} {
		for range 8 {
			b = append(b, byte(n))
			n >>= 8
		}
	}
	return record.Record{Kind: record.PlaneKind(types.PlaneStorage, kind), Tenant: 1, Payload: append(b, name...)}
}

// TestFileOfKnownObject: a put of an object that is stored already names the file that is there, unless it replaces that.
func TestFileOfKnownObject(t *testing.T) {
	for _, replace := range [...]bool{false, true} {
		rapid.Check(t, func(t *rapid.T) {
			s := newNames(t, map[string]bool{})
			for n, bucket := range [...]string{"photos", "books"} {
				c := &storage.Put{Header: s.next(1), Bucket: storage.Bucket(bucket), Address: address(1), Size: size(1), File: storage.File(n + 1), Replace: replace}
				var reply event.Reply
				if s.plane.Decide(s.time, c, s, &reply); reply.Problem != event.None {
					t.Fatal(reply.Problem.Code())
				}
			}
			want := storage.File(1)
			if replace {
				want = 2
			}
			if o, _ := s.plane.Find(address(1)); o.File != want {
				t.Fatalf("file %d, want %d", o.File, want)
			}
		})
	}
}

// TestFitsRejectsWhatDoesNotContinue: records are read from disks.
func TestFitsRejectsWhatDoesNotContinue(t *testing.T) {
	p := storage.New(storage.Limits{Objects: 1, Holdings: 2, Buckets: 3}, 1)
	u := func(bytes, objects uint64) storage.Usage { return storage.Usage{Bytes: bytes, Objects: objects} }
	first := payload(0, 1, 10, 5, u(10, 1), u(10, 1), "photos")
	p.Apply(0, types.TxID{}, &first)
	problem := payload(1, 1, 10, 5, u(10, 1), u(10, 1), "photos")
	problem.Problem = event.Forbidden
	for what, r := range map[string]record.Record{
		"another kind":              payload(12, 1, 10, 5, u(10, 1), u(10, 1), "photos"),
		"a problem":                 problem,
		"stored twice":              payload(0, 1, 10, 5, u(20, 2), u(20, 2), "photos"),
		"another size":              payload(0, 1, 11, 5, u(21, 2), u(11, 1), "books"),
		"deleted from another file": payload(2, 1, 10, 6, u(0, 0), u(0, 0), "photos"),
		"no file":                   payload(0, 2, 10, 0, u(20, 2), u(20, 2), "photos"),
		"no room for the object":    payload(0, 2, 10, 6, u(20, 2), u(20, 2), "photos"),
		"a wrong tenant usage":      payload(0, 1, 10, 5, u(21, 2), u(10, 1), "books"),
		"a wrong bucket usage":      payload(0, 1, 10, 5, u(20, 2), u(10, 2), "books"),
		"kept by another bucket":    payload(1, 1, 10, 5, u(10, 1), u(0, 0), "books"),
		"kept with a new usage":     payload(1, 1, 10, 5, u(20, 1), u(10, 1), "photos"),
		"deleted from another":      payload(2, 1, 10, 5, u(0, 0), u(math.MaxUint64-9, math.MaxUint64), "books"),
		"deleted, still counted":    payload(2, 1, 10, 5, u(10, 1), u(0, 0), "photos"),
		"too large":                 payload(0, 1, storage.MaxObject+1, 5, u(20, 2), u(10, 1), "books"),
		"no bucket":                 payload(0, 1, 10, 5, u(20, 2), u(10, 1), ""),
		"a long bucket":             payload(0, 1, 10, 5, u(20, 2), u(10, 1), strings.Repeat("b", storage.MaxBucket+1)),
		"cut short":                 {Kind: first.Kind, Tenant: 1, Payload: first.Payload[:60]},
	} {
		if p.Fits(&r) {
			t.Errorf("%s fits", what)
		}
	}
	for what, r := range map[string]record.Record{
		"another bucket": payload(0, 1, 10, 5, u(20, 2), u(10, 1), "books"),
		"kept":           payload(1, 1, 10, 5, u(10, 1), u(10, 1), "photos"),
		"deleted":        payload(2, 1, 10, 5, u(0, 0), u(0, 0), "photos"),
	} {
		if !p.Fits(&r) {
			t.Errorf("%s does not fit", what)
		}
	}
}

// TestLoadRejects: rows are read from disks.
func TestLoadRejects(t *testing.T) {
	p := storage.New(storage.Limits{Objects: 2, Holdings: 2, Buckets: 4}, 1)
	a, bucket := address(1), storage.Bucket("photos").ID
	object := append(append([]byte(nil), a[:]...), 10, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0)
	held := append(append([]byte{1, 0, 0, 0}, bucket[:]...), a[:]...)
	if err := p.Load(2, held); !errors.Is(err, plane.ErrRow) {
		t.Errorf("a holding without its object: %v", err)
	}
	for _, row := range []struct {
		kind uint8
		b    []byte
		want error
	}{{1, object, nil}, {1, object, plane.ErrRow}, {2, held, nil}, {2, held, plane.ErrRow}, {7, object, plane.ErrRow}, {1, object[:40], plane.ErrRow}, {2, held[:40], plane.ErrRow}} {
		if err := p.Load(row.kind, row.b); !errors.Is(err, row.want) {
			t.Errorf("row %d of %d bytes: %v, want %v", row.kind, len(row.b), err, row.want)
		}
	}
	if err := p.Check(); err != nil || p.Usage(1, bucket) != (storage.Usage{Bytes: 10, Objects: 1}) {
		t.Errorf("%v, %v", p.Usage(1, bucket), err)
	}
}

func TestParseAddress(t *testing.T) {
	good := address(1).String()
	if a, err := storage.ParseAddress(good); err != nil || a != address(1) {
		t.Errorf("%s: %v", good, err)
	}
	for _, bad := range []string{"", good[:66], good + "0", strings.ToUpper(good), "B3:" + good[3:], good[:3] + strings.ToUpper(good[3:]), "b2:" + good[3:], good[3:], good[:66] + "g"} {
		if _, err := storage.ParseAddress(bad); err == nil {
			t.Errorf("%q is an address", bad)
		}
	}
}

func TestCheckBucket(t *testing.T) {
	for _, good := range []string{"abc", "a.b", "a-b", "123", strings.Repeat("a", 63)} {
		if err := storage.CheckBucket(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "ab", "Abc", ".ab", "ab-", "a_b", "a b", strings.Repeat("a", 64)} {
		if storage.CheckBucket(bad) == nil {
			t.Errorf("%q is a bucket", bad)
		}
	}
}
