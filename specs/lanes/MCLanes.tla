-------------------------------- MODULE MCLanes --------------------------------
(* The deliberate bugs of Lanes, each put in its place by one line of a cfg.     *)
EXTENDS Lanes, TLC
BugPipelines      == TRUE
BugStartsNow      == head
BugAtOnce         == durable
BugTellsEmitted   == TRUE
BugSettlesSent    == IF sending > acked THEN sending ELSE acked
BugAnyPosition(f) == TRUE
BugGivesUp(m)     == TRUE
BugNeverFull      == FALSE
BugSheds          == Append(log, [kind |-> "settled", to |-> cursor + 1])
BugBeginning      == 0
BugWaits          == sending = 0 /\ losses = 0
=============================================================================
