-------------------------------- MODULE MCRepair --------------------------------
(* The deliberate bugs of Repair, each put in its place by one line of a cfg.  *)
EXTENDS Repair, TLC

BugNever       == FALSE
BugKnownNone(o) == Waits(o)
BugNoVictims   == {}
BugAlways(o)   == TRUE
BugTokens      == TRUE
BugRefund      == Cost
BugFull        == Burst
BugCopies(w)   == work[w].step \in {"chosen", "paid"}
=============================================================================
