-------------------------------- MODULE MCDRR --------------------------------
(* Constants for DRR, and its deliberate bugs, each put in its place by one   *)
(* line of a cfg.                                                             *)
EXTENDS DRR, TLC
CONSTANTS f1, f2, f3

None  == <<>>
Pair  == <<f1, f2>>
Ends  == <<1, 2>>
One   == <<1>>
Even  == <<1, 1>>
Light == <<1, 2>>
Zero  == <<1, 2, 0>>
Twins == [f \in {f1, f2} |-> 1]
Apart == [f \in {f1, f2, f3} |-> CASE f = f1 -> 1 [] f = f2 -> 2 [] f = f3 -> 3]
Three == [f \in {f1, f2, f3} |-> IF f = f3 THEN 2 ELSE 1]
Symm  == Permutations({f1, f2})

BugNewest(f)    == Items(f)
BugStays(c, f)  == ring[c]
BugKeeps(n)     == n
BugAgain(c)     == FALSE                 \* when its class has the turn again, its first flow is given another quantum
BugFront(c, f)  == <<f>> \o ring[c]
BugHere(c)      == c                     \* it keeps the turn, and what comes for it next begins another
BugFree(cost)   == 0
BugSame(c)      == Quantum               \* whatever its weight
BugAll(c)       == TRUE
BugNothing(c)   == 0
BugDebt(f, by)  == credit[f] + by
BugTurns(f)     == IF Waits(turn) THEN F ELSE f
=============================================================================
