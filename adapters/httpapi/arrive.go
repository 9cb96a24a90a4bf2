package httpapi

import (
	"context"
	"crypto/subtle"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/types"
)

// A Gate admits requests. Arrive waits for the verdict; false where there was no room even
// to ask, or ctx ended first. Who is told to go is settled, once.
type Gate interface {
	Arrive(ctx context.Context, in event.Admit) (event.Decision, bool)
	Settle(t types.Ticket, bytes uint64, f event.Completion)
	// Stream asks whether so many further bytes of its bodies may go on, and waits for the
	// word; false where ctx ended first, or the ticket is settled.
	Stream(ctx context.Context, t types.Ticket, bytes uint64) (event.Decision, bool)
}

// A Decision is what became of a request at the gate, and behind it.
type Decision struct {
	ID      string
	Sent    string // the request id that the client sent; empty: none that is usable
	At      types.Time
	Route   string // the operationId of the document
	Class   types.Class
	Facet   types.Facet
	Tenant  types.Tenant // of the key that was verified; 0: none was
	Key     types.KeyID
	Peer    string // who asks: its address
	Verdict event.Decision
	Status  int    // of HTTP
	Code    string // of the problem; empty: it was done
	In, Out uint64 // bytes of both bodies
	Took    time.Duration
	Under   *Face // what it saw of the configuration
	Method  string
	Path    string // without its query; the first 128 bytes
	Course  Course // nil: it was not sent on
	Way     string // the route of the configuration; empty: none
	Full    string // the queue that had no place for it behind the gate
	Cut     bool   // its answer began, and is not whole
	Lacks   string // why it was refused behind the gate, in a sentence; empty: the code says all
	// Unmet and Ailing are the node's, when that was why it was not served.
	Unmet, Ailing types.Conditions
	Again         string // Retry-After, as it was told; empty: it was not
}

// A Policy is a quota, as callers are told of it.
type Policy struct {
	Name   string
	Quota  uint64        // at once
	Window time.Duration // in which that comes back
	Bytes  bool          // it counts bytes
}

// recognize finds out whose key it is that a call shows. One that is wrong is nobody's, so
// whoever guesses is among strangers.
func (k *call) recognize() {
	said := k.r.Header["Authorization"]
	if len(said) != 1 {
		return
	}
	id, secret, ok := parseKey(said[0])
	if !ok {
		return
	}
	known, found := k.Books.Find(id)
	hash := digest.Sum([]byte(secret))
	if match := subtle.ConstantTimeCompare(hash[:], known.Hash[:]) == 1; match && found {
		k.key, k.over = known, expired(&known, k.at)
	}
}

// class is that of whoever calls: those who administer the node are its own.
func (k *call) class() types.Class {
	switch {
	case k.key.ID == 0, k.over:
		return types.ClassAnon
	case k.key.Scopes&event.ScopeAdmin != 0:
		return types.ClassInternal
	default:
		return types.ClassAuthed
	}
}

// arrive asks to be let in, and waits for its turn.
func (k *call) arrive() error {
	k.came = true
	k.recognize()
	if k.of = k.class(); k.of != types.ClassAnon && k.Keyed != nil {
		k.Keyed(k.r.Context())
	}
	k.lasts()
	in := event.Admit{Class: k.of, Facet: k.facet, Route: k.door.number, Peer: k.peer(),
		DeclaredBytes: k.r.ContentLength, ResponseEstimate: k.door.mean, TimeLeft: k.most, PermitFor: k.keeps}
	if k.of != types.ClassAnon {
		in.Key, in.Tenant = k.key.ID, k.key.Tenant
	}
	k.flow = in.Flow()
	v, ok := k.Gate.Arrive(k.r.Context(), in)
	switch {
	case !ok && k.r.Context().Err() != nil:
		k.identify()
		k.code = Gone
		panic(http.ErrAbortHandler)
	case !ok:
		v.Problem, v.Reason = event.Busy, event.RejectNoSlots
	case v.Problem == event.None:
		k.pass = v.Ticket
		k.meter.ticket = v.Ticket
		k.meter.credit.Store(int64(v.Bytes))
	}
	k.verdict = v
	k.limits()
	if v.Problem != event.None {
		k.Meter.Barred(k.of, v.Reason)
		return &refusal{problem: v.Problem, detail: refused[v.Reason]}
	}
	return nil
}

