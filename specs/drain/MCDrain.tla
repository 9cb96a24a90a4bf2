------------------------------- MODULE MCDrain -------------------------------
(* Constants for Drain, and its deliberate bugs, each put in its place by one *)
(* line of a cfg.                                                             *)
EXTENDS Drain, TLC
CONSTANTS r1, r2
Symm == Permutations(Requests)

BugOpen          == FALSE                              \* never closed
BugAny(m)        == m # {}
BugTakesAll      == started /\ ~Closed
BugTakesOnly     == Takes                              \* what was admitted is rejected while draining
BugFinishesAll   == started /\ Writes                  \* also while aborting
BugReads         == started /\ ~Closed /\ Writes
BugShown         == started /\ "http" \in met /\ Writes
BugQueueOnly     == http = "down"                      \* of what is in, only what the listener has
BugDurable       == http = "down" /\ Held = {}
BugNobody        == {}
BugAnswers       == "answered"
BugNoneLost(r)   == FALSE
BugAgain         == Rank(phase) < 3                    \* asked again, it begins again
BugRenews        == phase \in {"none", "lame_duck"}
BugRestarts      == TRUE
BugWaits         == FALSE                              \* for a listener that never ends
BugAnyOrder(p)   == TRUE
=============================================================================
