--------------------------------- MODULE Idem ---------------------------------
(* One effect for a key within its TTL, and for a ref for ever. The window in *)
(* memory has recent keys only, and the index has all others.                 *)
(*                                                                            *)
(*   Ask: read the index's mark F ──► Look: key and ref, in the index         *)
(*     ──► Enter with F and the rows: window, else index, else a new frame    *)
(*                    └──◄── Again, if F < forgot ──◄──┘                      *)
(*   frame ──► Sync ──► Follow (index, in memory) ──► Persist (table, mark)   *)
(*     ──► Tell ──► Forget, a frame: the window evicts keys that are indexed  *)
(*                                                                            *)
(* Between these steps the index may advance, restart from its durable        *)
(* tables, be lost, or turn out to belong to another journal. Safety needs    *)
(* one comparison: F against forgot. Which keys are evicted, and when, only   *)
(* decides how often a request repeats its look-up. Any indexed key may be    *)
(* evicted; how full the window is and how old its keys are decide when.      *)
(* The effect of an outcome on money, and the conflict of a key that is used  *)
(* for another request, are specified in Wallet.                              *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Clients,
  Requests,   \* [op, key, ref]; op is "do", or "find": look up the outcome of the key
  NoRef, Nobody,
  TTL,        \* of an idempotency key, from the time of its frame
  MaxTime, MaxAsks, MaxForgets,
  MaxCrashes, \* crashes of the process, and of the index alone
  MaxLosses,  \* losses of the whole index
  Foreign     \* the rows that an index of another journal may have, each at any mark

VARIABLES
  log,        \* frames: [at, kind, key, ref, lsn]; lsn: the frame that used the ref, or the last evicted frame
  durable,
  now,        \* the durable time of the node
  st,         \* the window: [forgot, last, keys]
  indexed,    \* the last frame that the index has reported as indexed
  idx, tbl,   \* the index in memory and its durable tables: [mark, root, rows]
  client,     \* [ph, req, f, seen, used, reply]; ph is "idle", "asked", "looked" or "held"
  said,       \* every outcome that was sent: [req, lsn, frame]
  spent

vars == <<log, durable, now, st, indexed, idx, tbl, client, said, spent>>

Max(S) == CHOOSE n \in S : \A m \in S : m <= n
Min(S) == CHOOSE n \in S : \A m \in S : n <= m

-----------------------------------------------------------------------------
(* The folds. A row is a name, the frame of its outcome, and its time.        *)

NoRow == [name |-> NoRef, lsn |-> 0, at |-> 0]
Row(rows, name) == IF \E r \in rows : r.name = name THEN CHOOSE r \in rows : r.name = name ELSE NoRow

Keyed(f)     == f.kind # "forgot"
Names(f)     == IF ~Keyed(f) THEN {} ELSE {f.key} \cup (IF f.kind = "done" /\ f.ref # NoRef THEN {f.ref} ELSE {})
Rows(lsn, f) == {[name |-> n, lsn |-> lsn, at |-> f.at] : n \in Names(f)}

Empty == [forgot |-> 0, last |-> 0, keys |-> {}]
Blank == [mark |-> 0, root |-> <<>>, rows |-> {}]

\* Decisions of the design. The mutants of MCIdem replace them.
Stays(k, upto)    == k.lsn > upto                            \* only evicted keys are removed
Latest(last, ats) == Max({last} \cup ats)                    \* the time of the newest evicted key

Apply(s, lsn, f) ==
  IF Keyed(f) THEN [s EXCEPT !.keys = @ \cup Rows(lsn, f)]
  ELSE LET gone == {k \in s.keys : ~Stays(k, f.lsn)}
       IN [forgot |-> Max({s.forgot, f.lsn}), last |-> Latest(s.last, {k.at : k \in gone}), keys |-> s.keys \ gone]

RECURSIVE Fold(_, _)
Fold(l, n) == IF n = 0 THEN Empty ELSE Apply(Fold(l, n - 1), n, l[n])

RefNames          == {r.ref : r \in Requests}
Keeps(row, at)    == row.name \in RefNames \/ row.at + TTL > at     \* the index drops keys that have expired at the time of its mark; refs stay

\* The index keeps the last row of a name.
Take(i, lsn, f) == [mark |-> lsn, root |-> Append(i.root, f),
                    rows |-> {r \in i.rows : r.name \notin Names(f) /\ Keeps(r, f.at)} \cup Rows(lsn, f)]

RECURSIVE Index(_, _)
Index(l, n) == IF n = 0 THEN Blank ELSE Take(Index(l, n - 1), n, l[n])

-----------------------------------------------------------------------------
(* Decisions.                                                                 *)

Lives(at)         == at + TTL > now
Aged              == st.forgot > 0 /\ Lives(st.last)         \* an evicted key may be within its TTL
Enough(f)         == f >= st.forgot                          \* the comparison that safety needs
Needless(ref)     == ref = NoRef /\ ~Aged                    \* the index is not needed: every evicted key has expired. A ref never expires
Upto(x)           == x.f                                     \* the mark that was read before the look-up
Sees(f)           == Min({f, idx.mark})                      \* an index that was restored since may have a lower mark
Shows(row)        == row.lsn > 0 /\ Lives(row.at)            \* a key in the index counts within its TTL
Has(row)          == row.lsn > 0                             \* a ref in the index always counts
Asks(op)          == TRUE                                    \* if nothing is found, the index must have been read far enough
Tables            == {tbl}                                   \* rows that have left the memory since it was read are in the tables
Rereads(x)        == idx.mark                                \* a repeated look-up reads the mark again
MayFollow         == durable                                 \* the index reads durable frames only
MayForget         == indexed                                 \* only indexed frames are evicted
MayTell           == tbl.mark                                \* a frame counts as indexed when its table is durable
Forgets(upto)     == [at |-> now, kind |-> "forgot", key |-> NoRef, ref |-> NoRef, lsn |-> upto]
MayLeave          == durable
OnChain(i, l)     == i.mark <= Len(l) /\ i.root = SubSeq(l, 1, i.mark)
Recovered(l)      == Fold(l, Len(l))

-----------------------------------------------------------------------------
NoReply == [what |-> "none", lsn |-> 0, after |-> 0]
Idle    == [ph |-> "idle", req |-> Nobody, f |-> 0, seen |-> NoRow, used |-> NoRow, reply |-> NoReply]

Init ==
  /\ log = <<>> /\ durable = 0 /\ now = 0 /\ st = Empty /\ indexed = 0 /\ idx = Blank /\ tbl = Blank
  /\ client = [c \in Clients |-> Idle] /\ said = {}
  /\ spent = [asks |-> 0, forgets |-> 0, crashes |-> 0, losses |-> 0]

Spend(what, most) == spent[what] < most /\ spent' = [spent EXCEPT ![what] = @ + 1]

Emit(f) == log' = Append(log, f) /\ st' = Apply(st, Len(log) + 1, f)

Ask(c) == \* the mark is read first
  /\ client[c].ph = "idle" /\ Spend("asks", MaxAsks)
  /\ \E r \in Requests : client' = [client EXCEPT ![c] = [Idle EXCEPT !.ph = "asked", !.req = r, !.f = idx.mark]]
  /\ UNCHANGED <<log, durable, now, st, indexed, idx, tbl, said>>

Read(t, name) == \* first the rows in memory, then the tables
  LET tail == Row({r \in idx.rows : r.lsn > tbl.mark}, name) IN
  IF name = NoRef THEN NoRow ELSE IF tail.lsn > 0 THEN tail ELSE Row(t.rows, name)

Look(c) == \* one name after the other; the index may change in between
  /\ client[c].ph = "asked"
  /\ \E t \in Tables : client' = [client EXCEPT ![c].ph = "looked", ![c].f = Sees(@),
       ![c].seen = Read(tbl, client[c].req.key), ![c].used = Read(t, client[c].req.ref)]
  /\ UNCHANGED <<log, durable, now, st, indexed, idx, tbl, said, spent>>

Hold(c, what, lsn) == client' = [client EXCEPT ![c] = [Idle EXCEPT !.ph = "held", !.req = client[c].req,
  !.reply = [what |-> what, lsn |-> lsn, after |-> IF lsn \in 1..durable THEN lsn ELSE Len(log')]]]

Find(x) == LET k == Row(st.keys, x.req.key) IN IF k.lsn > 0 THEN k ELSE IF Shows(x.seen) THEN x.seen ELSE NoRow
Used(x) == LET k == Row(st.keys, x.req.ref) IN IF k.lsn > 0 THEN k ELSE IF Has(x.used) THEN x.used ELSE NoRow

Decide(x) == [at |-> now, kind |-> IF Used(x).lsn > 0 THEN "refused" ELSE "done",
              key |-> x.req.key, ref |-> x.req.ref, lsn |-> Used(x).lsn]

Enter(c) ==
  /\ client[c].ph = "looked"
  /\ LET x == client[c] IN
     IF Find(x).lsn > 0 THEN UNCHANGED <<log, st>> /\ Hold(c, "outcome", Find(x).lsn)
     ELSE IF Asks(x.req.op) /\ ~Enough(Upto(x)) /\ ~Needless(x.req.ref)
       THEN client' = [client EXCEPT ![c] = [Idle EXCEPT !.ph = "asked", !.req = x.req, !.f = Rereads(x)]] /\ UNCHANGED <<log, st>>
     ELSE IF x.req.op = "find" THEN UNCHANGED <<log, st>> /\ Hold(c, "nothing", 0)
     ELSE Emit(Decide(x)) /\ Hold(c, "outcome", Len(log) + 1)
  /\ UNCHANGED <<durable, now, indexed, idx, tbl, said, spent>>

Leave(c) ==
  /\ client[c].ph = "held" /\ client[c].reply.after <= MayLeave
  /\ LET p == client[c].reply IN
     said' = IF p.what = "nothing" THEN said ELSE said \cup {[req |-> client[c].req, lsn |-> p.lsn, frame |-> log[p.lsn]]}
  /\ client' = [client EXCEPT ![c] = Idle]
  /\ UNCHANGED <<log, durable, now, st, indexed, idx, tbl, spent>>

Sync ==
  /\ durable < Len(log) /\ \E n \in (durable + 1)..Len(log) : durable' = n
  /\ UNCHANGED <<log, now, st, indexed, idx, tbl, client, said, spent>>

Follow ==
  /\ idx.mark < MayFollow /\ idx' = Take(idx, idx.mark + 1, log[idx.mark + 1])
  /\ UNCHANGED <<log, durable, now, st, indexed, tbl, client, said, spent>>

Persist == \* the table and its mark become durable together
  /\ tbl # idx /\ tbl' = idx
  /\ UNCHANGED <<log, durable, now, st, indexed, idx, client, said, spent>>

Tell ==
  /\ indexed < MayTell /\ indexed' = MayTell
  /\ UNCHANGED <<log, durable, now, st, idx, tbl, client, said, spent>>

Forget == \* an eviction is a frame, so that recovery evicts the same keys
  /\ Spend("forgets", MaxForgets)
  /\ \E k \in st.keys : k.lsn <= MayForget /\ Emit(Forgets(k.lsn))
  /\ UNCHANGED <<durable, now, indexed, idx, tbl, client, said>>

Tick ==
  /\ now < MaxTime /\ now' = now + 1
  /\ UNCHANGED <<log, durable, st, indexed, idx, tbl, client, said, spent>>

Opens(i) == idx' = i /\ tbl' = i

FallBack == \* the index restarts alone, from its durable tables
  /\ Spend("crashes", MaxCrashes) /\ idx # tbl /\ Opens(tbl)
  /\ UNCHANGED <<log, durable, now, st, indexed, client, said>>

Lose == \* the tables of the index cannot be read: it is rebuilt
  /\ Spend("losses", MaxLosses) /\ Opens(Blank)
  /\ UNCHANGED <<log, durable, now, st, indexed, client, said>>

Strangers(n) == {[mark |-> m, root |-> <<>>, rows |-> rows] : m \in 1..n, rows \in Foreign}

Begin(n, found) == \* the log survives, and an index that is used only if it is on the chain of the log
  LET l == SubSeq(log, 1, n)
      i == IF OnChain(found, l) THEN found ELSE Blank
  IN /\ log' = l /\ durable' = n /\ st' = Recovered(l) /\ now' = IF n = 0 THEN 0 ELSE l[n].at
     /\ indexed' = 0 /\ Opens(i)
     /\ client' = [c \in Clients |-> IF client[c].ph = "idle" THEN Idle
                                     ELSE [Idle EXCEPT !.ph = "asked", !.req = client[c].req, !.f = i.mark]]
     /\ UNCHANGED said

Crash ==
  /\ Spend("crashes", MaxCrashes) /\ \E n \in durable..Len(log) : Begin(n, tbl)

CrashAmongStrangers == \* and the index of another journal is in the directory
  /\ Spend("losses", MaxLosses) /\ \E n \in durable..Len(log) : \E found \in Strangers(n) : Begin(n, found)

Done == /\ \A c \in Clients : client[c].ph = "idle"
        /\ spent.asks = MaxAsks /\ tbl.mark = Len(log) /\ indexed = tbl.mark /\ UNCHANGED vars

Progress == \/ \E c \in Clients : Look(c) \/ Enter(c) \/ Leave(c)
            \/ Sync \/ Follow
Next     == \/ Progress \/ Persist \/ Tell \/ Forget \/ Tick \/ Done
            \/ \E c \in Clients : Ask(c)
            \/ FallBack \/ Lose \/ Crash \/ CrashAmongStrangers

Spec     == Init /\ [][Next]_vars
LiveSpec == Spec /\ WF_vars(Sync) /\ WF_vars(Follow)
                 /\ \A c \in Clients : WF_vars(Look(c)) /\ WF_vars(Enter(c)) /\ WF_vars(Leave(c))

-----------------------------------------------------------------------------
(* Invariants.                                                                *)

Outcomes == {n \in DOMAIN log : Keyed(log[n])}

\* Within the TTL of a key, one request with it is decided once.
AtMostOnce == \A m, n \in Outcomes : m < n /\ log[m].key = log[n].key => log[n].at >= log[m].at + TTL

\* A ref takes effect once, for ever. A later request with it is rejected, and gets the frame that used it.
RefOnce ==
  /\ \A m, n \in Outcomes : m < n /\ log[m].ref = log[n].ref /\ log[m].ref # NoRef => log[n].kind = "refused"
  /\ \A n \in Outcomes : log[n].kind = "refused" => log[log[n].lsn].kind = "done" /\ log[log[n].lsn].ref = log[n].ref

\* A client gets the last outcome of its key, and none that has expired.
ShowsTheLast == [][\A c \in Clients : client[c].ph = "looked" /\ client'[c].reply.what = "outcome" =>
  \A n \in DOMAIN log' : Keyed(log'[n]) /\ log'[n].key = client[c].req.key => n <= client'[c].reply.lsn]_<<log, client>>

\* A client that gets no outcome has a key without an outcome within its TTL.
NothingIsSo == [][\A c \in Clients : client[c].ph = "looked" /\ client'[c].reply.what = "nothing" =>
  \A n \in DOMAIN log : Keyed(log[n]) /\ log[n].key = client[c].req.key => ~Lives(log[n].at)]_<<log, client>>

\* An answer is of the key that was asked for.
AnswersItsRequest == \A c \in Clients : client[c].reply.what = "outcome" =>
  LET n == client[c].reply.lsn IN n \in Outcomes /\ log[n].key = client[c].req.key

\* Whatever was told is durable, and no crash takes it back.
TellsDurable == \A a \in said : a.lsn <= durable /\ log[a.lsn] = a.frame

\* I1, I4. The window holds the names of all frames after the last that is forgotten, and knows how old those before are.
Far == Max({0} \cup {log[n].lsn : n \in {m \in DOMAIN log : ~Keyed(log[m])}})
WindowExact ==
  /\ st.forgot = Far
  /\ st.keys = UNION {Rows(n, log[n]) : n \in {m \in Outcomes : m > Far}}
  /\ st.last = Max({0} \cup {log[n].at : n \in {m \in Outcomes : m <= Far}})

\* Live and recovered state are equal.
StateIsFold == st = Fold(log, Len(log))

\* N1. The index, as it answers and as it is durable, is a first part of the durable log, whole.
IndexIsPrefix == \A i \in {idx, tbl} : i.mark <= durable /\ i = Index(log, i.mark)

\* What the window forgot a durable index has, unless it was lost: after a crash nobody waits for it.
ForgottenIsKept == spent.losses = 0 => st.forgot <= tbl.mark

\* Whoever asks hears: those who are sent back are not sent back for ever.
Answered == \A c \in Clients : client[c].ph # "idle" ~> client[c].ph = "idle"
=============================================================================
