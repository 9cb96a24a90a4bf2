------------------------------- MODULE MCClock -------------------------------
(* The deliberate bugs of Clock, each put in its place by one line of a cfg.  *)
EXTENDS Clock, TLC

BugNo(x)            == FALSE
BugYes(x)           == TRUE
BugBack(even, gone) == seen'
BugAtOnce(even, gone) == seen'
BugBeyond(even, gone) == even + Fast(gone)
BugMachine          == 0
BugRight            == TRUE
BugItsDay           == seen \div Day
=============================================================================
