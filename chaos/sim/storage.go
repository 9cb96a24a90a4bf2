package sim

import (
	"slices"
	"time"

	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/plane"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/storage"
	"macronode/core/types"
)

// A run with storage has clients of objects beside those of money. Their tenant is another one, so that
// the certificate of the wallet does not see their payments. The contents are a few addresses with fixed
// sizes. In some runs they have files: see files.go.
const (
	storageTenant types.Tenant = 2
	storageKey    types.KeyID  = 300
	storageFree                = 1 // values of odds.storage; 0: the run has no storage
	storagePaid                = 2
	payer                      = "disk"
	beneficiary                = "host"
	holdTTL                    = 15 * time.Second
)

// issueAmounts are what is issued to the payer at a time: mostly little, so that holds matter.
var issueAmounts = [...]uint64{3, 3, 4, 30}

// storageLimits are small, so that each of them is reached.
var storageLimits = storage.Limits{Objects: 5, Holdings: 5, Buckets: 3, Uploads: 3, Parts: 4, UploadTTL: 20 * time.Second,
	TenantParts: 3, // buckets and uploads have no limit of a tenant: it leaves room
	TenantQuota: storage.Usage{Bytes: 8 << 20, Objects: 5}, BucketQuota: storage.Usage{Bytes: 5 << 20, Objects: 3}}

// A contentSet has the contents of a run.
type contentSet struct {
	texts     []string // of their addresses
	addresses []storage.Address
	sizes     map[string]uint64
}

// add adds a content.
func (c *contentSet) add(a storage.Address, size uint64) {
	if c.sizes == nil {
		c.sizes = map[string]uint64{}
	}
	c.texts, c.addresses = append(c.texts, a.String()), append(c.addresses, a)
	c.sizes[a.String()] = size
}

func (c *contentSet) addressOf(text string) storage.Address {
	return c.addresses[slices.Index(c.texts, text)]
}

func (c *contentSet) sizeOf(text string) uint64 { return c.sizes[text] }

// plainContents are those of objects without files.
var plainContents = func() (c contentSet) {
	for i, size := range []uint64{10, 1 << 19, 1 << 20, 1<<20 + 1, 2 << 20, 3 << 20} {
		c.add(storage.Address{0: byte(i + 1), 31: 7}, size)
	}
	return c
}()

// storageWorld is the part of a run that concerns storage.
type storageWorld struct {
	price    uint64 // minor units for each started MiB; 0: objects are free
	limits   storage.Limits
	contents *contentSet
	files    *fileWorld // nil: objects have no files
	oracle   *storageOracle
	clients  []*storageClient
	enter    []event.Event // submitted, not stepped
	sent     map[types.Ticket]*storageAttempt
	attempts map[types.Ticket]*storageAttempt // of this process, those of clients that left included
	acked    map[types.Position]string        // acknowledged commands
	uploads  []storageUpload                  // acknowledged
	serial   int                              // of keys
	file     storage.File                     // the last file
	hasKey   bool                             // the creation of the API key was acknowledged
	asksKey  bool                             // it was requested from this process
}

// storageUpload is an upload that a client has begun.
type storageUpload struct {
	bucket, name string
	id           types.Position
}

// beginStorage gives a run its storage clients, if it has any.
func (w *World) beginStorage() {
	if w.odds.storage == 0 {
		return
	}
	s := &storageWorld{limits: storageLimits, contents: &plainContents, sent: map[types.Ticket]*storageAttempt{}, attempts: map[types.Ticket]*storageAttempt{}, acked: map[types.Position]string{}}
	if w.odds.storage == storagePaid {
		s.price = 1
		w.config.Price = flow.Price{PerMiB: s.price, Asset: "EUR/2", Payer: payer, Beneficiary: beneficiary, HoldTTL: holdTTL}
	}
	for i := range 2 {
		s.clients = append(s.clients, &storageClient{number: i})
	}
	w.storage, w.planes = s, append(w.planes, s)
	w.beginFiles()
	s.oracle = newStorageOracle(w)
	l := &w.limits
	l.Planes = []plane.Spec{storage.Spec(s.limits)}
	l.Ledger.Accounts, l.Ledger.Holdings, l.Ledger.Assets, l.Ledger.Holds = l.Ledger.Accounts+2, l.Ledger.Holdings+2, l.Ledger.Assets+1, l.Ledger.Holds+3
	w.config.State = w.limits
	w.audit = newAudit(l.Ledger)
	w.promise.begin(state.New(w.limits, 0))
}

// priceOf returns the price of an object with a size in bytes.
func (s *storageWorld) priceOf(size uint64) uint64 {
	mib := (size + 1<<20 - 1) >> 20
	return max(1, mib) * s.price
}

func (*storageWorld) name() string               { return "storage" }
func (s *storageWorld) arrivals() *[]event.Event { return &s.enter }
func (s *storageWorld) unanswered() int          { return len(s.sent) }

// move is a move of a storage client.
func (s *storageWorld) move(w *World) {
	if !s.hasKey {
		w.createStorageKey()
		return
	}
	if s.files != nil && s.files.moves(w) {
		return
	}
	s.clients[w.c.Choose("storage/client", len(s.clients))].move(w)
}

