-------------------------------- MODULE Wallet --------------------------------
(* The wallet, nonces and idempotency keys: outcomes of requests, and what    *)
(* their keys return afterwards.                                              *)
(*                                                                            *)
(*   Ask ──► Step: look up, decide, apply, emit one frame ──► Leave           *)
(*                     Sync ──► Fold ──► (what an answer waits for)           *)
(*                                                                            *)
(* One state machine decides. A frame contains outcomes, never requests. The  *)
(* state is the fold of the frames, in the node, in the read model and in a   *)
(* recovery. A reply is a position in the log, and the response is rendered   *)
(* from the record there. A client with an unknown outcome retries with the   *)
(* same key. Journal specifies how frames get to the disk: here any prefix    *)
(* of the frames that are not durable survives a crash.                       *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Clients, Tenants,
  Accounts,    \* <<tenant, name>>
  Requests,    \* [tenant, key, op, from, to, amount, nonce]; accounts are names
  Nobody,      \* the account of an operation without from or to; the request of an idle client
  TTL,         \* of an idempotency key, from the time of its frame
  MaxKeys,     \* largest number of keys in the window
  MaxTime, MaxAsks,
  MaxFails,    \* failed flushes, and timeouts of clients
  MaxCrashes

VARIABLES
  log,      \* frames: [at, recs]
  durable, folded,
  st,       \* the state from which requests are decided
  now,      \* the durable time of the node
  failed,   \* a flush failed: nothing is decided before a restart
  client,   \* [ph, req, reply]; ph is "idle", "asked" or "held"
  said,     \* every answer that was sent: [req, after, what, lsn, rec, next]
  spent

vars == <<log, durable, folded, st, now, failed, client, said, spent>>

RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0 ELSE LET x == CHOOSE y \in S : TRUE IN f[x] + Sum(f, S \ {x})
Max(S)    == CHOOSE n \in S : \A m \in S : m <= n

-----------------------------------------------------------------------------
(* The fold.                                                                  *)

Empty == [bal |-> [a \in Accounts |-> 0], nonce |-> [a \in Accounts |-> 0], seq |-> [t \in Tenants |-> 0],
          issued |-> 0, burned |-> 0, keys |-> <<>>]

KeyOf(r)  == <<r.tenant, r.key>>  \* a decision: keys of different tenants are different
Asked(r)  == <<r.op, r.from, r.to, r.amount, r.nonce>>
From(r)   == <<r.tenant, r.from>>
To(r)     == <<r.tenant, r.to>>

Remember(s, lsn, at, rec) == [s EXCEPT !.keys = Append(@, [key |-> KeyOf(rec.req), asked |-> Asked(rec.req), lsn |-> lsn, at |-> at])]

Move(s, rec) == \* it decides nothing: the record contains the balances afterwards
  LET r == rec.req
      debited  == IF r.op = "issue" THEN [s EXCEPT !.issued = rec.fromNow]
                  ELSE [s EXCEPT !.bal[From(r)] = rec.fromNow, !.nonce[From(r)] = r.nonce]
      credited == IF r.op = "burn" THEN [debited EXCEPT !.burned = rec.toNow]
                  ELSE [debited EXCEPT !.bal[To(r)] = rec.toNow]
  IN [credited EXCEPT !.seq[r.tenant] = rec.seq]

Refuse(s, rec) == s               \* a decision: a rejection changes only the outcome of its key
Stays(k, upto) == k.lsn > upto    \* a decision: only evicted keys are removed

Apply(s, lsn, at, rec) ==
  CASE rec.kind = "moved"   -> Remember(Move(s, rec), lsn, at, rec)
    [] rec.kind = "refused" -> Remember(Refuse(s, rec), lsn, at, rec)
    [] rec.kind = "forgot"  -> [s EXCEPT !.keys = SelectSeq(@, LAMBDA k : Stays(k, rec.upto))]

RECURSIVE ApplyAll(_, _, _, _)
ApplyAll(s, lsn, at, recs) == IF recs = <<>> THEN s ELSE ApplyAll(Apply(s, lsn, at, Head(recs)), lsn, at, Tail(recs))

RECURSIVE Fold(_, _)
Fold(l, n) == IF n = 0 THEN Empty ELSE ApplyAll(Fold(l, n - 1), n, l[n].at, l[n].recs)

-----------------------------------------------------------------------------
(* Decisions of the design. The mutants of MCWallet replace them.             *)

Found(r)          == {i \in DOMAIN st.keys : st.keys[i].key = KeyOf(r)}
Same(k, r)        == k.asked = Asked(r)   \* the outcome of a key is returned only for the same request
Sane(r)           == r.from # r.to        \* from and to are different accounts
Ahead(asked, next) == asked > next
Used(asked, next)  == asked < next
Short(has, amount) == has < amount
Stored(problem)   == problem # "ahead"    \* a nonce that is ahead may become valid: no outcome is stored
Room              == Len(st.keys) < MaxKeys \* a key is never evicted before its TTL to make room
Expired(k)        == k.at + TTL <= now
Forgot(upto)      == <<[kind |-> "forgot", upto |-> upto]>> \* an eviction is a record
Waits(what)       == Len(log)             \* an answer, also a rejection, waits for every frame that it depends on
MayLeave          == folded               \* until that frame is folded
MayFollow         == durable
Show(lsn)         == log[lsn].recs[1]     \* an answer is rendered from its record
Recovered(l)      == Fold(l, Len(l))

-----------------------------------------------------------------------------
Problem(s, r) ==
  LET next == s.nonce[From(r)] + 1 IN
  IF r.op = "issue" THEN "none"
  ELSE IF Ahead(r.nonce, next) THEN "ahead"
  ELSE IF Used(r.nonce, next) THEN "used"
  ELSE IF Short(s.bal[From(r)], r.amount) THEN "short"
  ELSE "none"

Moved(s, r) == [kind |-> "moved", req |-> r, seq |-> s.seq[r.tenant] + 1,
                fromNow |-> IF r.op = "issue" THEN s.issued + r.amount ELSE s.bal[From(r)] - r.amount,
                toNow   |-> IF r.op = "burn"  THEN s.burned + r.amount ELSE s.bal[To(r)] + r.amount]
Refused(s, r, why) == [kind |-> "refused", req |-> r, why |-> why, next |-> s.nonce[From(r)] + 1]

NoReply == [what |-> "none", lsn |-> 0, next |-> 0, after |-> 0]
Place(lsn, after)  == [what |-> "record", lsn |-> lsn, next |-> 0, after |-> after]
Tells(what, next)  == [what |-> what, lsn |-> 0, next |-> next, after |-> Waits(what)]
Blank(what)        == [what |-> what, lsn |-> 0, next |-> 0, after |-> 0]

Emit(recs) == /\ log' = Append(log, [at |-> now, recs |-> recs])
              /\ st' = ApplyAll(st, Len(log) + 1, now, recs)

\* A reply is held. If a failed flush may have lost its frame, the outcome is unknown and the client retries.
Hold(c, reply) == client' = [client EXCEPT ![c] = IF failed /\ reply.after > durable THEN @
                                                  ELSE [@ EXCEPT !.ph = "held", !.reply = reply]]

