--------------------------------- MODULE Repair ---------------------------------
(* The copies of objects in several providers, and the repairs that restore them. *)
(*                                                                              *)
(*   inventory ──► Look ──► queue ──► Take ──► Choose ──► Pay ──► Copy            *)
(*                   │ full                        not needed      │ failed       *)
(*                   └────────► again ◄─────────────────────────────┘              *)
(*                                │                                              *)
(*                                └──► the next inventory                         *)
(*                                                                              *)
(* An object is repaired while fewer copies can be read than there should be.    *)
(* It is urgent while only one can be read. The queue and the budget are         *)
(* volatile. drawn and wire measure what the budget grants and what is read:     *)
(* the largest excess over the rate of any interval that ends now.               *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Providers, Objects, Workers,
  Copies,              \* of each object
  Cost, Rate, Burst,   \* of one copy; of one tick; at once
  QueueLimit, MaxFaults, MaxRestarts,
  None

VARIABLES
  good,     \* object -> providers with an intact copy
  up,       \* providers that can be used
  queue,    \* sequence of [object, urgent]
  work,     \* worker -> [step, object, to]
  again,    \* an inventory is due
  scan,     \* objects that the inventory has still to look at
  tokens, drawn, wire,
  spent     \* faults and restarts

vars == <<good, up, queue, work, again, scan, tokens, drawn, wire, spent>>

-----------------------------------------------------------------------------
Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Readable(o) == good[o] \cap up
Lacks(o)  == Readable(o) # {} /\ Cardinality(Readable(o)) < Min(Copies, Cardinality(up))
Urgent(o) == Cardinality(Readable(o)) = 1
Waits(o)  == \E i \in DOMAIN queue : queue[i].object = o
Runs(o)   == \E w \in Workers : work[w].object = o
Idle == [step |-> "idle", object |-> None, to |-> None]

(* The decisions: what the mutants of MCRepair replace.                       *)
Known(o)      == Waits(o) \/ Runs(o)
IsFull        == Len(queue) >= QueueLimit
Victims       == {i \in DOMAIN queue : ~queue[i].urgent}   \* that an urgent object displaces
AfterSkip     == TRUE                                      \* again
AfterFailure  == TRUE                                      \* again
Needed(o)     == Lacks(o)                                  \* is asked once more before the copy
HasTokens     == tokens >= Cost
Refund        == 0                                         \* of a copy that failed: it was read
AtStart       == 0                                         \* tokens
MayCopy(w)    == work[w].step = "paid"
HasSource(o)  == Readable(o) # {}

-----------------------------------------------------------------------------
Init ==
  /\ up = Providers /\ good \in [Objects -> {s \in SUBSET Providers : Cardinality(s) = Copies}]
  /\ queue = <<>> /\ work = [w \in Workers |-> Idle] /\ again = FALSE /\ scan = {}
  /\ tokens = 0 /\ drawn = 0 /\ wire = 0 /\ spent = [faults |-> 0, restarts |-> 0]

Fault == /\ spent.faults < MaxFaults /\ spent' = [spent EXCEPT !.faults = @ + 1]
         /\ again' = TRUE                     \* the periodic inventory
         /\ UNCHANGED <<queue, work, scan, tokens, drawn, wire>>

\* A provider cannot be used. Its copies stay.
Fail(p) == p \in up /\ Fault /\ up' = up \ {p} /\ UNCHANGED good

\* A provider loses its copies, or a scrub finds them damaged.
Wipe(p) == Fault /\ good' = [o \in Objects |-> good[o] \ {p}] /\ UNCHANGED up

Back(p) == /\ p \notin up /\ up' = up \cup {p} /\ again' = TRUE
           /\ UNCHANGED <<good, queue, work, scan, tokens, drawn, wire, spent>>

BeginInventory ==
  /\ again /\ scan = {} /\ again' = FALSE /\ scan' = Objects
  /\ UNCHANGED <<good, up, queue, work, tokens, drawn, wire, spent>>

Without(q, i) == [j \in 1..Len(q)-1 |-> IF j < i THEN q[j] ELSE q[j+1]]

Plan(o) ==
  LET task == [object |-> o, urgent |-> Urgent(o)] IN
  CASE Known(o) -> again' = (again \/ Runs(o)) /\ UNCHANGED queue
    [] ~Known(o) /\ ~IsFull -> queue' = Append(queue, task) /\ UNCHANGED again
    [] ~Known(o) /\ IsFull ->
         /\ again' = (again \/ AfterSkip)
         /\ IF Urgent(o) /\ Victims # {}
            THEN LET last == CHOOSE i \in Victims : \A j \in Victims : j <= i
                 IN  queue' = Append(Without(queue, last), task)
            ELSE UNCHANGED queue

Look(o) ==
  /\ o \in scan /\ scan' = scan \ {o}
  /\ IF Lacks(o) THEN Plan(o) ELSE UNCHANGED <<queue, again>>
  /\ UNCHANGED <<good, up, work, tokens, drawn, wire, spent>>

\* The oldest urgent task, else the oldest.
Take(w) ==
  /\ work[w].step = "idle" /\ queue # <<>>
  /\ LET urgent == {i \in DOMAIN queue : queue[i].urgent}
         from   == IF urgent = {} THEN DOMAIN queue ELSE urgent
         i      == CHOOSE i \in from : \A j \in from : i <= j
     IN /\ work' = [work EXCEPT ![w] = [step |-> "taken", object |-> queue[i].object, to |-> None]]
        /\ queue' = Without(queue, i)
  /\ UNCHANGED <<good, up, again, scan, tokens, drawn, wire, spent>>

Choose(w) ==
  /\ work[w].step = "taken"
  /\ LET o == work[w].object IN
     IF Needed(o) /\ up \ good[o] # {}
     THEN \E p \in up \ good[o] : work' = [work EXCEPT ![w].step = "chosen", ![w].to = p]
     ELSE work' = [work EXCEPT ![w] = Idle]
  /\ UNCHANGED <<good, up, queue, again, scan, tokens, drawn, wire, spent>>

Pay(w) ==
  /\ work[w].step = "chosen" /\ HasTokens
  /\ tokens' = Max(0, tokens - Cost) /\ drawn' = drawn + Cost
  /\ work' = [work EXCEPT ![w].step = "paid"]
  /\ UNCHANGED <<good, up, queue, again, scan, wire, spent>>

\* The object may still lack a copy afterwards: it is looked at again.
Copy(w) ==
  /\ MayCopy(w) /\ wire' = wire + Cost /\ work' = [work EXCEPT ![w] = Idle]
  /\ LET o == work[w].object IN
     IF work[w].to \in up /\ HasSource(o)
     THEN good' = [good EXCEPT ![o] = @ \cup {work[w].to}] /\ again' = (again \/ Cardinality(Readable(o)) + 1 < Copies) /\ UNCHANGED tokens
     ELSE again' = (again \/ AfterFailure) /\ tokens' = Min(Burst, tokens + Refund) /\ UNCHANGED good
  /\ UNCHANGED <<up, queue, scan, drawn, spent>>

\* A read or a write fails once, of a provider that can be used.
CopyFails(w) ==
  /\ MayCopy(w) /\ wire' = wire + Cost /\ work' = [work EXCEPT ![w] = Idle]
  /\ spent.faults < MaxFaults /\ spent' = [spent EXCEPT !.faults = @ + 1]
  /\ again' = (again \/ AfterFailure) /\ tokens' = Min(Burst, tokens + Refund)
  /\ UNCHANGED <<good, up, queue, scan, drawn>>

Tick ==
  /\ tokens' = Min(Burst, tokens + Rate) /\ drawn' = Max(0, drawn - Rate) /\ wire' = Max(0, wire - Rate)
  /\ UNCHANGED <<good, up, queue, work, again, scan, spent>>

Restart ==
  /\ spent.restarts < MaxRestarts /\ spent' = [spent EXCEPT !.restarts = @ + 1]
  /\ queue' = <<>> /\ work' = [w \in Workers |-> Idle] /\ again' = TRUE /\ scan' = {} /\ tokens' = AtStart
  /\ UNCHANGED <<good, up, drawn, wire>>

Next ==
  \/ \E p \in Providers : Fail(p) \/ Wipe(p) \/ Back(p)
  \/ BeginInventory
  \/ \E o \in Objects : Look(o)
  \/ \E w \in Workers : Take(w) \/ Choose(w) \/ Pay(w) \/ Copy(w) \/ CopyFails(w)
  \/ Tick
  \/ Restart

Spec == Init /\ [][Next]_vars

Live ==
  /\ Spec /\ WF_vars(BeginInventory) /\ WF_vars(Tick)
  /\ \A o \in Objects : WF_vars(Look(o))
  /\ \A w \in Workers : WF_vars(Take(w)) /\ WF_vars(Choose(w)) /\ SF_vars(Pay(w)) /\ WF_vars(Copy(w))

-----------------------------------------------------------------------------
\* Over any interval the budget grants at most its rate and the burst.
Budget == drawn <= Burst

\* What is read then: one copy a worker more, which was granted before the interval.
WireBudget == wire <= Burst + Cost * Cardinality(Workers)

QueueBound == Len(queue) <= QueueLimit

\* An object waits or runs once.
OnceEach == /\ \A i, j \in DOMAIN queue : queue[i].object = queue[j].object => i = j
            /\ \A i \in DOMAIN queue : ~Runs(queue[i].object)
            /\ \A v, w \in Workers : work[v].object = work[w].object /\ work[v] # Idle => v = w

\* An urgent object is left out only if all that wait are urgent.
UrgentFirst == [][\A o \in Objects : o \in scan /\ o \notin scan' /\ Lacks(o) /\ Urgent(o) /\ Len(queue) > 0 =>
                    Waits(o)' \/ Runs(o)' \/ \A i \in DOMAIN queue : queue[i].urgent]_<<scan, queue>>

\* A copy is made of a copy.
OfACopy == [][\A o \in Objects : good[o] = {} => good'[o] = {}]_vars

\* A copy is begun only while it is needed.
NoWaste == [][\A w \in Workers : work[w].step = "taken" /\ work'[w].step = "chosen" => Lacks(work[w].object)]_vars

Restored == \A o \in Objects : ~Lacks(o)
Settles == <>[]Restored
=============================================================================
