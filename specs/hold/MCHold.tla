-------------------------------- MODULE MCHold --------------------------------
(* Constants for Hold, and its deliberate bugs, each put in its place by one  *)
(* line of a cfg, two where one alone is harmless.                            *)
EXTENDS Hold, TLC

Pair   == {"a", "b"}
Rich   == [a \in Pair |-> IF a = "a" THEN 2 ELSE 0]
Each   == [a \in Pair |-> IF a = "a" THEN 2 ELSE 1]

BugYes(h, r)     == TRUE
BugNone(h)       == FALSE
BugPays(r)       == {h \in st.open : h.of = r.of /\ Due(h) /\ r.op \in {"transfer", "hold"}}
BugEnds(r)       == {h \in st.open : h.of = r.of /\ Due(h) /\ r.op \notin {"transfer", "hold"}}
BugAll           == 9
BugWhole(s, a)   == s.bal[a]
BugByClock(s, a) == s.bal[a] - Total({h \in s.open : h.of = a /\ ~Due(h)})
BugEver(s, id)   == LET rec == Born(id) IN {[id |-> id, of |-> rec.of, amount |-> rec.amount, until |-> rec.until]}
BugRest(h, r)    == h.amount - r.amount
BugCredit(h, r)  == h.amount
BugSoon(h)       == h.until <= now + 1
BugNow           == now
BugNever         == FALSE /\ UNCHANGED vars

BugWall == \* the machine's clock, which may be set back
  /\ \E t \in 0..MaxTime : t # now /\ now' = t
  /\ UNCHANGED <<log, durable, st, said, spent>>

BugSilence == \* no record
  /\ \E h \in st.open : Due(h) /\ st' = Apply(st, 0, Lapsed(st, h))
  /\ UNCHANGED <<log, durable, now, said, spent>>
=============================================================================