Init ==
  /\ log = <<>> /\ durable = 0 /\ folded = 0 /\ st = Empty /\ now = 0 /\ failed = FALSE
  /\ client = [c \in Clients |-> [ph |-> "idle", req |-> Nobody, reply |-> NoReply]]
  /\ said = {} /\ spent = [asks |-> 0, fails |-> 0, crashes |-> 0]

Spend(what, most) == spent[what] < most /\ spent' = [spent EXCEPT ![what] = @ + 1]

Ask(c) ==
  /\ client[c].ph = "idle" /\ Spend("asks", MaxAsks)
  /\ \E r \in Requests : client' = [client EXCEPT ![c] = [ph |-> "asked", req |-> r, reply |-> NoReply]]
  /\ UNCHANGED <<log, durable, folded, st, now, failed, said>>

Forgettable(keys) == IF keys # <<>> /\ Expired(keys[1]) THEN Forgot(keys[1].lsn) ELSE <<>>

Replay(c, k) == Hold(c, IF Same(k, client[c].req) THEN Place(k.lsn, IF k.lsn <= folded THEN k.lsn ELSE Len(log))
                                                  ELSE Tells("conflict", 0))
                /\ UNCHANGED <<log, st>>

Decide(c, r) == LET why == Problem(st, r) IN
  IF why # "none" /\ ~Stored(why) THEN Hold(c, Tells(why, st.nonce[From(r)] + 1)) /\ UNCHANGED <<log, st>>
  ELSE /\ Emit(<<IF why = "none" THEN Moved(st, r) ELSE Refused(st, r, why)>> \o Forgettable(st.keys))
       /\ Hold(c, Place(Len(log) + 1, Len(log) + 1))

