--------------------------------- MODULE Lanes ---------------------------------
(* Exports: the positions of a stream are sent to a sink, one at a time and in   *)
(* order. The journal is the queue: the lane has a cursor, which is the fold of  *)
(* its records.                                                                  *)
(*                                                                              *)
(*   Seal ──► 1 2 3 ...           Send ──► Deliver ──► Answered ──► Settle       *)
(*            cursor ▲                       │ rejected ──► Quarantine           *)
(*                   └────────── a record that is durable ◄─────┘                *)
(*                                                                              *)
(* The network loses, delays and repeats. A crash takes the scheduler and the    *)
(* records that are not durable. What a sink has was sealed durably before.      *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
  MaxSeq,      \* positions are 1..MaxSeq
  Bad,         \* those that the sink rejects
  Window,      \* positions that are acknowledged and not settled
  Room,        \* positions in quarantine
  MaxLosses,   \* sends without an answer in time, and answers of the node
  MaxCrashes

VARIABLES
  head,        \* positions that exist
  log,         \* records: settled up to a position, or quarantined at one
  durable,     \* records that are on disk
  loaded,      \* the scheduler has the lane
  cursor,      \* of the lane, as the scheduler has it
  acked,       \* the sink has acknowledged the positions up to here, or they are quarantined
  sending,     \* the position that is being sent; 0: none
  rejected,    \* the next position is to be quarantined
  asked,       \* the record of the command that is with the node; 0: none
  net,         \* sends and answers on their way
  stored,      \* positions that the sink has
  losses, crashes

sink == <<net, stored>>
lane == <<loaded, cursor, acked, sending, rejected, asked>>
vars == <<head, log, durable, lane, sink, losses, crashes>>

Positions == 1..MaxSeq
CursorOf(upto) == IF upto = 0 THEN 0 ELSE log[upto].to       \* records only go forward
GoneIn(upto)   == {log[i].to : i \in {j \in 1..upto : log[j].kind = "quarantined"}}
Put(p)         == [kind |-> "put", position |-> p]
Ok(p)          == [kind |-> "ok", position |-> p]
No(p)          == [kind |-> "no", position |-> p]

-----------------------------------------------------------------------------
(* The decisions: what the mutants of MCLanes replace.                          *)

MaySend        == sending = 0                     \* one send at a time
First          == CursorOf(durable)               \* where a lane that is loaded goes on
MayTell        == asked <= durable                \* the node answers when the record is durable
MovedWhen      == Len(log)                        \* durable when the node answers that the cursor is elsewhere
SettledTo      == acked                           \* what the sink has acknowledged
Follows(from)  == from = CursorOf(Len(log)) + 1   \* the node records the next position only
Rejects(m)     == m.kind = "no"
IsFull         == Cardinality(GoneIn(Len(log))) >= Room
WhenFull       == log                             \* the lane waits

-----------------------------------------------------------------------------
Init ==
  /\ head = 0 /\ log = <<>> /\ durable = 0
  /\ loaded = FALSE /\ cursor = 0 /\ acked = 0 /\ sending = 0 /\ rejected = FALSE /\ asked = 0
  /\ net = {} /\ stored = {} /\ losses = 0 /\ crashes = 0

Seal ==
  /\ head < MaxSeq /\ head' = head + 1
  /\ UNCHANGED <<log, durable, lane, sink, losses, crashes>>

Load ==
  /\ ~loaded /\ CursorOf(durable) < head
  /\ loaded' = TRUE /\ cursor' = First /\ acked' = First /\ sending' = 0 /\ rejected' = FALSE /\ asked' = 0
  /\ UNCHANGED <<head, log, durable, sink, losses, crashes>>

Next1 == IF sending = 0 THEN acked + 1 ELSE sending + 1

Send ==
  /\ loaded /\ MaySend /\ ~rejected /\ Next1 <= head /\ Next1 - cursor <= Window
  /\ sending' = Next1 /\ net' = net \cup {Put(Next1)}
  /\ UNCHANGED <<head, log, durable, loaded, cursor, acked, rejected, asked, stored, losses, crashes>>

\* A send may arrive late, when the scheduler has given it up or is another one.
Deliver(p) ==
  /\ Put(p) \in net
  /\ IF p \in Bad
     THEN net' = (net \ {Put(p)}) \cup {No(p)} /\ UNCHANGED stored
     ELSE net' = (net \ {Put(p)}) \cup {Ok(p)} /\ stored' = stored \cup {p}
  /\ UNCHANGED <<head, log, durable, lane, losses, crashes>>

Answered(m) ==
  /\ m \in net /\ m.kind # "put" /\ loaded /\ sending = m.position
  /\ net' = net \ {m} /\ sending' = 0
  /\ IF m.kind = "ok" THEN acked' = m.position /\ UNCHANGED rejected
                      ELSE rejected' = Rejects(m) /\ UNCHANGED acked
  /\ UNCHANGED <<head, log, durable, loaded, cursor, asked, stored, losses, crashes>>

\* An answer that comes when the scheduler does not wait for it is ignored.
Ignored(m) ==
  /\ m \in net /\ m.kind # "put" /\ sending # m.position
  /\ net' = net \ {m}
  /\ UNCHANGED <<head, log, durable, lane, stored, losses, crashes>>

\* No answer in time. The send may be on its way, or lost.
Timeout ==
  /\ sending # 0 /\ losses < MaxLosses /\ losses' = losses + 1
  /\ sending' = 0 /\ rejected' = Rejects([kind |-> "timeout"])
  /\ net' \in {net, net \ {Put(sending)}, net \ {Ok(sending), No(sending)}}
  /\ UNCHANGED <<head, log, durable, loaded, cursor, acked, asked, stored, crashes>>

\* The node decides a command. If its positions do not follow the cursor, the lane is told, and loaded again.
Record(r, from) ==
  IF Follows(from)
  THEN log' = Append(log, r) /\ asked' = Len(log) + 1 /\ UNCHANGED <<durable, loaded>>
  ELSE loaded' = FALSE /\ durable' = MovedWhen /\ UNCHANGED <<log, asked>>

Settle ==
  /\ loaded /\ asked = 0 /\ cursor < SettledTo /\ sending \in {0, acked + 1, SettledTo}
  /\ Record([kind |-> "settled", to |-> SettledTo], cursor + 1)
  /\ UNCHANGED <<head, cursor, acked, sending, rejected, sink, losses, crashes>>

Quarantine ==
  /\ loaded /\ asked = 0 /\ rejected /\ cursor = acked /\ (~IsFull \/ ~Follows(cursor + 1))
  /\ Record([kind |-> "quarantined", to |-> cursor + 1], cursor + 1)
  /\ UNCHANGED <<head, cursor, acked, sending, rejected, sink, losses, crashes>>

\* There is no room: the lane sends the position again.
Full ==
  /\ loaded /\ asked = 0 /\ rejected /\ cursor = acked /\ IsFull /\ Follows(cursor + 1)
  /\ log' = WhenFull /\ rejected' = FALSE
  /\ UNCHANGED <<head, durable, loaded, cursor, acked, sending, asked, sink, losses, crashes>>

Sync ==
  /\ durable < Len(log) /\ durable' = Len(log)
  /\ UNCHANGED <<head, log, lane, sink, losses, crashes>>

Told ==
  /\ loaded /\ asked # 0 /\ MayTell
  /\ cursor' = log[asked].to /\ asked' = 0
  /\ IF log[asked].kind = "quarantined" THEN acked' = log[asked].to /\ rejected' = FALSE ELSE UNCHANGED <<acked, rejected>>
  /\ UNCHANGED <<head, log, durable, loaded, sending, sink, losses, crashes>>

\* The outcome of a command is unknown: it is given again.
Unknown ==
  /\ asked # 0 /\ losses < MaxLosses /\ losses' = losses + 1 /\ asked' = 0
  /\ UNCHANGED <<head, log, durable, loaded, cursor, acked, sending, rejected, sink, crashes>>

Unload ==
  /\ loaded /\ asked = 0 /\ sending = 0 /\ ~rejected /\ cursor = head
  /\ loaded' = FALSE
  /\ UNCHANGED <<head, log, durable, cursor, acked, sending, rejected, asked, sink, losses, crashes>>

Crash ==
  /\ crashes < MaxCrashes /\ crashes' = crashes + 1
  /\ \E k \in durable..Len(log) : log' = SubSeq(log, 1, k) /\ durable' = k
  /\ loaded' = FALSE /\ cursor' = 0 /\ acked' = 0 /\ sending' = 0 /\ rejected' = FALSE /\ asked' = 0
  /\ UNCHANGED <<head, sink, losses>>

Done == CursorOf(durable) = MaxSeq /\ ~loaded /\ net = {} /\ UNCHANGED vars

Next ==
  \/ Seal \/ Load \/ Send \/ Timeout \/ Settle \/ Quarantine \/ Full \/ Sync \/ Told \/ Unknown \/ Unload \/ Crash \/ Done
  \/ \E p \in Positions : Deliver(p)
  \/ \E m \in net : Answered(m) \/ Ignored(m)

Spec == Init /\ [][Next]_vars
Live == Spec /\ WF_vars(Seal) /\ WF_vars(Load) /\ WF_vars(Send) /\ WF_vars(Settle) /\ WF_vars(Quarantine) /\ WF_vars(Sync) /\ WF_vars(Told)
             /\ WF_vars(Unload) /\ WF_vars(Timeout)
             /\ \A p \in Positions : WF_vars(Deliver(p)) /\ WF_vars(\E m \in net : m.position = p /\ (Answered(m) \/ Ignored(m)))

-----------------------------------------------------------------------------
\* The sink gets no position before those before it, except those that are in quarantine.
InOrder == \A p \in stored : \A q \in 1..p - 1 : q \in stored \/ q \in GoneIn(durable)

\* What is before the cursor, the sink has, or it is in quarantine.
NoneLost == \A p \in 1..CursorOf(Len(log)) : p \in stored \/ p \in GoneIn(Len(log))

\* Each record goes on where the one before ended.
Once == \A i \in 1..Len(log) : log[i].to > (IF i = 1 THEN 0 ELSE log[i - 1].to)

\* Only what the sink rejects is in quarantine, and no more than there is room for.
OnlyRejected == GoneIn(Len(log)) \subseteq Bad
Bounded == Cardinality(GoneIn(Len(log))) <= Room

\* What is settled durably is not sent again.
NotAgain == [][sending' # sending /\ sending' # 0 => sending' > CursorOf(durable)]_vars

\* Everything is exported, if there is room for what is rejected.
Settles == <>[](CursorOf(durable) = MaxSeq)
=============================================================================
