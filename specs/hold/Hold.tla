--------------------------------- MODULE Hold ---------------------------------
(* Holds: an amount that is reserved until it is captured or released, or     *)
(* until it expires.                                                          *)
(*                                                                            *)
(*   Hold ──► open ──► Capture: part is debited, the rest released            *)
(*               ├──► Release                                                 *)
(*               └──► it expires, by the first of                             *)
(*                      a request for the same account, in the same frame     *)
(*                      the sweep                                             *)
(*                                                                            *)
(* Time is the node's own: it advances with every frame, and a crash sets it  *)
(* back to that of the last frame. Between a hold's expiry and its record the *)
(* difference is not visible: it is not captured, and not counted.            *)
(* A frame holds outcomes; the state is the fold of the frames. There is one  *)
(* decider. Nonces, keys and responses are specified in Wallet; here are only *)
(* the reads that report that a hold has expired.                             *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Accounts, Opening,  \* the balance of each before the first frame
  Amounts, Untils,
  MaxLapse,           \* expired holds that one frame ends
  MaxTime, MaxOps, MaxCrashes

VARIABLES
  log,      \* frames: [at, recs]
  durable,
  now,
  st,       \* [bal, held, open]: held is counted a holding, open is the set of holds
  said,     \* holds that a read has reported as expired
  spent

vars == <<log, durable, now, st, said, spent>>

RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0 ELSE LET x == CHOOSE y \in S : TRUE IN f[x] + Sum(f, S \ {x})
Total(holds) == Sum([h \in holds |-> h.amount], holds)
Min(S)    == CHOOSE n \in S : \A m \in S : n <= m

-----------------------------------------------------------------------------
(* The fold. It decides nothing: a record has the balances after it.          *)

Empty == [bal |-> Opening, held |-> [a \in Accounts |-> 0], open |-> {}]

Ends(rec) == rec.kind \in {"captured", "released", "lapsed"}

Apply(s, lsn, rec) ==
  LET paid   == IF rec.kind \in {"moved", "captured"} THEN [s EXCEPT !.bal[rec.of] = rec.fromNow, !.bal[rec.to] = rec.toNow] ELSE s
      kept   == IF rec.kind = "held" THEN [paid EXCEPT !.open = @ \cup {[id |-> lsn, of |-> rec.of, amount |-> rec.amount, until |-> rec.until]}]
                ELSE IF Ends(rec) THEN [paid EXCEPT !.open = {h \in @ : h.id # rec.hold}]
                ELSE paid
  IN IF rec.kind = "held" \/ Ends(rec) THEN [kept EXCEPT !.held[rec.of] = rec.heldNow] ELSE kept

RECURSIVE ApplyAll(_, _, _)
ApplyAll(s, lsn, recs) == IF recs = <<>> THEN s ELSE ApplyAll(Apply(s, lsn, Head(recs)), lsn, Tail(recs))

RECURSIVE Fold(_, _)
Fold(l, n) == IF n = 0 THEN Empty ELSE ApplyAll(Fold(l, n - 1), n, l[n].recs)

-----------------------------------------------------------------------------
(* The decisions: what the mutants of MCHold replace.                         *)

Due(h)        == h.until <= now
Ending(r)     == {h \in st.open : h.of = r.of /\ Due(h)}  \* before a request is decided: all expired holds of its account
AtATime       == MaxLapse
Free(s, a)    == s.bal[a] - s.held[a]                     \* expired holds have been ended, so all held amounts count
Known(s, id)  == {h \in s.open : h.id = id}               \* a hold that has ended is not there
Over(h)       == Due(h)                                   \* an expired hold cannot be used
His(h, r)     == h.of = r.of                              \* a request names the holder too: its expired holds were ended
Within(h, r)  == r.amount <= h.amount
Rest(h, r)    == 0                                        \* nothing of a captured hold stays held
Credit(h, r)  == r.amount
Said          == IF durable = 0 THEN 0 ELSE log[durable].at \* reads use the time of what is durable
Recovered(l)  == Fold(l, Len(l))

-----------------------------------------------------------------------------
Lapsed(s, h) == [kind |-> "lapsed", of |-> h.of, hold |-> h.id, heldNow |-> s.held[h.of] - h.amount]

RECURSIVE LapseAll(_, _, _)
LapseAll(s, holds, most) == IF holds = {} \/ most = 0 THEN <<>> ELSE
  LET h == CHOOSE x \in holds : x.id = Min({y.id : y \in holds})
      rec == Lapsed(s, h)
  IN <<rec>> \o LapseAll(Apply(s, 0, rec), holds \ {h}, most - 1)

Refused(r, why) == [kind |-> "refused", of |-> r.of, hold |-> r.hold, amount |-> r.amount, why |-> why]

Pay(s, r) ==
  IF Free(s, r.of) < r.amount THEN Refused(r, "funds")
  ELSE IF r.op = "hold" THEN [kind |-> "held", of |-> r.of, amount |-> r.amount, until |-> r.until, heldNow |-> s.held[r.of] + r.amount]
  ELSE [kind |-> "moved", of |-> r.of, to |-> r.to, amount |-> r.amount, fromNow |-> s.bal[r.of] - r.amount, toNow |-> s.bal[r.to] + r.amount]

End(s, r) == LET holds == Known(s, r.hold) IN
  IF \A h \in holds : ~His(h, r) \/ Over(h) THEN Refused(r, "state")
  ELSE LET h == CHOOSE x \in holds : TRUE IN
    IF r.op = "release" THEN [kind |-> "released", of |-> r.of, hold |-> h.id, heldNow |-> s.held[r.of] - h.amount]
    ELSE IF ~Within(h, r) THEN Refused(r, "amount")
    ELSE [kind |-> "captured", of |-> r.of, to |-> r.to, hold |-> h.id, amount |-> r.amount, fromNow |-> s.bal[r.of] - r.amount,
          toNow |-> s.bal[r.to] + Credit(h, r), heldNow |-> s.held[r.of] - h.amount + Rest(h, r)]

Emit(recs) == log' = Append(log, [at |-> now, recs |-> recs]) /\ st' = ApplyAll(st, Len(log) + 1, recs)

Spend(what, most) == spent[what] < most /\ spent' = [spent EXCEPT ![what] = @ + 1]

Decide(r) ==
  LET lapses == LapseAll(st, Ending(r), AtATime)
      s      == ApplyAll(st, 0, lapses)
  IN Emit(IF Cardinality(Ending(r)) > Len(lapses) THEN lapses \* busy: retry
          ELSE Append(lapses, IF r.op \in {"transfer", "hold"} THEN Pay(s, r) ELSE End(s, r)))
     /\ Spend("ops", MaxOps) /\ UNCHANGED <<durable, now, said>>

Init == /\ log = <<>> /\ durable = 0 /\ now = 0 /\ st = Empty /\ said = {}
        /\ spent = [ops |-> 0, crashes |-> 0]

R(op, of, to, amount, until, hold) == [op |-> op, of |-> of, to |-> to, amount |-> amount, until |-> until, hold |-> hold]
Opened == {n \in DOMAIN log : \E i \in DOMAIN log[n].recs : log[n].recs[i].kind = "held"}

Transfer == \E a, b \in Accounts : a # b /\ \E n \in Amounts : Decide(R("transfer", a, b, n, 0, 0))
Open     == \E a \in Accounts : \E n \in Amounts : \E u \in Untils : u > now /\ Decide(R("hold", a, a, n, u, 0))
Capture  == \E id \in Opened : \E a, b \in Accounts : a # b /\ \E n \in Amounts : Decide(R("capture", a, b, n, 0, id))
Release  == \E id \in Opened : \E a \in Accounts : Decide(R("release", a, a, 0, 0, id))

Sweep ==
  /\ \E h \in st.open : Due(h)
  /\ Emit(LapseAll(st, {h \in st.open : Due(h)}, AtATime))
  /\ UNCHANGED <<durable, now, said, spent>>

Sync ==
  /\ durable < Len(log) /\ \E n \in (durable + 1)..Len(log) : durable' = n
  /\ UNCHANGED <<log, now, st, said, spent>>

Tick ==
  /\ now < MaxTime /\ now' = now + 1
  /\ UNCHANGED <<log, durable, st, said, spent>>

Read == \* of what is durable: which holds have expired without a record of it
  LET over == {h.id : h \in {x \in Fold(log, durable).open : x.until <= Said}} IN
  /\ ~(over \subseteq said) /\ said' = said \cup over
  /\ UNCHANGED <<log, durable, now, st, spent>>

Crash ==
  /\ Spend("crashes", MaxCrashes)
  /\ \E n \in durable..Len(log) :
       LET l == SubSeq(log, 1, n) IN
       log' = l /\ durable' = n /\ st' = Recovered(l) /\ now' = IF n = 0 THEN 0 ELSE l[n].at
  /\ UNCHANGED said

Done == spent.ops = MaxOps /\ now = MaxTime /\ durable = Len(log) /\ st.open = {} /\ UNCHANGED vars

Next == Transfer \/ Open \/ Capture \/ Release \/ Sweep \/ Sync \/ Tick \/ Read \/ Crash \/ Done

Spec     == Init /\ [][Next]_vars
LiveSpec == Spec /\ WF_vars(Tick) /\ WF_vars(Sweep)

-----------------------------------------------------------------------------
(* Invariants and properties.                                                 *)

Recs      == UNION {{<<n, i>> : i \in DOMAIN log[n].recs} : n \in DOMAIN log}
Rec(p)    == log[p[1]].recs[p[2]]
At(p)     == log[p[1]].at
Is(kinds) == {p \in Recs : Rec(p).kind \in kinds}
Born(id)  == Rec(CHOOSE p \in Is({"held"}) : p[1] = id)

\* M1.
Conservation == Sum(st.bal, Accounts) = Sum(Opening, Accounts)

\* M6. The counted held amount is the sum of the open holds.
HeldIsSum == \A a \in Accounts : st.held[a] = Total({h \in st.open : h.of = a})

\* The held amount is in the account, also after the expiry: no debit has used it.
Covered == \A a \in Accounts : st.held[a] <= st.bal[a]

\* The available amount, with only unexpired holds subtracted, is never negative.
AvailableNonNegative == \A a \in Accounts : st.bal[a] >= Total({h \in st.open : h.of = a /\ ~Due(h)})

\* A hold is not captured or released from its expiry on, recorded or not.
NoneWhenDue == \A p \in Is({"captured", "released"}) : \A n \in 1..p[1] : log[n].at < Born(Rec(p).hold).until

\* No hold ends before its expiry.
NoneBeforeDue == \A p \in Is({"lapsed"}) : At(p) >= Born(Rec(p).hold).until

\* A capture debits at most the held amount, of the holder.
CapturedWithin == \A p \in Is({"captured"}) : Rec(p).amount <= Born(Rec(p).hold).amount /\ Rec(p).of = Born(Rec(p).hold).of

\* A hold ends once.
EndsOnce == \A p, q \in Is({"captured", "released", "lapsed"}) : Rec(p).hold = Rec(q).hold => p = q

\* No request is rejected because of an expired hold, and none gets a hold reported as expired that was not.
RefusedRightly == \A p \in Is({"refused"}) :
  LET s == Fold(log, p[1] - 1)
      counts == {h \in s.open : h.until > At(p)}
  IN /\ Rec(p).why = "funds" => s.bal[Rec(p).of] - Total({h \in counts : h.of = Rec(p).of}) < Rec(p).amount
     /\ Rec(p).why = "state" => \A h \in counts : h.id = Rec(p).hold => h.of # Rec(p).of

\* A frame ends a bounded number of holds beside its own operation.
FrameBounded == \A n \in DOMAIN log : Cardinality({p \in Is({"lapsed"}) : p[1] = n}) <= MaxLapse

\* Time never goes back from frame to frame.
TimeGoesOn == \A m, n \in DOMAIN log : m <= n => log[m].at <= log[n].at

\* Live and recovered state are equal.
StateIsFold == st = Fold(log, Len(log))

\* A hold that was reported as expired is never captured or released later.
SaidStands == \A p \in Is({"captured", "released"}) : Rec(p).hold \notin said

\* An expired hold is ended.
DueEnds == \A id \in 1..MaxOps : (\E h \in st.open : h.id = id /\ Due(h)) ~> (\A h \in st.open : h.id # id)
=============================================================================
