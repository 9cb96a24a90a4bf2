--------------------------------- MODULE Queue ---------------------------------
(* The admission of a request to the queue, and the delivery of its reply.    *)
(*                                                                            *)
(*   Take a slot ──► Push into the ring ──► Decide ──► held ──► Serve ──► reply *)
(*        none: refused        full, or its tenant has its share: refused      *)
(*   a caller that leaves frees its slot; a cancellation tells the node        *)
(*                                                                            *)
(* A slot is a permit. It is reused at once, so a reply or a cancellation may  *)
(* come late, for an earlier use of it. The ticket, which is the slot and the  *)
(* number of its use, tells them apart. What is decided and when a reply may   *)
(* leave is specified in Wallet.                                               *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Callers, Tenants, Of,  \* of each caller, its tenant
  Slots,
  Limit,                 \* replies that are held
  Share,                 \* of them, those of one tenant
  MaxAsks, MaxLeaves

VARIABLES
  free,     \* free slots, in the order in which they were freed
  slot,     \* [gen, waits, marked, reply]; reply has the tickets in its channel
  ring,     \* items that were admitted and not decided: [ticket, of]
  held,     \* items whose reply waits: [ticket, of, n, gone]
  crowd,    \* of each tenant, the counted number of held items
  gone,     \* cancelled tickets
  caller,   \* [pc, slot, ticket, got]; pc is "out", "in", "waits" or "leaves"
  out,      \* of each tenant, the last item that left held
  count,    \* items that were ever held
  spent

vars == <<free, slot, ring, held, crowd, gone, caller, out, count, spent>>

Last(s) == s[Len(s)]
Without(s, i) == SubSeq(s, 1, i - 1) \o SubSeq(s, i + 1, Len(s))

-----------------------------------------------------------------------------
(* The decisions: what the mutants of MCQueue replace.                        *)

Full             == Len(held) >= Limit     \* the newest is rejected
Crowded(t)       == crowd[t] >= Share
Oldest           == 1                      \* first in, first out
Counts(item)     == TRUE                   \* a cancelled item counts until its reply would have left
Mine(s, ticket)  == slot[s].gen = ticket.gen
Meant(item, ticket) == item.ticket = ticket
Marks(s)         == ~slot[s].marked        \* one cancellation per slot
Drains(s)        == <<>>                   \* a caller that leaves while its reply arrives takes the reply
GivesBack(s)     == Append(free, s)
Delivered(s)     == free                   \* a reply does not free the slot: its caller does
Wants(c)         == ~slot[caller[c].slot].waits \* what the caller finds when it leaves: its reply has arrived

-----------------------------------------------------------------------------
NoTicket == [slot |-> 0, gen |-> 0]
Out      == [pc |-> "out", slot |-> 0, ticket |-> NoTicket]

Init ==
  /\ free = [i \in 1..Slots |-> i]
  /\ slot = [s \in 1..Slots |-> [gen |-> 0, waits |-> FALSE, marked |-> FALSE, reply |-> <<>>]]
  /\ ring = <<>> /\ held = <<>> /\ gone = <<>>
  /\ crowd = [t \in Tenants |-> 0] /\ out = [t \in Tenants |-> 0] /\ count = 0
  /\ caller = [c \in Callers |-> Out]
  /\ spent = [asks |-> 0, leaves |-> 0]

Spend(what, most) == spent[what] < most /\ spent' = [spent EXCEPT ![what] = @ + 1]

(* Callers.                                                                   *)

Take(c) == \* without a free slot the caller is rejected
  /\ caller[c].pc = "out" /\ free # <<>> /\ Spend("asks", MaxAsks)
  /\ LET s == Head(free)
         ticket == [slot |-> s, gen |-> slot[s].gen + 1]
     IN /\ caller' = [caller EXCEPT ![c] = [pc |-> "in", slot |-> s, ticket |-> ticket]]
        /\ slot' = [slot EXCEPT ![s].gen = @ + 1, ![s].waits = TRUE]
  /\ free' = Tail(free)
  /\ UNCHANGED <<ring, held, crowd, gone, out, count>>

Push(c) == \* into a ring with as many places as there are slots
  /\ caller[c].pc = "in" /\ Len(ring) < Slots
  /\ ring' = Append(ring, [ticket |-> caller[c].ticket, of |-> Of[c]])
  /\ caller' = [caller EXCEPT ![c].pc = "waits"]
  /\ UNCHANGED <<free, slot, held, crowd, gone, out, count, spent>>

Hear(c) ==
  /\ caller[c].pc = "waits" /\ slot[caller[c].slot].reply # <<>>
  /\ slot' = [slot EXCEPT ![caller[c].slot].reply = Tail(@)]
  /\ free' = GivesBack(caller[c].slot) /\ caller' = [caller EXCEPT ![c] = Out]
  /\ UNCHANGED <<ring, held, crowd, gone, out, count, spent>>

Leave(c) == \* either its reply has arrived, or no caller will wait for it
  /\ caller[c].pc = "waits" /\ Spend("leaves", MaxLeaves)
  /\ LET s == caller[c].slot IN
     IF Wants(c) THEN /\ slot' = [slot EXCEPT ![s].reply = Drains(s)]
                      /\ free' = GivesBack(s) /\ caller' = [caller EXCEPT ![c] = Out]
     ELSE /\ slot' = [slot EXCEPT ![s].waits = FALSE] /\ UNCHANGED free
          /\ caller' = [caller EXCEPT ![c].pc = "leaves"]
  /\ UNCHANGED <<ring, held, crowd, gone, out, count>>

Mark(c) ==
  /\ caller[c].pc = "leaves"
  /\ LET s == caller[c].slot IN
     /\ IF Marks(s) THEN gone' = Append(gone, caller[c].ticket) /\ slot' = [slot EXCEPT ![s].marked = TRUE]
        ELSE UNCHANGED <<gone, slot>>
     /\ free' = GivesBack(s) /\ caller' = [caller EXCEPT ![c] = Out]
  /\ UNCHANGED <<ring, held, crowd, out, count, spent>>

GiveUp(c) == \* before it was pushed
  /\ caller[c].pc = "in" /\ Spend("leaves", MaxLeaves)
  /\ slot' = [slot EXCEPT ![caller[c].slot].waits = FALSE]
  /\ free' = GivesBack(caller[c].slot) /\ caller' = [caller EXCEPT ![c] = Out]
  /\ UNCHANGED <<ring, held, crowd, gone, out, count>>

(* The node.                                                                  *)

Deliver(ticket) == LET s == ticket.slot IN
  /\ slot' = IF slot[s].waits /\ Mine(s, ticket) THEN [slot EXCEPT ![s].waits = FALSE, ![s].reply = Append(@, ticket)] ELSE slot
  /\ free' = Delivered(s)

Admit(item) ==
  /\ held' = Append(held, [ticket |-> item.ticket, of |-> item.of, n |-> count + 1, gone |-> FALSE])
  /\ count' = count + 1 /\ crowd' = [crowd EXCEPT ![item.of] = @ + 1]
  /\ UNCHANGED <<slot, free>>

Decide ==
  /\ ring # <<>> /\ ring' = Tail(ring)
  /\ IF Full \/ Crowded(Head(ring).of) THEN Deliver(Head(ring).ticket) /\ UNCHANGED <<held, count, crowd>>
     ELSE Admit(Head(ring))
  /\ UNCHANGED <<gone, caller, out, spent>>

Serve == \* cancelled items get no reply
  /\ held # <<>>
  /\ LET x == held[Oldest] IN
     /\ held' = Without(held, Oldest) /\ out' = [out EXCEPT ![x.of] = x.n]
     /\ crowd' = [crowd EXCEPT ![x.of] = IF Counts(x) THEN @ - 1 ELSE @]
     /\ IF x.gone THEN UNCHANGED <<slot, free>> ELSE Deliver(x.ticket)
  /\ UNCHANGED <<ring, gone, caller, count, spent>>

Cancel ==
  /\ gone # <<>> /\ gone' = Tail(gone)
  /\ slot' = [slot EXCEPT ![Head(gone).slot].marked = FALSE]
  /\ held' = [i \in DOMAIN held |-> IF Meant(held[i], Head(gone)) THEN [held[i] EXCEPT !.gone = TRUE] ELSE held[i]]
  /\ UNCHANGED <<free, ring, crowd, caller, out, count, spent>>

Done == /\ \A c \in Callers : caller[c].pc = "out"
        /\ ring = <<>> /\ held = <<>> /\ gone = <<>> /\ spent.asks = MaxAsks /\ UNCHANGED vars

Node == Decide \/ Serve \/ Cancel
Next == \/ Node \/ Done
        \/ \E c \in Callers : Take(c) \/ Push(c) \/ Hear(c) \/ Leave(c) \/ Mark(c) \/ GiveUp(c)

Spec     == Init /\ [][Next]_vars
LiveSpec == Spec /\ WF_vars(Decide) /\ WF_vars(Serve) /\ WF_vars(Cancel)
                 /\ \A c \in Callers : WF_vars(Push(c)) /\ WF_vars(Hear(c)) /\ WF_vars(Mark(c))

-----------------------------------------------------------------------------
(* Invariants and properties.                                                 *)

Size(s, P(_)) == Cardinality({i \in DOMAIN s : P(s[i])})

\* Q1. The held items, the queued items and the admitted callers are within their limits.
Bounded == Len(held) <= Limit /\ Len(ring) <= Slots

\* No tenant exceeds its share.
ShareKept == \A t \in Tenants : Size(held, LAMBDA x : x.of = t) <= Share

\* N5. The counters agree with the held items.
CrowdExact == \A t \in Tenants : crowd[t] = Size(held, LAMBDA x : x.of = t)

\* No caller is rejected while there is room for it.
RefusedRightly == [][Len(ring') < Len(ring) /\ Len(held') = Len(held) =>
  Len(held) = Limit \/ Size(held, LAMBDA x : x.of = Head(ring).of) = Share]_vars

\* Within a tenant, and overall, replies leave in the order of arrival.
InOrder == \A i \in DOMAIN held : held[i].n > out[held[i].of] /\ \A j \in 1..i : held[j].n <= held[i].n

\* A slot is free or has one caller: none is lost and none is given twice.
SlotsExact == \A s \in 1..Slots : Size(free, LAMBDA x : x = s) + Cardinality({c \in Callers : caller[c].pc # "out" /\ caller[c].slot = s}) = 1

\* A caller gets only its own reply.
RightReply == \A c \in Callers : caller[c].pc = "waits" => \A i \in DOMAIN slot[caller[c].slot].reply : slot[caller[c].slot].reply[i] = caller[c].ticket

\* A reply never waits for room in its channel, and a free slot has no old reply.
ReplyFits == \A s \in 1..Slots : /\ Len(slot[s].reply) <= 1
                                  /\ (\E i \in DOMAIN free : free[i] = s) => slot[s].reply = <<>> /\ ~slot[s].waits

\* A cancellation never waits for room either.
GoneFits == Len(gone) <= Slots

\* An admitted caller that waits is queued or held, or its reply has arrived.
NoneLost == \A c \in Callers : caller[c].pc = "waits" =>
  \/ \E i \in DOMAIN ring : ring[i].ticket = caller[c].ticket
  \/ \E i \in DOMAIN held : held[i].ticket = caller[c].ticket /\ ~held[i].gone
  \/ slot[caller[c].slot].reply # <<>>

\* Every admitted caller is served, or has left.
Served == \A c \in Callers : caller[c].pc = "waits" ~> caller[c].pc = "out"
=============================================================================
