----------------------------- MODULE MCAdmission -----------------------------
(* Constants for Admission, and its deliberate bugs, each put in its place by *)
(* one line of a cfg.                                                         *)
EXTENDS Admission, TLC
CONSTANTS a, b, x

\* a and b, or a alone, have shown the key of t; the others say that they are of t as well.
Kind      == [c \in Callers |-> IF c = x THEN "anon" ELSE "authed"]
Crowd     == [c \in Callers |-> IF c = a THEN "authed" ELSE "anon"]
Whose     == [c \in Callers |-> IF ClassOf[c] = "anon" THEN "peer" ELSE "t"]
Says      == [c \in Callers |-> "t"]
OneFacet  == [c \in Callers |-> "money"]
TwoFacets == [c \in Callers |-> IF c = a THEN "money" ELSE "lists"]
Each1     == [f \in {FacetOf[c] : c \in Callers} |-> 1]
Alone     == [k \in {"authed"} |-> {1}]
Strangers == [k \in {"authed", "anon"} |-> IF k = "anon" THEN {2} ELSE {1}]
Many      == [k \in {"authed", "anon"} |-> IF k = "anon" THEN {2, 3} ELSE {1}]
Mixed     == [k \in {"authed", "anon"} |-> IF k = "anon" THEN {3} ELSE {1, 2}]
Pair      == [k \in {"authed"} |-> {1, 2}]
Bound1    == [k \in DOMAIN SlotsOf |-> 1]
Bound2    == [k \in DOMAIN SlotsOf |-> 2]
BoundMixed == [k \in DOMAIN SlotsOf |-> IF k = "anon" THEN 1 ELSE 2]
Quota1    == [f \in {"t", "peer"} |-> 1]
Quota2    == [f \in {"t", "peer"} |-> 2]
Quota9    == [f \in {"t", "peer"} |-> 9]
Symm      == Permutations(Callers \ {x})

\* For the graph, in which each bound refuses on its own: of two classes, a and b have shown keys of t, x one of u.
Keys      == [c \in Callers |-> IF c = a THEN "internal" ELSE "authed"]
Owner     == [c \in Callers |-> IF c = x THEN "u" ELSE "t"]
Inside    == [k \in {"internal", "authed"} |-> IF k = "internal" THEN {1} ELSE {2, 3}]
QuotaOwn  == [f \in {"t", "u"} |-> IF f = "u" THEN 1 ELSE 2]

BugClaims(c)     == Claims[c]
BugTakes         == TRUE
BugNever(k)      == FALSE
BugKeeps(f)      == used[f]
BugAnyUse(s, t)  == TRUE
BugForgets(s, t) == FALSE
BugOlder(s, t)   == t.gen > row[s].gen
BugTwice(at)     == at # "queued"
BugStays(at)     == at = "queued"
BugNoReclaim     == FALSE
BugFrees         == TRUE
=============================================================================