Step(c) ==
  /\ client[c].ph = "asked"
  /\ LET r == client[c].req IN
     IF ~Sane(r) THEN Hold(c, Blank("bad")) /\ UNCHANGED <<log, st>>
     ELSE IF Found(r) # {} THEN Replay(c, st.keys[Max(Found(r))])
     ELSE IF ~Room THEN Hold(c, Blank("full")) /\ UNCHANGED <<log, st>>
     ELSE ~failed /\ Decide(c, r) \* otherwise unavailable: the client retries
  /\ UNCHANGED <<durable, folded, now, failed, said, spent>>

Leave(c) ==
  /\ client[c].ph = "held" /\ client[c].reply.after <= MayLeave
  /\ LET p == client[c].reply IN
     said' = IF p.what \in {"bad", "full"} THEN said
             ELSE said \cup {[req |-> client[c].req, after |-> p.after, what |-> p.what, lsn |-> p.lsn, next |-> p.next,
                              rec |-> IF p.what = "record" THEN Show(p.lsn) ELSE Nobody]}
  /\ client' = [client EXCEPT ![c] = [ph |-> "idle", req |-> Nobody, reply |-> NoReply]]
  /\ UNCHANGED <<log, durable, folded, st, now, failed, spent>>

Sync == \* also of a flush that only took too long
  /\ durable < Len(log) /\ \E n \in (durable + 1)..Len(log) : durable' = n
  /\ UNCHANGED <<log, folded, st, now, failed, client, said, spent>>

Follow ==
  /\ folded < MayFollow /\ folded' = folded + 1
  /\ UNCHANGED <<log, durable, st, now, failed, client, said, spent>>

Tick ==
  /\ now < MaxTime /\ now' = now + 1
  /\ UNCHANGED <<log, durable, folded, st, failed, client, said, spent>>

Sweep ==
  /\ ~failed /\ st.keys # <<>> /\ Expired(st.keys[1])
  /\ Emit(Forgot(st.keys[1].lsn))
  /\ UNCHANGED <<durable, folded, now, failed, client, said, spent>>

AskAgain(lost(_)) == client' = [c \in Clients |-> IF lost(client[c]) THEN [client[c] EXCEPT !.ph = "asked", !.reply = NoReply] ELSE client[c]]

FailFlush ==
  /\ ~failed /\ durable < Len(log) /\ Spend("fails", MaxFails)
  /\ failed' = TRUE /\ AskAgain(LAMBDA x : x.ph = "held" /\ x.reply.after > durable)
  /\ UNCHANGED <<log, durable, folded, st, now, said>>

LosePatience(c) ==
  /\ client[c].ph = "held" /\ Spend("fails", MaxFails)
  /\ client' = [client EXCEPT ![c].ph = "asked", ![c].reply = NoReply]
  /\ UNCHANGED <<log, durable, folded, st, now, failed, said>>

Begin == \* the log survives, and the state is its fold
  /\ \E n \in durable..Len(log) :
       LET l == SubSeq(log, 1, n) IN
       /\ log' = l /\ durable' = n /\ folded' = n /\ st' = Recovered(l)
       /\ now' = IF n = 0 THEN 0 ELSE l[n].at
  /\ failed' = FALSE /\ AskAgain(LAMBDA x : x.ph = "held")
  /\ UNCHANGED said

Restart == failed /\ Begin /\ UNCHANGED spent
Crash   == ~failed /\ Spend("crashes", MaxCrashes) /\ Begin

Idle == \A c \in Clients : client[c].ph = "idle"
Done == Idle /\ spent.asks = MaxAsks /\ folded = Len(log) /\ now = MaxTime /\ UNCHANGED vars

Progress == \/ \E c \in Clients : Step(c) \/ Leave(c)
            \/ Sync \/ Follow
Next     == \/ Progress \/ Restart \/ Tick \/ Sweep \/ Done
            \/ \E c \in Clients : Ask(c) \/ LosePatience(c)
            \/ FailFlush \/ Crash

Spec     == Init /\ [][Next]_vars
LiveSpec == Spec /\ WF_vars(Progress) /\ WF_vars(Restart)

-----------------------------------------------------------------------------
(* Money.                                                                     *)

\* M1. All issued money is in an account, or burned.
Conservation == Sum(st.bal, Accounts) + st.burned = st.issued

NonNegative == \A a \in Accounts : st.bal[a] >= 0

