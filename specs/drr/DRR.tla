---------------------------------- MODULE DRR ----------------------------------
(* Fair queueing: deficit round robin over classes, then over the flows of a   *)
(* class, then first in, first out.                                           *)
(*                                                                            *)
(*   Offer ──► the end of its flow ──► its flow's turn ──► its class's ──► Serve *)
(*                      └──────────────── Drop                                *)
(*                                                                            *)
(* A class gets weight × quantum with its turn, a flow one quantum, once per   *)
(* turn, and each spends the cost of its items. The search for the next item   *)
(* is one step of the machine: nothing happens in between. Which items are     *)
(* accepted, and what happens to a served item, is specified in Admission.     *)
(*                                                                            *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Flows, Of,   \* of each flow, its class
  Weights,     \* of each class, in the order of their turns; 0: it is not served
  Quantum,
  MaxCost,     \* of an item: a quantum, but the bounds hold beyond it
  Depth,       \* limit of a flow's items
  MaxOut,      \* of a flow, served items whose cost will be corrected
  Drops,       \* whether items can leave before their turn
  Two, Both    \* flows of a class, and classes, that are compared: a pair, or none

VARIABLES
  queue,       \* of each flow, its items: [cost, ahead]; ahead is the number of earlier items before it
  ring,        \* of each class, its flows that have items; the first has the turn
  credit,      \* of each flow, its deficit; less than 0 is a debt
  share,       \* of each class
  turn,        \* a class
  given,       \* that class got its quanta
  begun,       \* of each class, its first flow got its quantum
  looks,       \* steps since the search for an item began
  order,       \* no item overtook another of its flow
  out,         \* of each flow, served items that may be corrected
  fwait,       \* of each flow, turns of flows of its class since it was served
  cwait,       \* of each class, turns of classes since it was served
  lead, tilt   \* what the first of Two, of Both was charged more than the second while both waited

vars == <<queue, ring, credit, share, turn, given, begun, looks, order, out, fwait, cwait, lead, tilt>>

Classes == DOMAIN Weights
Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b
Ceil(a, b) == (a + b - 1) \div b
Onward(c) == (c % Len(Weights)) + 1
Items(f) == Len(queue[f])
Waits(c) == ring[c] # <<>>
Somebody == \E c \in Classes : Waits(c)

-----------------------------------------------------------------------------
(* The decisions: what the mutants of MCDRR replace.                          *)

Takes(c)       == Weights[c] > 0            \* also when nobody else wants anything
First(f)       == 1                         \* of its items, the one that is served
Enters(c, f)   == Append(ring[c], f)        \* the ring, when it gets its first item
Leaves(c, f)   == SelectSeq(ring[c], LAMBDA g : g # f) \* and when it has none any more
ClassGets(c)   == Weights[c] * Quantum
FlowGets(f)    == Quantum
Pays(cost)     == cost
Saves(f)       == credit[f]                 \* at the end of its turn
SavesShare(c)  == share[c]
Idle(n)        == 0                         \* what remains of it to who has nothing queued
IdleShare(n)   == 0
Gone(c)        == Onward(c)                 \* who has the turn when c, who had it, has nothing any more
Begun(c)       == begun[c]                  \* when its class's turn is over, a flow's is not
TooSmall(c, cost) == share[c] < cost        \* for what its first flow could pay
Owner(f)       == f                         \* whose a correction is
Corrected(f, by) == \* no further than a quantum is owed, or two are saved, and never against its sign
  IF by < 0 THEN Max(credit[f] + by, -Quantum) ELSE Max(credit[f], Min(credit[f] + by, 2 * Quantum))

-----------------------------------------------------------------------------
Init ==
  /\ queue = [f \in Flows |-> <<>>] /\ ring = [c \in Classes |-> <<>>]
  /\ credit = [f \in Flows |-> 0] /\ share = [c \in Classes |-> 0]
  /\ turn = 1 /\ given = FALSE /\ begun = [c \in Classes |-> FALSE]
  /\ looks = 0 /\ order = TRUE /\ out = [f \in Flows |-> 0]
  /\ fwait = [f \in Flows |-> 0] /\ cwait = [c \in Classes |-> 0]
  /\ lead = 0 /\ tilt = 0

Sign(pair, x) == IF pair = <<>> THEN 0 ELSE IF x = pair[1] THEN 1 ELSE IF x = pair[2] THEN -1 ELSE 0
Other(c)      == IF c = Both[1] THEN Both[2] ELSE Both[1]

\* Two are compared as long as both wait, without a break.
Compare(f, cost) ==
  /\ lead' = IF Two # <<>> /\ \A i \in 1..2 : queue'[Two[i]] # <<>> THEN lead + Sign(Two, f) * cost ELSE 0
  /\ tilt' = IF Both # <<>> /\ \A i \in 1..2 : ring'[Both[i]] # <<>>
             THEN tilt + (IF Sign(Both, Of[f]) = 0 THEN 0 ELSE Sign(Both, Of[f]) * cost * Weights[Other(Of[f])]) ELSE 0

(* What is queued.                                                            *)

Offer(f, cost) ==
  /\ looks = 0 /\ Takes(Of[f]) /\ Items(f) < Depth
  /\ queue' = [queue EXCEPT ![f] = Append(@, [cost |-> cost, ahead |-> Items(f)])]
  /\ ring' = IF Items(f) = 0 THEN [ring EXCEPT ![Of[f]] = Enters(Of[f], f)] ELSE ring
  /\ UNCHANGED <<credit, share, turn, given, begun, looks, order, out, fwait, cwait, lead, tilt>>

Without(f, i) ==
  [j \in 1..(Items(f) - 1) |-> LET x == queue[f][IF j < i THEN j ELSE j + 1] IN
    IF x.ahead > queue[f][i].ahead THEN [x EXCEPT !.ahead = @ - 1] ELSE x]

TakeOut(f, i, cost) == \* an empty flow has no deficit, no debt and no turn
  LET c == Of[f]
      last == Items(f) = 1
      idle == last /\ Leaves(c, f) = <<>>
  IN /\ queue' = [queue EXCEPT ![f] = Without(f, i)]
     /\ credit' = [credit EXCEPT ![f] = IF last THEN Idle(@ - cost) ELSE @ - cost]
     /\ ring' = IF last THEN [ring EXCEPT ![c] = Leaves(c, f)] ELSE ring
     /\ begun' = [begun EXCEPT ![c] = @ /\ ~(last /\ Head(ring[c]) = f)]
     /\ share' = [share EXCEPT ![c] = IF idle THEN IdleShare(@ - cost) ELSE @ - cost]
     /\ given' = (given /\ ~(idle /\ turn = c))
     /\ turn' = IF idle /\ turn = c THEN Gone(c) ELSE turn

Drop(f) == \* an item waited too long, or its client left
  /\ looks = 0 /\ Drops
  /\ \E i \in DOMAIN queue[f] : TakeOut(f, i, 0)
  /\ Compare(f, 0)
  /\ fwait' = [fwait EXCEPT ![f] = IF Items(f) = 1 THEN 0 ELSE @]
  /\ cwait' = [cwait EXCEPT ![Of[f]] = IF ring'[Of[f]] = <<>> THEN 0 ELSE @]
  /\ UNCHANGED <<looks, order, out>>

Correct(f, by) == \* the actual cost; ignored if nothing waits
  /\ looks = 0 /\ out[f] > 0 /\ out' = [out EXCEPT ![f] = @ - 1]
  /\ credit' = IF Items(f) > 0 THEN [credit EXCEPT ![Owner(f)] = Corrected(Owner(f), by)] ELSE credit
  /\ UNCHANGED <<queue, ring, share, turn, given, begun, looks, order, fwait, cwait>>
  /\ Compare(f, credit[f] - credit'[f])

(* The next item.                                                             *)

F == Head(ring[turn])
Cost == queue[F][First(F)].cost
Asked == Somebody /\ looks' = looks + 1

GiveClass ==
  /\ Asked /\ Waits(turn) /\ ~given /\ given' = TRUE
  /\ share' = [share EXCEPT ![turn] = @ + ClassGets(turn)]
  /\ cwait' = [c \in Classes |-> IF Waits(c) THEN cwait[c] + 1 ELSE 0]
  /\ UNCHANGED <<queue, ring, credit, turn, begun, order, out, fwait, lead, tilt>>

GiveFlow ==
  /\ Asked /\ Waits(turn) /\ given /\ ~begun[turn] /\ begun' = [begun EXCEPT ![turn] = TRUE]
  /\ credit' = [credit EXCEPT ![F] = @ + FlowGets(F)]
  /\ fwait' = [f \in Flows |-> IF Of[f] = turn /\ Items(f) > 0 THEN fwait[f] + 1 ELSE fwait[f]]
  /\ UNCHANGED <<queue, ring, share, turn, given, order, out, cwait, lead, tilt>>

Rotate == \* it cannot pay yet: its turn ends
  /\ Asked /\ Waits(turn) /\ given /\ begun[turn] /\ credit[F] < Cost
  /\ ring' = [ring EXCEPT ![turn] = Append(Tail(@), F)] /\ begun' = [begun EXCEPT ![turn] = FALSE]
  /\ credit' = [credit EXCEPT ![F] = Saves(F)]
  /\ UNCHANGED <<queue, share, turn, given, order, out, fwait, cwait, lead, tilt>>

Pass == \* its class cannot pay, or has nothing
  /\ Asked
  /\ Waits(turn) => given /\ begun[turn] /\ credit[F] >= Cost /\ TooSmall(turn, Cost)
  /\ turn' = Onward(turn) /\ given' = FALSE /\ begun' = [begun EXCEPT ![turn] = Begun(turn)]
  /\ share' = [share EXCEPT ![turn] = SavesShare(turn)]
  /\ UNCHANGED <<queue, ring, credit, order, out, fwait, cwait, lead, tilt>>

Serve ==
  /\ Waits(turn) /\ given /\ begun[turn] /\ credit[F] >= Cost /\ ~TooSmall(turn, Cost)
  /\ TakeOut(F, First(F), Pays(Cost)) /\ looks' = 0
  /\ order' = (order /\ queue[F][First(F)].ahead = 0)
  /\ out' = [out EXCEPT ![F] = Min(@ + 1, MaxOut)]
  /\ fwait' = [fwait EXCEPT ![F] = 0] /\ cwait' = [cwait EXCEPT ![turn] = 0]
  /\ Compare(F, Cost)

Next == \/ GiveClass \/ GiveFlow \/ Rotate \/ Pass \/ Serve
        \/ \E f \in Flows : \/ Drop(f)
                            \/ \E cost \in 1..MaxCost : Offer(f, cost)
                            \/ \E by \in {-Quantum, 0, Quantum} : Correct(f, by)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* Invariants and properties.                                                 *)

Served     == {c \in Classes : Weights[c] > 0}
Mates(c)   == {f \in Flows : Of[f] = c}

Saved      == IF MaxOut = 0 THEN MaxCost - 1 ELSE Max(2 * Quantum, MaxCost - 1) \* the largest deficit of a flow between its turns
Owed       == IF MaxOut = 0 THEN 0 ELSE Quantum

\* Within a flow, items are served in the order of arrival.
InOrder == order /\ \A f \in Flows : \A i \in DOMAIN queue[f] : queue[f][i].ahead = i - 1

\* A flow is in the ring of its class if and only if it has items, and once.
RingExact == \A c \in Classes : \A f \in Flows :
  Cardinality({i \in DOMAIN ring[c] : ring[c][i] = f}) = IF Of[f] = c /\ Items(f) > 0 THEN 1 ELSE 0

\* A flow without items has no deficit and no debt.
IdleHasNothing == /\ \A f \in Flows : Items(f) = 0 => credit[f] = 0
                  /\ \A c \in Classes : ~Waits(c) => share[c] = 0 /\ ~begun[c] /\ (turn = c => ~given)

\* A flow saves at most what it may get back, and without that less than the cost of an item; it owes at most a
\* quantum. A class, which is never corrected, saves less than the cost of an item and owes nothing.
SavedBounded ==
  /\ \A f \in Flows :
       LET mine == Items(f) > 0 /\ begun[Of[f]] /\ Head(ring[Of[f]]) = f
       IN credit[f] \in -Owed..(Saved + IF mine THEN Quantum ELSE 0)
  /\ \A c \in Classes : share[c] \in 0..(MaxCost - 1 + IF turn = c /\ given THEN Weights[c] * Quantum ELSE 0)

\* A waiting flow is served within so many rounds of its class, and one more for each correction.
FlowServed == \A f \in Flows : fwait[f] <= Cardinality(Mates(Of[f])) * (Ceil(MaxCost, Quantum) + MaxOut)

\* A waiting class is served within so many rounds of the node.
ClassServed == \A c \in Served : cwait[c] <= Cardinality(Served) * Ceil(MaxCost, Weights[c] * Quantum)

\* Two waiting flows of a class are charged the same, within a bound.
FlowsEven == LET most == Quantum + 2 * (Saved + Owed) IN lead \in -most..most

\* Two waiting classes are charged by their weights, within a bound.
ClassesEven == Both # <<>> =>
  LET v == Weights[Both[1]] w == Weights[Both[2]] most == v * w * Quantum + (v + w) * (MaxCost - 1) IN tilt \in -most..most

\* An event of a flow changes nothing of another flow or class.
Untouched == [][looks' = 0 =>
  /\ \A f \in Flows : queue'[f] = queue[f] /\ out'[f] = out[f] => credit'[f] = credit[f]
  /\ \A c \in Classes : (\A f \in Mates(c) : queue'[f] = queue[f]) => share'[c] = share[c] /\ ring'[c] = ring[c]]_vars

\* A class without weight is not served: nothing is queued for it.
NoWeight == \A c \in Classes : Weights[c] = 0 => ring[c] = <<>>

\* While anything waits, a bounded number of steps finds the next item: the turns of each class and flow until it can pay its debt.
WorkConserving == looks <= Len(Weights) + 2 * (Cardinality(Flows) * Ceil(MaxCost + Owed, Quantum)
                                             + Cardinality(Served) * Ceil(MaxCost, Quantum))
=============================================================================
