--------------------------------- MODULE Idem ---------------------------------
(* One effect for a key within its time, and for a ref for ever, with a window *)
(* in memory that holds only what is recent, and an index that has the rest.  *)
(*                                                                            *)
(*   Ask: read the index's mark F ──► Look: key and ref, in the index         *)
(*     ──► Enter with F and what it saw: window, else index, else new frame   *)
(*                    └──◄── Again, where F < forgot ──◄──┘                   *)
(*   frame ──► Sync ──► Follow (index, in memory) ──► Persist (table, mark)   *)
(*     ──► Tell ──► Forget, a frame: the window drops what the index has      *)
(*                                                                            *)
(* Between these steps anything may happen: the index moves on, or falls back *)
(* to what it had made durable, or is lost, or turns out to be another        *)
(* journal's. One compare, F against forgot, is all that safety rests on;     *)
(* what is dropped and when only decides how often a request looks again.     *)
(* What is dropped is any that the index has: how full the window is and how  *)
(* long ago its keys came are only reasons to do it. What an outcome does to  *)
(* money, and what a key shows when other things are asked, is Wallet's.      *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Clients,
  Requests,   \* [op, key, ref]; op is "do", or "find": what became of this key?
  NoRef, Nobody,
  TTL,        \* of a key, from its frame on
  MaxTime, MaxAsks, MaxForgets,
  MaxCrashes, \* of the process, and of the index alone
  MaxLosses,  \* of the index, whole
  Foreign     \* what another journal's index may say, each at any mark

VARIABLES
  log,        \* frames: [at, kind, key, ref, lsn]; lsn: who has the ref, or upto where is forgotten
  durable,
  now,        \* the node's own time
  st,         \* the window: [forgot, last, keys]
  indexed,    \* the node knows that the index has all up to here
  idx, tbl,   \* the index as it answers and as it is durable: [mark, root, rows]
  client,     \* [ph, req, f, seen, used, reply]; ph is "idle", "asked", "looked" or "held"
  said,       \* every outcome that left: [req, lsn, frame]
  spent

vars == <<log, durable, now, st, indexed, idx, tbl, client, said, spent>>

Max(S) == CHOOSE n \in S : \A m \in S : m <= n
Min(S) == CHOOSE n \in S : \A m \in S : n <= m

-----------------------------------------------------------------------------
(* The folds. A row is a name, the frame of its outcome, and when.            *)

NoRow == [name |-> NoRef, lsn |-> 0, at |-> 0]
Row(rows, name) == IF \E r \in rows : r.name = name THEN CHOOSE r \in rows : r.name = name ELSE NoRow

Keyed(f)     == f.kind # "forgot"
Names(f)     == IF ~Keyed(f) THEN {} ELSE {f.key} \cup (IF f.kind = "done" /\ f.ref # NoRef THEN {f.ref} ELSE {})
Rows(lsn, f) == {[name |-> n, lsn |-> lsn, at |-> f.at] : n \in Names(f)}

Empty == [forgot |-> 0, last |-> 0, keys |-> {}]
Blank == [mark |-> 0, root |-> <<>>, rows |-> {}]

\* Decisions; the mutants of MCIdem replace them.
Stays(k, upto)    == k.lsn > upto                            \* what is forgotten, goes; nothing else does
Latest(last, ats) == Max({last} \cup ats)                    \* of what was forgotten, the youngest counts

Apply(s, lsn, f) ==
  IF Keyed(f) THEN [s EXCEPT !.keys = @ \cup Rows(lsn, f)]
  ELSE LET gone == {k \in s.keys : ~Stays(k, f.lsn)}
       IN [forgot |-> Max({s.forgot, f.lsn}), last |-> Latest(s.last, {k.at : k \in gone}), keys |-> s.keys \ gone]

RECURSIVE Fold(_, _)
Fold(l, n) == IF n = 0 THEN Empty ELSE Apply(Fold(l, n - 1), n, l[n])

RefNames          == {r.ref : r \in Requests}
Keeps(row, at)    == row.name \in RefNames \/ row.at + TTL > at     \* the index drops what is over at the time of its mark

\* The index keeps of a name what came last.
Take(i, lsn, f) == [mark |-> lsn, root |-> Append(i.root, f),
                    rows |-> {r \in i.rows : r.name \notin Names(f) /\ Keeps(r, f.at)} \cup Rows(lsn, f)]

RECURSIVE Index(_, _)
Index(l, n) == IF n = 0 THEN Blank ELSE Take(Index(l, n - 1), n, l[n])

-----------------------------------------------------------------------------
(* Decisions.                                                                 *)

Lives(at)         == at + TTL > now
Aged              == st.forgot > 0 /\ Lives(st.last)         \* of what is forgotten, some may be in its time
Enough(f)         == f >= st.forgot                          \* the one compare
Needless(ref)     == ref = NoRef /\ ~Aged                    \* all keys that are forgotten are over; a ref is never
Upto(x)           == x.f                                     \* the mark that was read before the look-up
Sees(f)           == Min({f, idx.mark})                      \* an index that fell back since has no more than it has
Shows(row)        == row.lsn > 0 /\ Lives(row.at)            \* the index's word for a key holds for the key's time
Has(row)          == row.lsn > 0                             \*   and for a ref for ever
Asks(op)          == TRUE                                    \* whoever finds nothing must have looked far enough
Tables            == {tbl}                                   \* what has left the memory since it was looked through, is in them
Rereads(x)        == idx.mark                                \* whoever is sent back reads the mark again
MayFollow         == durable                                 \* the index follows what no crash takes back
MayForget         == indexed                                 \* what the index has, for ever
MayTell           == tbl.mark                                \*   which is what is durable
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

Ask(c) == \* and read the mark, before anything else
  /\ client[c].ph = "idle" /\ Spend("asks", MaxAsks)
  /\ \E r \in Requests : client' = [client EXCEPT ![c] = [Idle EXCEPT !.ph = "asked", !.req = r, !.f = idx.mark]]
  /\ UNCHANGED <<log, durable, now, st, indexed, idx, tbl, said>>

Read(t, name) == \* first what is in memory alone, then the tables
  LET tail == Row({r \in idx.rows : r.lsn > tbl.mark}, name) IN
  IF name = NoRef THEN NoRow ELSE IF tail.lsn > 0 THEN tail ELSE Row(t.rows, name)

Look(c) == \* one name after the other: the index may move on between
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

Persist == \* the table and its mark, together
  /\ tbl # idx /\ tbl' = idx
  /\ UNCHANGED <<log, durable, now, st, indexed, idx, client, said, spent>>

Tell ==
  /\ indexed < MayTell /\ indexed' = MayTell
  /\ UNCHANGED <<log, durable, now, st, idx, tbl, client, said, spent>>

Forget == \* it is a frame, so that a recovery forgets as much
  /\ Spend("forgets", MaxForgets)
  /\ \E k \in st.keys : k.lsn <= MayForget /\ Emit(Forgets(k.lsn))
  /\ UNCHANGED <<durable, now, indexed, idx, tbl, client, said>>

Tick ==
  /\ now < MaxTime /\ now' = now + 1
  /\ UNCHANGED <<log, durable, st, indexed, idx, tbl, client, said, spent>>

Opens(i) == idx' = i /\ tbl' = i

FallBack == \* the index alone ends, and begins again with what it made durable
  /\ Spend("crashes", MaxCrashes) /\ idx # tbl /\ Opens(tbl)
  /\ UNCHANGED <<log, durable, now, st, indexed, client, said>>

Lose == \* what the index made durable cannot be read: it is rebuilt
  /\ Spend("losses", MaxLosses) /\ Opens(Blank)
  /\ UNCHANGED <<log, durable, now, st, indexed, client, said>>

Strangers(n) == {[mark |-> m, root |-> <<>>, rows |-> rows] : m \in 1..n, rows \in Foreign}

Begin(n, found) == \* all that survived is the log, and an index that may be believed or not
  LET l == SubSeq(log, 1, n)
      i == IF OnChain(found, l) THEN found ELSE Blank
  IN /\ log' = l /\ durable' = n /\ st' = Recovered(l) /\ now' = IF n = 0 THEN 0 ELSE l[n].at
     /\ indexed' = 0 /\ Opens(i)
     /\ client' = [c \in Clients |-> IF client[c].ph = "idle" THEN Idle
                                     ELSE [Idle EXCEPT !.ph = "asked", !.req = client[c].req, !.f = i.mark]]
     /\ UNCHANGED said

Crash ==
  /\ Spend("crashes", MaxCrashes) /\ \E n \in durable..Len(log) : Begin(n, tbl)

CrashAmongStrangers == \* and another journal's index lies where ours was
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
(* What is kept.                                                              *)

Outcomes == {n \in DOMAIN log : Keyed(log[n])}

\* What is asked under one key is decided once within its time.
AtMostOnce == \A m, n \in Outcomes : m < n /\ log[m].key = log[n].key => log[n].at >= log[m].at + TTL

\* One ref, one effect, for ever. Who comes second is told who has it.
RefOnce ==
  /\ \A m, n \in Outcomes : m < n /\ log[m].ref = log[n].ref /\ log[m].ref # NoRef => log[n].kind = "refused"
  /\ \A n \in Outcomes : log[n].kind = "refused" => log[log[n].lsn].kind = "done" /\ log[log[n].lsn].ref = log[n].ref

\* Whoever is shown an outcome is shown the last of his key: none of before its time was over.
ShowsTheLast == [][\A c \in Clients : client[c].ph = "looked" /\ client'[c].reply.what = "outcome" =>
  \A n \in DOMAIN log' : Keyed(log'[n]) /\ log'[n].key = client[c].req.key => n <= client'[c].reply.lsn]_<<log, client>>

\* Whoever is told that nothing became of his key is told so of its time.
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
