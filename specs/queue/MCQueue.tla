------------------------------- MODULE MCQueue -------------------------------
(* Constants for Queue, and its deliberate bugs, each put in its place by one *)
(* line of a cfg.                                                             *)
EXTENDS Queue, TLC
CONSTANTS c1, c2, c3

Two    == {"t", "u"}
Both   == [c \in {c1, c2} |-> IF c = c1 THEN "t" ELSE "u"]
Same   == [c \in {c1, c2} |-> "t"]
Three  == [c \in {c1, c2, c3} |-> IF c = c3 THEN "u" ELSE "t"]
Twins  == Permutations({c1, c2})

BugNeverFull     == FALSE
BugNoShare(t)    == FALSE
BugHalf          == 2 * Len(held) >= Limit
BugNewest        == Len(held)
BugForgets(item) == ~item.gone
BugAnyUse(s, t)  == TRUE
BugAnyItem(item, t) == item.ticket.slot = t.slot
BugMarks(s)      == TRUE
BugLeaves(s)     == slot[s].reply
BugTwice(s)      == Append(Append(free, s), s)
BugFrees(s)      == Append(free, s)
BugKeeps(s)      == free
BugDrops == \* a full queue drops its oldest, and nobody is told
  /\ ring # <<>> /\ ring' = Tail(ring)
  /\ LET item == Head(ring)
         rest == IF Full THEN Tail(held) ELSE held
     IN /\ held' = Append(rest, [ticket |-> item.ticket, of |-> item.of, n |-> count + 1, gone |-> FALSE])
        /\ crowd' = [t \in Tenants |-> Cardinality({i \in DOMAIN held' : held'[i].of = t})]
  /\ count' = count + 1
  /\ UNCHANGED <<free, slot, gone, caller, out, spent>>
BugWaits == \* for whoever left
  /\ held # <<>> /\ ~held[1].gone
  /\ LET x == held[1] IN
     /\ held' = Tail(held) /\ out' = [out EXCEPT ![x.of] = x.n] /\ crowd' = [crowd EXCEPT ![x.of] = @ - 1]
     /\ Deliver(x.ticket)
  /\ UNCHANGED <<ring, gone, caller, count, spent>>
=============================================================================
