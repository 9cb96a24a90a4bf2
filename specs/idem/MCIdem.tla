-------------------------------- MODULE MCIdem --------------------------------
(* Requests for Idem, and its deliberate bugs. One line of a cfg puts a bug   *)
(* in place of a decision.                                                    *)
EXTENDS Idem, TLC
CONSTANTS c1, c2

R(op, key, ref) == [op |-> op, key |-> key, ref |-> ref]
Pay   == R("do", "k1", NoRef)
Issue == R("do", "k2", "r1")
Twice == R("do", "k3", "r1") \* with the ref of Issue
Query == R("find", "k1", NoRef)

All   == {Pay, Issue, Twice, Query}
Keys  == {Pay, Query}
Refs  == {Issue, Twice}
Both  == {Pay, Issue}
One   == {Pay}
Symm  == Permutations(Clients)

NoStranger == {}
Stranger   == {{}, {[name |-> "k1", lsn |-> 1, at |-> 0]}} \* it lacks rows of our journal, or has other rows

BugYes(x)        == TRUE
BugAny(i, l)     == TRUE
BugLSN(i, l)     == i.mark <= Len(l)
BugNow(x)        == idx.mark
BugKeeps(f)      == f
BugOneMore(k, upto) == k.lsn > upto + 1
BugAgeless(last, ats) == last
BugAgedOnly(ref) == ~Aged
BugRow(row)      == row.lsn > 0
BugOver(row)     == row.lsn > 0 /\ Lives(row.at)
BugDoesOnly(op)  == op = "do"
BugOld           == {Index(log, m) : m \in 0..tbl.mark}
BugDropsAll(row, at) == row.at + TTL > at
BugDropsEarly(row, at) == row.name \in RefNames \/ row.at = at
BugSameMark(x)   == x.f
BugEmitted       == Len(log)
BugDurable       == durable
BugMemory        == idx.mark

BugSilence == \* without a frame
  /\ Spend("forgets", MaxForgets)
  /\ \E k \in st.keys : k.lsn <= MayForget /\ st' = Apply(st, 0, Forgets(k.lsn))
  /\ UNCHANGED <<log, durable, now, indexed, idx, tbl, client, said>>

BugTableFirst == \* the mark becomes durable later
  /\ tbl # idx /\ \E i \in {[tbl EXCEPT !.rows = idx.rows], idx} : tbl' = i
  /\ UNCHANGED <<log, durable, now, st, indexed, idx, client, said, spent>>

BugMarkFirst == \* the table becomes durable later
  /\ tbl # idx /\ \E i \in {[tbl EXCEPT !.mark = idx.mark, !.root = idx.root], idx} : tbl' = i
  /\ UNCHANGED <<log, durable, now, st, indexed, idx, client, said, spent>>
=============================================================================
