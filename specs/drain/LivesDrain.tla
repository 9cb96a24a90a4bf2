------------------------------ MODULE LivesDrain ------------------------------
(* Lives of a real node, told by chaos/explore step for step in the words of    *)
(* Drain, for TLC to accept: Lives is what was told. Those in True must come to *)
(* their end, and none of the others, which are told wrong in one place.        *)
EXTENDS Drain, Lives, Sequences, TLC

VARIABLES life, next  \* which of them, and the step that comes next

Phase(said) == IF said \in {"starting", "ready", "degraded"} THEN "none" ELSE said

\* What the node says of itself after a step: nothing happens in it.
See(e) == /\ Phase(e[2]) = phase /\ e[3] = last /\ e[4] = durable /\ e[5] = folded /\ e[6] = Cardinality(Held)
          /\ e[7] = Readyz /\ e[8] = Reads /\ e[9] = Takes /\ UNCHANGED vars

Told(e) ==
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

LivesInit == Init /\ life \in DOMAIN All /\ next = 1
LivesNext == /\ next <= Len(All[life]) /\ Told(All[life][next])
             /\ next' = next + 1 /\ UNCHANGED life
LivesSpec == LivesInit /\ [][LivesNext]_<<vars, life, next>>

\* Said of each life that came to its end, and of a true one that did not, where it came to.
AtEnd    == next > Len(All[life])
Accepted == /\ AtEnd => PrintT(<<"accepted", life, life \in True>>)
            /\ ~AtEnd /\ life \in True /\ ~ENABLED LivesNext => PrintT(<<"refused", life, next, All[life][next], vars>>)
=============================================================================