// Gone is the code of a request whose client left before its turn: it was not let in, and
// nobody is answered. Of its verdict nothing is known.
const Gone = "client_disconnected"

// asleep reports that nobody is to be asked at the gate: the node does not serve yet, or not
// any more. While it drains it is asked, and counts whom it turns away.
func asleep(s *event.Status) bool { return !s.Reads && s.Phase != types.Draining }

// shut refuses whoever comes while nobody is asked, and says so to those who ask later.
func (k *call) shut() error {
	k.recognize()
	k.of = k.class()
	k.verdict = event.Decision{Problem: event.Unavailable, Reason: event.RejectNotServing}
	k.Meter.Barred(k.of, event.RejectNotServing)
	return problem(event.Unavailable)
}

// arriveNowhere is arrive for what is no operation: to be told so costs a turn as well, or
// whoever guesses would be the only one whom nothing bounds.
func (k *call) arriveNowhere() error {
	s := k.Node.Status()
	if k.at = s.At; asleep(&s) {
		k.came = true
		return k.shut()
	}
	return k.arrive()
}

// refuseMalformed answers a request that cannot be read in one way only. Like a request for an
// operation that does not exist, it costs a turn.
func (k *call) refuseMalformed(why error) {
	k.lacks = why.Error()
	err := k.arriveNowhere()
	if err == nil {
		err = because(event.BadRequest, why.Error())
	}
	k.fail(err)
}

// crowded refuses a request that was let in, for want of a place that it needs besides.
func (k *call) crowded(queue, detail string) error {
	k.full = queue
	return because(event.Busy, detail)
}

// leave settles a call at its end, if it was let in.
func (k *call) leave() {
	if k.pass != 0 {
		k.Gate.Settle(k.pass, k.went(), k.fate())
	}
}

// fate is what becomes of a call that leaves now.
func (k *call) fate() event.Completion {
	ctx := k.r.Context()
	switch {
	case ctx.Err() != nil && k.Cut != nil && errors.Is(context.Cause(ctx), k.Cut), k.course != nil && k.course.Cut():
		return event.CompletionAborted
	case ctx.Err() != nil: // nobody hears what it is told
		return event.CompletionDone
	case k.told == event.OutcomeUnknown:
		return event.CompletionAborted
	case k.told == event.Unavailable:
		return event.CompletionRejected
	}
	return event.CompletionDone
}

// refused says to a caller why it is to come back.
var refused = [event.NumRejectReasons]string{
	event.RejectQuotaExceeded: "A quota is used up; the header RateLimit names it.",
	event.RejectPacingTimeout: "The quota of the instance is used up.",
	event.RejectQueueFull:     "The queue is full.",
	event.RejectClassLimit:    "The class of the caller has its share of the queue.",
	event.RejectFlowLimit:     "The caller has its share of the queue.",
	event.RejectClassDisabled: "The class of the caller is disabled.",
	event.RejectRouteLimit:    "The route has reached its limit of requests in progress.",
	event.RejectQueueTimeout:  "No permit became free in time.",
	event.RejectNoSlots:       "The class of the caller has too many requests.",
}

// limits tells a caller how it stands with its quotas.
func (k *call) limits() {
	v := &k.verdict
	if v.Rule == 0 || int(v.Rule) > len(k.face.policies) || k.face.Quotas[v.Rule-1].Name == "" {
		return
	}
	h, p := k.Header(), &k.face.policies[v.Rule-1]
	h["Ratelimit-Policy"] = p.header
	line := append(make([]byte, 0, 64), p.quoted...)
	line = strconv.AppendUint(append(line, ";r="...), uint64(v.Left), 10)
	line = strconv.AppendInt(append(line, ";t="...), seconds(v.Reset), 10)
	h["Ratelimit"] = []string{string(line)}
}

// seconds is d in whole ones, no less than it is.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// again is when a caller who was refused is to come back, in seconds; strewn, so that those
// who were refused together do not come back together.
func again(v *event.Decision) int64 {
	wait := max(1, seconds(v.RetryAfter))
	if v.Problem != event.Busy && v.Problem != event.RateLimited {
		return wait
	}
	return wait + rand.Int64N(1+wait/4+1)
}

