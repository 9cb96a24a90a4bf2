------------------------------ MODULE TracesDrain -----------------------------
(* Runs of a real node, which chaos/explore writes step by step as actions of  *)
(* Drain. TLC must accept the runs in True up to their end. Each of the others  *)
(* has one wrong step, and TLC must not accept it.                              *)
EXTENDS Drain, Traces, Sequences, TLC

VARIABLES trace, next  \* the number of the run, and its next step

Phase(name) == IF name \in {"starting", "ready", "degraded"} THEN "none" ELSE name

\* The status of the node after a step; it changes nothing.
See(e) == /\ Phase(e[2]) = phase /\ e[3] = last /\ e[4] = durable /\ e[5] = folded /\ e[6] = Cardinality(Held)
          /\ e[7] = Readyz /\ e[8] = Reads /\ e[9] = Takes /\ UNCHANGED vars

Observed(e) ==
  CASE e[1] = "Meet"     -> Meet(e[2])
    [] e[1] = "Up"       -> Up
    [] e[1] = "Die"      -> Die
    [] e[1] = "Restart"  -> Restart
    [] e[1] = "Ended"    -> Ended
    [] e[1] = "Send"     -> Send(e[2])
    [] e[1] = "Enter"    -> Enter(e[2]) /\ (req'[e[2]] = "held") = e[3]
    [] e[1] = "Sync"     -> Sync /\ durable' = e[2]
    [] e[1] = "Fold"     -> Fold
    [] e[1] = "Stall"    -> Stall
    [] e[1] = "Fail"     -> Fail
    [] e[1] = "Patience" -> LosePatience(e[2])
    [] e[1] = "Drain"    -> Drain
    [] e[1] = "Abort"    -> Abort
    [] e[1] = "Close"    -> Close
    [] e[1] = "GiveUp"   -> GiveUp
    [] e[1] = "Pass"     -> Pass
    [] e[1] = "Stop"     -> Stop
    [] e[1] = "See"      -> See(e)

TracesInit == Init /\ trace \in DOMAIN All /\ next = 1
TracesNext == /\ next <= Len(All[trace]) /\ Observed(All[trace][next])
             /\ next' = next + 1 /\ UNCHANGED trace
TracesSpec == TracesInit /\ [][TracesNext]_<<vars, trace, next>>

\* Printed for each run that reached its end, and for a true one that did not: the step where it stopped.
AtEnd    == next > Len(All[trace])
Accepted == /\ AtEnd => PrintT(<<"accepted", trace, trace \in True>>)
            /\ ~AtEnd /\ trace \in True /\ ~ENABLED TracesNext => PrintT(<<"refused", trace, next, All[trace][next], vars>>)
=============================================================================