// createStorageKey makes the administrator create the API key of the storage clients.
func (w *World) createStorageKey() {
	s := w.storage
	if s.asksKey || len(w.clerk.admin) > 0 {
		return
	}
	s.asksKey = true
	in := &event.CreateKey{Ticket: w.own(), Caller: boss.ID, Tenant: boss.Tenant,
		Key: event.Key{ID: storageKey, Tenant: storageTenant, Scopes: event.ScopeStore | event.ScopeIssue, Label: types.NewLabel("storage")}}
	w.boss(in.Ticket, in, func(r event.Reply) { s.asksKey, s.hasKey = false, r.Problem == event.None })
}

// stepped checks a step that may concern storage: a command is decided as the model predicts.
func (s *storageWorld) stepped(w *World, in event.Event, body []byte) {
	var a *storageAttempt
	switch in := in.(type) { //nolint:gochecksumtype // the others are not of storage clients
	case *event.Execute:
		if a = s.attempts[in.Command.Head().Ticket]; a != nil {
			s.oracle.expects(w, a)
		}
	}
	if len(body) == 0 {
		return
	}
	file := a.file(s.oracle)
	of, at := s.oracle.frame(body)
	switch {
	case of == nil:
	case a == nil || a.ask == nil:
		w.fail("storage-without-request", "%v: %T records %s", at, in, of.text())
	case a.want != event.None:
		w.fail("storage-accepts", "%v: %s, which must be refused with %v", at, of.text(), a.want.Code())
	default:
		if why := a.ask.asksFor(of); why != "" {
			w.fail("storage-records-another", "%v: %s", at, why)
		}
		if file != 0 && of.file != file {
			w.fail("storage-file", "%v: %s is in file %d, want %d", at, of.text(), of.file, file)
		}
		a.recorded = at
	}
}

// file returns which file the content of an attempt with an upload is in afterwards: the one that it has, unless that is to be replaced.
func (a *storageAttempt) file(o *storageOracle) uint64 {
	if a == nil || a.upload == nil {
		return 0
	}
	if was := o.files[a.ask.content]; was != 0 && !a.upload.replaces {
		return was
	}
	return uint64(a.upload.file)
}

// expects predicts what becomes of a.
func (o *storageOracle) expects(w *World, a *storageAttempt) {
	_, status := w.trace.Around()
	if a.ask != nil {
		a.want = o.predict(a.ask, a.paid)
		a.replaces = len(o.entryOf(a.ask)) > 0 && o.entryOf(a.ask) != a.ask.content
	}
	if a.paid {
		h, open := o.holds[a.hold.Position()]
		a.late = !open || h.until <= status.At
	}
	if a.step == stepReserve {
		held := uint64(0)
		for _, h := range o.holds { //nolint:maporder // a sum
			if h.until > status.At {
				held += h.amount
			}
		}
		if a.want = event.None; o.issued-o.revenue-held < w.storage.priceOf(a.size) {
			a.want = event.PaymentRequired
		}
	}
}

// crashed forgets what the last process had not answered.
func (s *storageWorld) crashed(w *World) {
	if s.files != nil {
		s.files.crashed()
	}
	for _, c := range s.clients {
		c.upload = nil
		if c.out != 0 {
			c.unknown()
		} else if c.hold != (types.TxID{}) && !c.cancels {
			w.Saw["the node stops between reserve and paid put"]++
		}
		c.out = 0
	}
	s.enter, s.asksKey = nil, false
	s.sent, s.attempts = map[types.Ticket]*storageAttempt{}, map[types.Ticket]*storageAttempt{}
}

// recovers folds the recovered frames, and compares the recovered state with the model and with all that
// was acknowledged.
func (s *storageWorld) recovers(w *World, st *state.State, frames []record.Sealed) {
	s.oracle = newStorageOracle(w)
	for i := range frames {
		s.oracle.frame(frames[i].Body)
	}
	if !w.unlawful {
		for at, did := range s.acked { //nolint:maporder // the rule is the same for each
			if now := s.oracle.recorded[at]; now != did {
				w.fail("storage-acknowledged-lost", "%v was acknowledged: %s, now %q", at, did, now)
			}
		}
	}
	s.oracle.compare(w, st)
}

// certify compares the durable state at the end of a run with the model.
func (s *storageWorld) certify(w *World) {
	if s.files != nil {
		s.files.certify(w)
	}
	st := state.New(w.limits, 1)
	for i := range w.testified.frames {
		if err := st.Fold(w.testified.frames[i].Body, nil); err != nil {
			w.fail("storage-fold", "%v: %v", w.testified.frames[i].LSN, err)
			return
		}
	}
	if st.Hash() != w.fol.Hash() {
		w.fail("storage-fold", "the fold of all frames differs from the follower")
	}
	s.recovers(w, &st, w.testified.frames)
}

// headOf returns the header of a new attempt.
func (w *World) headOf(key string) command.Header {
	w.ticket++
	h := command.Header{Ticket: types.NewTicket(w.ticket%8, w.ticket), Caller: storageKey, Tenant: storageTenant}
	if key != "" {
		h.Key = storage.ObjectName(key)
		h.IndexedTo = w.index.mark
		h.Prior = w.index.prior(storageTenant, h.Key.ID)
	}
	return h
}
