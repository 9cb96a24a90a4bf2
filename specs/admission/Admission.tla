------------------------------- MODULE Admission -------------------------------
(* Who is let in: slots of the shell, rows of the machine, permits.           *)
(*                                                                            *)
(*            ┌──── late, a drain, or the client left ───────────► free       *)
(*   Ask ──► queued ──Dispatch──► out ──Settle──────────────────► free        *)
(*     └─ refused at once          └── kept too long ──► lost ──Settle──► free *)
(*                                                                            *)
(* A slot is a request's until the machine has said its last word about it:   *)
(* refused, or done. A ticket is the slot and the number of its use. Requests *)
(* come by a ring of their class, words about settling by a way of their own, *)
(* so they may overtake them, come twice, and come when the slot is used      *)
(* again. Who of those that are queued is next is DRR's business.             *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Callers, ClassOf,
  FlowOf,            \* a tenant, of whom a key was verified; of the others, a peer
  Claims,            \* who each says that it is
  FacetOf, Permits,  \* of each facet
  SlotsOf,           \* of each class
  Total, Bound,      \* queued at once, and of them of each class
  Share, Quota,      \* of each flow: queued at once, and let in at all
  Burst,             \* of the instance's tokens
  MaxAsks, MaxFaults,
  Hangs              \* whether who works may never end

VARIABLES
  free,     \* of each class, its slots that nobody has
  gen,      \* of each slot, the number of its use
  intake,   \* of each class, requests on their way: [ticket, who]
  words,    \* tickets to be settled, on their way: [ticket, n], n-th time that it is said
  row,      \* of each slot: [at, gen, left, who]; left is a use that was settled before it came
  avail,    \* permits that are not out
  tokens,
  used,     \* of each flow, of its quota
  told,     \* of each slot, words on their way back: [gen, word]; "go", "refused", "done"
  caller,   \* [pc, slot]; pc is "out", "asks", "works", or "left": it has said that it is to be settled
  went,     \* of each flow, who was let in and is done
  phase,    \* "serving", "draining"
  spent

vars == <<free, gen, intake, words, row, avail, tokens, used, told, caller, went, phase, spent>>

Classes == DOMAIN SlotsOf
Slots   == UNION {SlotsOf[k] : k \in Classes}
Facets  == DOMAIN Permits
Flows   == {FlowOf[c] : c \in Callers} \cup {Claims[c] : c \in Callers}
RECURSIVE Sum(_)
Sum(S) == IF S = {} THEN 0 ELSE LET k == CHOOSE k \in S : TRUE IN Bound[k] + Sum(S \ {k})

ASSUME Sum(Classes) <= Total \* or one class fills what others were promised

Queued(P(_)) == Cardinality({s \in Slots : row[s].at = "queued" /\ P(row[s].who)})
Ticket(c)    == [slot |-> caller[c].slot, gen |-> gen[caller[c].slot]]

-----------------------------------------------------------------------------
(* The decisions: what the mutants of MCAdmission replace.                    *)

Flow(c)       == FlowOf[c]             \* what was not verified is not believed
Takes         == phase = "serving"
FullAll       == Queued(LAMBDA x : TRUE) >= Total
FullClass(k)  == Queued(LAMBDA x : ClassOf[x] = k) >= Bound[k]
FullFlow(f)   == Queued(LAMBDA x : Flow(x) = f) >= Share
OverQuota(f)  == used[f] >= Quota[f]
MayGo(f)      == avail[f] > 0 /\ tokens > 0
Refund(f)     == used[f] - 1           \* who is refused later has used nothing either
Mine(s, t)    == row[s].gen = t.gen
Early(s, t)   == t.gen > row[s].gen /\ t.gen > row[s].left \* it has overtaken its request: the latest that has is remembered
GivesBack(at) == at = "out"            \* of a lost one the permit was taken back
Stays(at)     == FALSE                 \* who left the queue is not in it any more
TakesBack     == TRUE                  \* from who keeps a permit too long
FreesAtOnce   == FALSE                 \* a slot is its caller's until the machine's last word

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

Ask(c) == \* who finds no slot of its class is refused at the door
  /\ caller[c].pc = "out" /\ free[ClassOf[c]] # {} /\ Spend("asks", MaxAsks)
  /\ LET k == ClassOf[c]
         s == CHOOSE s \in free[k] : \A other \in free[k] : s <= other
     IN /\ free' = [free EXCEPT ![k] = @ \ {s}] /\ gen' = [gen EXCEPT ![s] = @ + 1]
        /\ caller' = [caller EXCEPT ![c] = [pc |-> "asks", slot |-> s]]
        /\ intake' = [intake EXCEPT ![k] = Append(@, [ticket |-> [slot |-> s, gen |-> gen[s] + 1], who |-> c])]
  /\ UNCHANGED <<words, row, avail, tokens, used, told, went, phase>>

Ends(c, pc) == \* its ticket is to be settled
  /\ caller[c].pc = pc
  /\ words' = words \cup {[ticket |-> Ticket(c), n |-> 1]}
  /\ IF FreesAtOnce THEN /\ caller' = [caller EXCEPT ![c] = Out]
                         /\ free' = [free EXCEPT ![ClassOf[c]] = @ \cup {caller[c].slot}]
     ELSE caller' = [caller EXCEPT ![c].pc = "left"] /\ UNCHANGED free
  /\ UNCHANGED <<gen, intake, row, avail, tokens, used, told, went, phase>>

Finish(c) == Ends(c, "works") /\ UNCHANGED spent
Leave(c)  == Ends(c, "asks") /\ Spend("faults", MaxFaults) \* its verdict may be on its way

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

Decide(k) == \* who is refused changes nothing of anybody
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

Late(s) == \* it has waited for as long as it may
  /\ row[s].at = "queued" /\ row' = [row EXCEPT ![s].at = "free"]
  /\ Tell(s, row[s].gen, "refused") /\ Uncharge(s)
  /\ UNCHANGED <<free, gen, intake, words, avail, tokens, caller, went, phase, spent>>

Reclaim(s) == \* its deadline and the grace are over: what it does, it does without a permit
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

Drain == \* nobody waits through it; who works goes on
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
(* What is kept.                                                              *)

At(where, P(_)) == Cardinality({s \in Slots : row[s].at \in where /\ P(row[s].who)})
Said(s)         == [i \in DOMAIN told[s] |-> told[s][i].word]
Coming(t)       == \E k \in Classes : \E i \in DOMAIN intake[k] : intake[k][i].ticket = t
Holds(s, t)     == row[s].gen = t.gen /\ row[s].at # "free"

\* Of each facet, a permit is free or out, and is given back once; the instance gives no token that it does not have.
PermitsExact == /\ \A f \in Facets : avail[f] >= 0 /\ avail[f] + At({"out"}, LAMBDA x : FacetOf[x] = f) = Permits[f]
                /\ tokens \in 0..Burst

\* A slot is free, or one caller has it; of a free one the machine knows nothing any more, and nothing is on its way back.
SlotsExact == \A s \in Slots :
  /\ Cardinality({k \in Classes : s \in free[k]}) + Cardinality({c \in Callers : caller[c].pc # "out" /\ caller[c].slot = s}) = 1
  /\ (\E k \in Classes : s \in free[k]) => row[s].at = "free" /\ told[s] = <<>> /\ ~Coming([slot |-> s, gen |-> gen[s]])

\* Who works has been let in; who waits is on his way, queued, or his word is there; who ends will hear the last one.
NoneLost == \A c \in Callers : LET t == Ticket(c) s == caller[c].slot IN
  CASE caller[c].pc = "works" -> Holds(s, t) /\ row[s].at \in {"out", "lost"}
    [] caller[c].pc = "asks"  -> Coming(t) \/ told[s] # <<>> \/ (Holds(s, t) /\ row[s].at = "queued")
    [] caller[c].pc = "left"  -> Coming(t) \/ told[s] # <<>> \/ (Holds(s, t) /\ (row[s].at # "queued" => [ticket |-> t, n |-> 1] \in words
                                                                                \/ [ticket |-> t, n |-> 2] \in words))
    [] OTHER -> TRUE

\* Each is told at most once to go, and the last word once; who hears it hears what is for him.
OneVerdict == \A c \in Callers : caller[c].pc # "out" => LET s == caller[c].slot IN
  /\ Said(s) \in CASE caller[c].pc = "works" -> {<<>>}
                   [] caller[c].pc = "asks"  -> {<<>>, <<"go">>, <<"refused">>}
                   [] OTHER -> {<<>>, <<"go">>, <<"refused">>, <<"done">>, <<"go", "done">>}
  /\ \A i \in DOMAIN told[s] : told[s][i].gen = gen[s]

\* No more is queued than there is room for: of all, of a class, of a flow.
QueueBounded == /\ At({"queued"}, LAMBDA x : TRUE) <= Total
                /\ \A k \in Classes : At({"queued"}, LAMBDA x : ClassOf[x] = k) <= Bound[k]
                /\ \A f \in Flows : At({"queued"}, LAMBDA x : FlowOf[x] = f) <= Share

\* Nobody is refused at once but for his own: his quota, his flow's share, his class's, or because he left.
RefusedRightly == [][\A k \in Classes : intake'[k] # intake[k] /\ Len(intake'[k]) < Len(intake[k]) =>
  LET c == Head(intake[k]).who s == Head(intake[k]).ticket.slot IN
  told'[s] # told[s] => \/ phase # "serving" \/ row[s].left = gen[s]
                        \/ used[FlowOf[c]] >= Quota[FlowOf[c]]
                        \/ At({"queued"}, LAMBDA x : FlowOf[x] = FlowOf[c]) >= Share
                        \/ At({"queued"}, LAMBDA x : ClassOf[x] = k) >= Bound[k]]_vars

\* A quota is used by who is in or was served, and by nobody who was refused, at once or later.
QuotaExact == \A f \in Flows : used[f] = At({"queued", "out", "lost"}, LAMBDA x : FlowOf[x] = f) + went[f]

\* Nothing of a tenant changes but by what his own do.
Untouched == [][\A f \in Flows : used'[f] # used[f] =>
  \E s \in Slots : row'[s] # row[s] /\ \E r \in {row[s], row'[s]} : r.at # "free" /\ FlowOf[r.who] = f]_vars

\* From draining on nothing is taken, and nobody waits.
NothingNew == phase = "draining" => Queued(LAMBDA x : TRUE) = 0

\* Everybody hears: who waits goes or is refused, and who has left hears the last word, so that its slot is free again.
Answered == \A c \in Callers : caller[c].pc \in {"asks", "left"} ~> caller[c].pc \in {"works", "out"}

\* In the end all permits are there again, whoever hangs.
PermitsReturn == <>[](avail = Permits)
=============================================================================
