---------------------------------- MODULE MCGC ----------------------------------
(* The deliberate bugs of GC, each put in its place by one line of a cfg.      *)
EXTENDS GC, TLC

BugEndsEarly(f)   == TRUE
BugNeverAsks(f)   == TRUE
BugAsksRow(f)     == ~HasRow(f)
BugAsksUpload(f)  == ~InProgress(f)
BugUsesAgain      == IF uploads = <<>> THEN 1 ELSE next + 1
BugStoresLater(f) == uploads[f].step \in {"new", "stored"}
=============================================================================
