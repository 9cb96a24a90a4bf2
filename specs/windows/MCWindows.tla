------------------------------- MODULE MCWindows -------------------------------
(* The deliberate bugs of Windows, each put in its place by one line of a cfg.  *)
EXTENDS Windows, TLC

TwoOfOne   == [a |-> 0, b |-> 1]         \* times of events: of one window,
TwoWindows == [a |-> 1, b |-> 2]         \* of two,
Three      == [a |-> 0, b |-> 1, c |-> 2] \* and of both

BugForgets(e)     == \E i \in started + 1..Len(log) : IsEvent(log[i]) /\ log[i].event = e
BugNeverLate(e)   == FALSE
BugByMachine(r)   == r.due <= machine
BugSealsAnyway    == TRUE
BugStaysOpen      == Recorded(Len(log))
BugSeqOfProcess   == Cardinality({i \in started + 1..Len(log) : ~IsEvent(log[i])}) + 1
BugAcksWritten(e) == Known(e)
BugStartsAnew(l)  == machine
BugRewrites(l, r) ==
  LET same == {i \in 1..Len(l) : ~IsEvent(l[i]) /\ l[i].from = r.from}
  IN  IF same = {} THEN Append(l, r)
      ELSE LET i == CHOOSE i \in same : TRUE
           IN  Append([l EXCEPT ![i].rows = @ \cup {Len(l) + 1}], r)
BugGoesBack(t)    == machine
BugByReport(e)    == From(at)
=============================================================================