// policy is a Policy with what is said of it.
type policy struct {
	quoted string   // its name, as an item of a structured field
	header []string // shared, and never written to
}

func newPolicy(p Policy) policy {
	quoted := strconv.Quote(p.Name)
	text := quoted + ";q=" + strconv.FormatUint(p.Quota, 10) + ";w=" + strconv.FormatInt(max(1, seconds(p.Window)), 10)
	if p.Bytes {
		text += `;qu="content-bytes"`
	}
	return policy{quoted, []string{text}}
}

// peer is who asks, as quotas count it.
func (k *call) peer() types.NameHash {
	if a := k.from(); a.IsValid() {
		return subject(a)
	}
	return digest.Name([]byte(k.r.RemoteAddr)) // of a socket of the file system
}

// who is who asks, as operators are told it.
func (k *call) who() string {
	if a := k.from(); a.IsValid() {
		return a.String()
	}
	return k.r.RemoteAddr
}

// from is the address of who asks: the other end of the connection, unless that is a proxy
// that is taken at its word about who is behind it. It is not valid of a connection that
// has no address.
func (k *call) from() netip.Addr {
	a, _ := address(k.r.RemoteAddr)
	said := k.r.Header["X-Forwarded-For"]
	for i := len(said) - 1; i >= 0; i-- {
		for line := said[i]; k.trusts(a); {
			at := strings.LastIndexByte(line, ',')
			behind, ok := address(strings.TrimSpace(line[at+1:]))
			if !ok {
				return a // it says nothing that is an address: it is asked for by itself
			}
			a = behind
			if at < 0 {
				break
			}
			line = line[:at]
		}
	}
	return a
}

// address is an address, with a port or without.
func address(said string) (a netip.Addr, ok bool) {
	if ap, err := netip.ParseAddrPort(said); err == nil {
		return ap.Addr().Unmap(), true
	}
	a, err := netip.ParseAddr(strings.Trim(said, "[]"))
	return a.Unmap(), err == nil
}

// trusts reports that a is of a network whose proxies are taken at their word.
func (k *call) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(k.face.Trusted, func(p netip.Prefix) bool { return p.Contains(a.WithZone("")) })
}

// subject is an address as quotas count it: of IPv6 the network that one customer is given.
func subject(a netip.Addr) types.NameHash {
	a = a.WithZone("")
	if a.Is6() {
		network, _ := a.Prefix(64) // 64 is never wrong
		a = network.Addr()
	}
	raw := a.As16()
	return digest.Name(raw[:])
}

// mostPath is how much is kept of a path.
const mostPath = 128

// path is that of a call, and nothing else of what it came with.
func (k *call) path() string {
	p := k.r.URL.Path
	return strings.Clone(p[:min(len(p), mostPath)])
}

// decided keeps what became of a call.
func (k *call) decided() {
	if k.Decisions == nil || k.id[0] == 0 {
		return
	}
	sent := k.sentRequestID()
	if sent == string(k.id[:]) { // what an upstream was sent in its place
		sent = ""
	}
	k.Decisions.Keep(Decision{ID: string(k.id[:]), Sent: strings.Clone(sent), At: k.at, Route: k.door.name, Class: k.of, Facet: k.facet, Tenant: k.key.Tenant, Key: k.key.ID,
		Peer: k.who(), Verdict: k.verdict, Status: k.status, Code: k.code, In: uint64(k.meter.up.Load()), Out: k.sent, Took: time.Since(k.began),
		Method: method(k.r.Method), Path: k.path(), Course: k.course, Full: k.full, Way: k.way, Under: &k.face.Face,
		Cut: k.cut, Lacks: k.lacks, Unmet: k.unmet, Ailing: k.ailing, Again: k.said[2]})
}

// method returns a copy of m, cut to 16 bytes: m is a part of the whole request line.
func method(m string) string { return strings.Clone(m[:min(len(m), 16)]) }

// Write counts what is sent. Whoever has said no status says 200.
func (k *call) Write(p []byte) (int, error) {
	if k.status == 0 {
		k.status = http.StatusOK
	}
	n, err := k.ResponseWriter.Write(p)
	k.sent += uint64(n)
	return n, err
}
