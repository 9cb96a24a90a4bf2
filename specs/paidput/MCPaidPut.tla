-------------------------------- MODULE MCPaidPut --------------------------------
(* The deliberate bugs of PaidPut, each put in its place by one line of a cfg. *)
EXTENDS PaidPut, TLC

WantsOne == [c \in Clients |-> CHOOSE o \in Objects : TRUE]
WantsOwn == CHOOSE f \in [Clients -> Objects] : \A c, d \in Clients : f[c] = f[d] => c = d

BugTwoFrames(s, h, o) ==
  IF o \in s.rows THEN <<[s EXCEPT !.holds[h].step = "released"]>>
  ELSE LET row == [s EXCEPT !.rows = @ \cup {o}, !.created = @ + 1]
       IN <<row, [row EXCEPT !.holds[h].step = "captured", !.paid = @ + 1]>>
BugMoneyFirst(s, h, o) ==
  IF o \in s.rows THEN <<[s EXCEPT !.holds[h].step = "released"]>>
  ELSE LET paid == [s EXCEPT !.holds[h].step = "captured", !.paid = @ + 1]
       IN <<paid, [paid EXCEPT !.rows = @ \cup {o}, !.created = @ + 1]>>
BugPaysAgain(s, o)      == FALSE
BugKeepsRow(s, o)       == <<[s EXCEPT !.rows = @ \cup {o}, !.created = @ + (IF o \in s.rows THEN 0 ELSE 1)]>>
BugStillActive(s, h)    == s.holds[h].step \in {"active", "lapsed"}
BugNotHeld(s)           == Funds - Price * s.paid
BugBodyFirst(w)         == w.step \in {"reserving", "reserved"}
BugCancelsLate(w)       == w.step \in {"uploaded", "putting"}
BugTellsAtOnce(w)       == TRUE
BugNeverLapses(s, h)    == FALSE
=============================================================================
