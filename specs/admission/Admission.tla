------------------------------- MODULE Admission -------------------------------
(* Admission: slots of the shell, rows of the machine, permits.               *)
(*                                                                            *)
(*            ┌──── late, a drain, or the client left ───────────► free       *)
(*   Ask ──► queued ──Dispatch──► out ──Settle──────────────────► free        *)
(*     └─ refused at once          └── kept too long ──► lost ──Settle──► free *)
(*                                                                            *)
(* A slot belongs to a request until the machine has handled its end, either  *)
(* rejected or finished. A ticket is the slot and the number of its use.      *)
(* Requests come by a ring of their class, finishes by their own queue. A     *)
(* finish can overtake its request, come twice, or come to a reused slot.     *)
(* The order of queued requests is specified in DRR.                          *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Callers, ClassOf,
  FlowOf,            \* the flow: the tenant of a verified key, or a peer
  Claims,            \* what each caller claims to be
  FacetOf, Permits,  \* of each facet
  SlotsOf,           \* of each class
  Total, Bound,      \* limits of queued requests: all, and of each class
  Share, Quota,      \* limits of each flow: queued, and admitted in all
  Burst,             \* of the instance's tokens
  MaxAsks, MaxFaults,
  Hangs              \* whether an admitted request may never end

VARIABLES
  free,     \* of each class, its free slots
  gen,      \* of each slot, the number of its use
  intake,   \* of each class, requests on their way: [ticket, who]
  words,    \* finishes on their way: [ticket, n], sent for the n-th time
  row,      \* of each slot: [at, gen, left, who]; left is a use that was finished before it arrived
  avail,    \* free permits
  tokens,
  used,     \* of each flow, the used quota
  told,     \* of each slot, decisions on their way back: [gen, word]; "go", "refused", "done"
  caller,   \* [pc, slot]; pc is "out", "asks", "works", or "left": it has sent its finish
  went,     \* of each flow, admitted and finished requests
  phase,    \* "serving", "draining"
  spent

vars == <<free, gen, intake, words, row, avail, tokens, used, told, caller, went, phase, spent>>

Classes == DOMAIN SlotsOf
Slots   == UNION {SlotsOf[k] : k \in Classes}
Facets  == DOMAIN Permits
Flows   == {FlowOf[c] : c \in Callers} \cup {Claims[c] : c \in Callers}
RECURSIVE Sum(_)
Sum(S) == IF S = {} THEN 0 ELSE LET k == CHOOSE k \in S : TRUE IN Bound[k] + Sum(S \ {k})

ASSUME Sum(Classes) <= Total \* otherwise one class could take what others were promised

Queued(P(_)) == Cardinality({s \in Slots : row[s].at = "queued" /\ P(row[s].who)})
Ticket(c)    == [slot |-> caller[c].slot, gen |-> gen[caller[c].slot]]

-----------------------------------------------------------------------------
(* The decisions: what the mutants of MCAdmission replace.                    *)

Flow(c)       == FlowOf[c]             \* claims that were not verified are ignored
Takes         == phase = "serving"
FullAll       == Queued(LAMBDA x : TRUE) >= Total
FullClass(k)  == Queued(LAMBDA x : ClassOf[x] = k) >= Bound[k]
FullFlow(f)   == Queued(LAMBDA x : Flow(x) = f) >= Share
OverQuota(f)  == used[f] >= Quota[f]
MayGo(f)      == avail[f] > 0 /\ tokens > 0
Refund(f)     == used[f] - 1           \* a request that is rejected later gets its charge back
Mine(s, t)    == row[s].gen = t.gen
Early(s, t)   == t.gen > row[s].gen /\ t.gen > row[s].left \* it has overtaken its request: the latest such finish is remembered
GivesBack(at) == at = "out"            \* the permit of a lost request was revoked
Stays(at)     == FALSE                 \* a request that left the queue is removed from it
TakesBack     == TRUE                  \* a permit that is kept too long is revoked
FreesAtOnce   == FALSE                 \* a slot belongs to its caller until the machine has handled the end

-----------------------------------------------------------------------------
NoRow == [at |-> "free", gen |-> 0, left |-> 0, who |-> CHOOSE c \in Callers : TRUE]
Out   == [pc |-> "out", slot |-> 0]

Init ==
  /\ free = SlotsOf /\ gen = [s \in Slots |-> 0]
  /\ intake = [k \in Classes |-> <<>>] /\ words = {}
  /\ row = [s \in Slots |-> NoRow] /\ avail = Permits /\ tokens = Burst
  /\ used = [f \in Flows |-> 0] /\ told = [s \in Slots |-> <<>>]
  /\ caller = [c \in Callers |-> Out] /\ went = [f \in Flows |-> 0]
  /\ phase = "serving" /\ spent = [asks |-> 0, faults |-> 0]

Spend(what, most) == spent[what] < most /\ spent' = [spent EXCEPT ![what] = @ + 1]

(* Callers, and the shell.                                                    *)

Ask(c) == \* without a free slot of its class the caller is rejected at once
  /\ caller[c].pc = "out" /\ free[ClassOf[c]] # {} /\ Spend("asks", MaxAsks)
  /\ LET k == ClassOf[c]
         s == CHOOSE s \in free[k] : \A other \in free[k] : s <= other
     IN /\ free' = [free EXCEPT ![k] = @ \ {s}] /\ gen' = [gen EXCEPT ![s] = @ + 1]
        /\ caller' = [caller EXCEPT ![c] = [pc |-> "asks", slot |-> s]]
        /\ intake' = [intake EXCEPT ![k] = Append(@, [ticket |-> [slot |-> s, gen |-> gen[s] + 1], who |-> c])]
  /\ UNCHANGED <<words, row, avail, tokens, used, told, went, phase>>

Ends(c, pc) == \* sends the finish of its ticket
  /\ caller[c].pc = pc
  /\ words' = words \cup {[ticket |-> Ticket(c), n |-> 1]}
  /\ IF FreesAtOnce THEN /\ caller' = [caller EXCEPT ![c] = Out]
                         /\ free' = [free EXCEPT ![ClassOf[c]] = @ \cup {caller[c].slot}]
     ELSE caller' = [caller EXCEPT ![c].pc = "left"] /\ UNCHANGED free
  /\ UNCHANGED <<gen, intake, row, avail, tokens, used, told, went, phase>>

Finish(c) == Ends(c, "works") /\ UNCHANGED spent
Leave(c)  == Ends(c, "asks") /\ Spend("faults", MaxFaults) \* its decision may be on its way

Again(c) ==
  /\ caller[c].pc = "left" /\ Spend("faults", MaxFaults)
  /\ words' = words \cup {[ticket |-> Ticket(c), n |-> 2]}
  /\ UNCHANGED <<free, gen, intake, row, avail, tokens, used, told, caller, went, phase>>

Hear(c) ==
  /\ caller[c].pc # "out" /\ told[caller[c].slot] # <<>>
  /\ LET s == caller[c].slot word == Head(told[s]).word IN
     /\ told' = [told EXCEPT ![s] = Tail(@)]
     /\ IF word = "go" THEN /\ caller' = IF caller[c].pc = "asks" THEN [caller EXCEPT ![c].pc = "works"] ELSE caller
                            /\ UNCHANGED free
        ELSE caller' = [caller EXCEPT ![c] = Out] /\ free' = [free EXCEPT ![ClassOf[c]] = @ \cup {s}]
  /\ UNCHANGED <<gen, intake, words, row, avail, tokens, used, went, phase, spent>>

(* The machine.                                                               *)

Tell(s, g, word) == told' = [told EXCEPT ![s] = Append(@, [gen |-> g, word |-> word])]
Uncharge(s)      == used' = [used EXCEPT ![Flow(row[s].who)] = Refund(Flow(row[s].who))]

Refuses(c) == LET k == ClassOf[c] f == Flow(c) IN ~Takes \/ FullAll \/ FullClass(k) \/ FullFlow(f) \/ OverQuota(f)

Decide(k) == \* a rejection changes nothing of other callers
  /\ intake[k] # <<>> /\ intake' = [intake EXCEPT ![k] = Tail(@)]
  /\ LET t == Head(intake[k]).ticket c == Head(intake[k]).who s == t.slot IN
     IF row[s].left = t.gen \/ Refuses(c) THEN Tell(s, t.gen, "refused") /\ UNCHANGED <<row, used>>
     ELSE /\ row' = [row EXCEPT ![s] = [at |-> "queued", gen |-> t.gen, left |-> 0, who |-> c]]
          /\ used' = [used EXCEPT ![Flow(c)] = @ + 1] /\ UNCHANGED told
  /\ UNCHANGED <<free, gen, words, avail, tokens, caller, went, phase, spent>>

Dispatch(s) ==
  /\ row[s].at = "queued" /\ MayGo(FacetOf[row[s].who])
  /\ row' = [row EXCEPT ![s].at = "out"] /\ Tell(s, row[s].gen, "go")
  /\ avail' = [avail EXCEPT ![FacetOf[row[s].who]] = @ - 1] /\ tokens' = tokens - 1
  /\ UNCHANGED <<free, gen, intake, words, used, caller, went, phase, spent>>

Refill ==
  /\ tokens < Burst /\ tokens' = tokens + 1
  /\ UNCHANGED <<free, gen, intake, words, row, avail, used, told, caller, went, phase, spent>>

Late(s) == \* it has waited for the limit
  /\ row[s].at = "queued" /\ row' = [row EXCEPT ![s].at = "free"]
  /\ Tell(s, row[s].gen, "refused") /\ Uncharge(s)
  /\ UNCHANGED <<free, gen, intake, words, avail, tokens, caller, went, phase, spent>>

Reclaim(s) == \* its deadline and the grace have passed: it continues without a permit
  /\ row[s].at = "out" /\ TakesBack /\ row' = [row EXCEPT ![s].at = "lost"]
  /\ avail' = [avail EXCEPT ![FacetOf[row[s].who]] = @ + 1]
  /\ UNCHANGED <<free, gen, intake, words, tokens, used, told, caller, went, phase, spent>>

Settle == \E w \in words : LET t == w.ticket s == t.slot IN
  /\ words' = words \ {w}
  /\ IF Mine(s, t) /\ row[s].at # "free"
     THEN /\ row' = IF Stays(row[s].at) THEN row ELSE [row EXCEPT ![s].at = "free"]
          /\ Tell(s, t.gen, "done")
          /\ avail' = [avail EXCEPT ![FacetOf[row[s].who]] = IF GivesBack(row[s].at) THEN @ + 1 ELSE @]
          /\ IF row[s].at = "queued" THEN Uncharge(s) /\ UNCHANGED went
             ELSE went' = [went EXCEPT ![FlowOf[row[s].who]] = @ + 1] /\ UNCHANGED used
     ELSE /\ row' = IF Early(s, t) THEN [row EXCEPT ![s].left = t.gen] ELSE row
          /\ UNCHANGED <<told, avail, used, went>>
  /\ UNCHANGED <<free, gen, intake, tokens, caller, phase, spent>>

Drain == \* waiting requests are rejected; admitted ones continue
  /\ phase = "serving" /\ phase' = "draining"
  /\ LET waits == {s \in Slots : row[s].at = "queued"} IN
     /\ row' = [s \in Slots |-> IF s \in waits THEN [row[s] EXCEPT !.at = "free"] ELSE row[s]]
     /\ told' = [s \in Slots |-> IF s \in waits THEN Append(told[s], [gen |-> row[s].gen, word |-> "refused"]) ELSE told[s]]
     /\ used' = [f \in Flows |-> used[f] - Cardinality({s \in waits : Flow(row[s].who) = f})]
  /\ UNCHANGED <<free, gen, intake, words, avail, tokens, caller, went, spent>>

Done == /\ \A c \in Callers : caller[c].pc = "out"
        /\ words = {} /\ phase = "draining" /\ UNCHANGED vars

Node == \/ \E k \in Classes : Decide(k)
        \/ \E s \in Slots : Dispatch(s) \/ Late(s) \/ Reclaim(s)
        \/ Settle \/ Refill
Next == \/ Node \/ Drain \/ Done
        \/ \E c \in Callers : Ask(c) \/ Finish(c) \/ Leave(c) \/ Again(c) \/ Hear(c)

Spec     == Init /\ [][Next]_vars
LiveSpec == Spec /\ WF_vars(Node) /\ \A c \in Callers : WF_vars(Hear(c)) /\ (~Hangs => WF_vars(Finish(c)))

-----------------------------------------------------------------------------
(* Invariants and properties.                                                 *)

At(where, P(_)) == Cardinality({s \in Slots : row[s].at \in where /\ P(row[s].who)})
Said(s)         == [i \in DOMAIN told[s] |-> told[s][i].word]
Coming(t)       == \E k \in Classes : \E i \in DOMAIN intake[k] : intake[k][i].ticket = t
Holds(s, t)     == row[s].gen = t.gen /\ row[s].at # "free"

\* Of each facet, a permit is free or given, and is returned once; the instance gives no token that it does not have.
PermitsExact == /\ \A f \in Facets : avail[f] >= 0 /\ avail[f] + At({"out"}, LAMBDA x : FacetOf[x] = f) = Permits[f]
                /\ tokens \in 0..Burst

\* A slot is free or has one caller; the machine has no row of a free slot, and nothing is on its way back.
SlotsExact == \A s \in Slots :
  /\ Cardinality({k \in Classes : s \in free[k]}) + Cardinality({c \in Callers : caller[c].pc # "out" /\ caller[c].slot = s}) = 1
  /\ (\E k \in Classes : s \in free[k]) => row[s].at = "free" /\ told[s] = <<>> /\ ~Coming([slot |-> s, gen |-> gen[s]])

\* A working caller was admitted; a waiting one is on its way, queued, or its decision is; an ending one will get the last decision.
NoneLost == \A c \in Callers : LET t == Ticket(c) s == caller[c].slot IN
  CASE caller[c].pc = "works" -> Holds(s, t) /\ row[s].at \in {"out", "lost"}
    [] caller[c].pc = "asks"  -> Coming(t) \/ told[s] # <<>> \/ (Holds(s, t) /\ row[s].at = "queued")
    [] caller[c].pc = "left"  -> Coming(t) \/ told[s] # <<>> \/ (Holds(s, t) /\ (row[s].at # "queued" => [ticket |-> t, n |-> 1] \in words
                                                                                \/ [ticket |-> t, n |-> 2] \in words))
    [] OTHER -> TRUE

\* Each request gets at most one admission and one end, and each decision reaches its own caller.
OneVerdict == \A c \in Callers : caller[c].pc # "out" => LET s == caller[c].slot IN
  /\ Said(s) \in CASE caller[c].pc = "works" -> {<<>>}
                   [] caller[c].pc = "asks"  -> {<<>>, <<"go">>, <<"refused">>}
                   [] OTHER -> {<<>>, <<"go">>, <<"refused">>, <<"done">>, <<"go", "done">>}
  /\ \A i \in DOMAIN told[s] : told[s][i].gen = gen[s]

\* The queued requests are within the limits: of all, of a class, of a flow.
QueueBounded == /\ At({"queued"}, LAMBDA x : TRUE) <= Total
                /\ \A k \in Classes : At({"queued"}, LAMBDA x : ClassOf[x] = k) <= Bound[k]
                /\ \A f \in Flows : At({"queued"}, LAMBDA x : FlowOf[x] = f) <= Share

\* A request is rejected at once only for its quota, its flow's share, its class's limit, or because it left.
RefusedRightly == [][\A k \in Classes : intake'[k] # intake[k] /\ Len(intake'[k]) < Len(intake[k]) =>
  LET c == Head(intake[k]).who s == Head(intake[k]).ticket.slot IN
  told'[s] # told[s] => \/ phase # "serving" \/ row[s].left = gen[s]
                        \/ used[FlowOf[c]] >= Quota[FlowOf[c]]
                        \/ At({"queued"}, LAMBDA x : FlowOf[x] = FlowOf[c]) >= Share
                        \/ At({"queued"}, LAMBDA x : ClassOf[x] = k) >= Bound[k]]_vars

\* A quota is used by requests in progress or finished, and not by rejected ones.
QuotaExact == \A f \in Flows : used[f] = At({"queued", "out", "lost"}, LAMBDA x : FlowOf[x] = f) + went[f]

\* A tenant's state is changed only by its own requests.
Untouched == [][\A f \in Flows : used'[f] # used[f] =>
  \E s \in Slots : row'[s] # row[s] /\ \E r \in {row[s], row'[s]} : r.at # "free" /\ FlowOf[r.who] = f]_vars

\* From draining on no request is accepted, and none waits.
NothingNew == phase = "draining" => Queued(LAMBDA x : TRUE) = 0

\* Every request is decided: a waiting one is admitted or rejected, and the slot of one that left becomes free.
Answered == \A c \in Callers : caller[c].pc \in {"asks", "left"} ~> caller[c].pc \in {"works", "out"}

\* In the end all permits are free, whichever request hangs.
PermitsReturn == <>[](avail = Permits)
=============================================================================