Is(n, kind) == log[n].recs[1].kind = kind
Req(n)      == log[n].recs[1].req
Moves       == {n \in DOMAIN log : Is(n, "moved")}
Outcomes    == {n \in DOMAIN log : ~Is(n, "forgot")}
Debits(a)   == {n \in Moves : Req(n).op # "issue" /\ From(Req(n)) = a}

\* M2. The n-th debit of an account used nonce n.
NonceExact == \A a \in Accounts :
  /\ st.nonce[a] = Cardinality(Debits(a))
  /\ \A n \in Debits(a) : Req(n).nonce = Cardinality({m \in Debits(a) : m <= n})

\* M3. The movements of a tenant are numbered without gaps.
SeqExact == \A n \in Moves : log[n].recs[1].seq = Cardinality({m \in Moves : m <= n /\ Req(m).tenant = Req(n).tenant})

\* A request under one key takes effect once within its TTL, and a debit once for ever.
AtMostOnce == \A m, n \in Moves : m < n /\ Req(m) = Req(n) => Req(n).op = "issue" /\ log[n].at >= log[m].at + TTL

Money(s) == <<s.bal, s.nonce, s.seq, s.issued, s.burned>>
RefusedChangesNothing == [][Len(log') > Len(log) /\ log'[Len(log')].recs[1].kind # "moved" => Money(st') = Money(st)]_<<log, st>>

(* Keys.                                                                      *)

Forgets(n) == {log[n].recs[i].upto : i \in {j \in DOMAIN log[n].recs : log[n].recs[j].kind = "forgot"}}
Far        == Max({0} \cup UNION {Forgets(n) : n \in DOMAIN log})

\* A key gets a second outcome only after the TTL of the first, and after a record that evicts it.
OneOutcomePerKey == \A m, n \in Outcomes : m < n /\ <<Req(m).tenant, Req(m).key>> = <<Req(n).tenant, Req(n).key>> =>
  /\ log[n].at >= log[m].at + TTL
  /\ \E f \in (m + 1)..(n - 1) : \E upto \in Forgets(f) : upto >= m

\* I1, I2. The window contains the outcomes of all frames after the last evicted one, in order.
WindowExact == LET held == {n \in Outcomes : n > Far} IN
  /\ {st.keys[i].lsn : i \in DOMAIN st.keys} = held
  /\ \A i, j \in DOMAIN st.keys : i < j => st.keys[i].lsn < st.keys[j].lsn

\* I3. The window has at most MaxKeys keys.
WindowBounded == Len(st.keys) <= MaxKeys

\* Live and recovered state are equal.
StateIsFold == st = Fold(log, Len(log))

\* A stored rejection never concerns a nonce that may become valid.
OnlyUsedIsStored == \A n \in Outcomes : Is(n, "refused") => Req(n).nonce <= log[n].recs[1].next

(* Answers.                                                                   *)

Shown == {a \in said : a.what = "record"}

\* All answers to retries of one request are equal within the TTL of its key.
IdenticalOutcome == \A a, b \in {x \in said : x.what # "conflict" /\ x.what # "ahead"} :
  a.req = b.req /\ <<a.lsn, a.rec>> # <<b.lsn, b.rec>> =>
    /\ a.lsn # b.lsn /\ a.lsn \in DOMAIN log /\ b.lsn \in DOMAIN log
    /\ log[Max({a.lsn, b.lsn})].at >= log[CHOOSE n \in {a.lsn, b.lsn} : n # Max({a.lsn, b.lsn})].at + TTL

\* An answer is about its request, and about the tenant of its caller.
AnswersItsRequest == \A a \in Shown : a.rec.req.tenant = a.req.tenant /\ Asked(a.rec.req) = Asked(a.req)

\* Every answer follows from durable frames, so no crash revokes it.
TellsDurable == \A a \in said :
  /\ a.after <= durable
  /\ a.what = "record"   => a.lsn <= durable /\ log[a.lsn].recs[1] = a.rec
  /\ a.what = "ahead"    => \E n \in 0..durable : Fold(log, n).nonce[From(a.req)] + 1 = a.next
  /\ a.what = "conflict" => \E n \in 1..durable : /\ n \in Outcomes /\ Req(n) # a.req
                                                  /\ Req(n).tenant = a.req.tenant /\ Req(n).key = a.req.key

\* The read model has every frame that was acknowledged.
TellsFolded == \A a \in said : a.after <= folded

\* N1.
Ordered == folded <= durable /\ durable <= Len(log)

\* Every request gets an answer.
Answered == \A c \in Clients : client[c].ph # "idle" ~> client[c].ph = "idle"
=============================================================================
