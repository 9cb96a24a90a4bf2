------------------------------ MODULE MCJournal ------------------------------
(* Deliberate bugs of Journal. One line of a cfg puts a bug in place of a     *)
(* decision.                                                                  *)
EXTENDS Journal

BugNever        == FALSE
BugNoFail       == "no"
BugNone         == "none"
BugRename       == "rename"
BugWritten      == written
BugDurable      == durable
BugEmitted      == Len(log)
BugOneLess      == folded - 1
BugCut(r)       == FALSE
BugNoMarks(is)  == {}
BugNotAgain(r)  == Len(r.log) + 1
BugListed(d)    == d
BugIdle         == /\ Writes /\ ~idle /\ durable = Len(log) /\ idle' = TRUE \* without a frame
                   /\ UNCHANGED <<log, written, durable, folded, failed, phase, making, disk, told, was, spent>>
=============================================================================
