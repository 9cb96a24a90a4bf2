--------------------------------- MODULE PaidPut ---------------------------------
(* A write of an object that costs money, over the planes of money and objects. *)
(*                                                                              *)
(*   Reserve ──► Upload ──► Put: row and capture, one frame ──► Tell               *)
(*   hold         body      └── or Cancel: the hold is released                    *)
(*                                                                              *)
(* A reply waits until its record is durable. A crash takes what is not; the      *)
(* client then knows nothing, and begins anew. A hold that nobody ends lapses.    *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Clients,       \* each writes one object until it is told what became of it
  Objects,       \* names; all contents of a name are the same
  Wants,         \* client -> object
  Funds, Price,  \* of the payer; of an object
  MaxHolds,      \* holds that are ever made
  Until,         \* the time for which a hold is active
  MaxTime, MaxCrashes

VARIABLES
  log,           \* the state after each record
  durable,       \* records that are on the disk
  writes,        \* client -> [step, hold, at]; step: "new", "reserving", "reserved", "uploaded", "putting", "stored", "refused"
  bodies,        \* holds for which a body was read
  now, crashes

vars == <<log, durable, writes, bodies, now, crashes>>

\* A state: holds ever made, each [of, step, due]; rows; captures; rows ever created.
Last == log[Len(log)]

-----------------------------------------------------------------------------
(* The decisions: what the mutants of MCPaidPut replace.                      *)

Available(s)      == Funds - Price * (s.paid + Cardinality({h \in DOMAIN s.holds : s.holds[h].step = "active"}))
IsActive(s, h)    == s.holds[h].step = "active" /\ now < s.holds[h].due
MayUpload(w)      == w.step = "reserved"           \* the hold is durable before the body is read
MayCancel(w)      == w.step = "uploaded"           \* its outcome is not decided
MayTell(w)        == durable >= w.at
Keeps(s, o)       == o \in s.rows                  \* nothing is created
OneFrame(s, h, o) ==                              \* the row, and its money
  IF Keeps(s, o) THEN <<[s EXCEPT !.holds[h].step = "released"]>>
  ELSE <<[s EXCEPT !.holds[h].step = "captured", !.paid = @ + 1, !.rows = @ \cup {o}, !.created = @ + 1]>>
Rejected(s, o)    == <<>>                          \* without the money, nothing of it
MayLapse(s, h)    == s.holds[h].step = "active" /\ now >= s.holds[h].due

-----------------------------------------------------------------------------
Init ==
  /\ log = <<[holds |-> <<>>, rows |-> {}, paid |-> 0, created |-> 0]>> /\ durable = 1
  /\ writes = [c \in Clients |-> [step |-> "new", hold |-> 0, at |-> 0]]
  /\ bodies = {} /\ now = 0 /\ crashes = 0

Reserve(c) ==
  /\ writes[c].step = "new" /\ Len(Last.holds) < MaxHolds
  /\ now + Until <= MaxTime                       \* the time of the model ends behind every hold
  /\ IF Available(Last) < Price
     THEN /\ writes' = [writes EXCEPT ![c] = [step |-> "refused", hold |-> 0, at |-> 0]]
          /\ UNCHANGED log
     ELSE /\ log' = Append(log, [Last EXCEPT !.holds = Append(@, [of |-> c, step |-> "active", due |-> now + Until])])
          /\ writes' = [writes EXCEPT ![c] = [step |-> "reserving", hold |-> Len(Last.holds) + 1, at |-> Len(log')]]
  /\ UNCHANGED <<durable, bodies, now, crashes>>

Reserved(c) ==
  /\ writes[c].step = "reserving" /\ MayTell(writes[c])
  /\ writes' = [writes EXCEPT ![c].step = "reserved"]
  /\ UNCHANGED <<log, durable, bodies, now, crashes>>

Upload(c) ==
  /\ MayUpload(writes[c])
  /\ writes' = [writes EXCEPT ![c].step = "uploaded"]
  /\ bodies' = bodies \cup {writes[c].hold}
  /\ UNCHANGED <<log, durable, now, crashes>>

Put(c) ==
  /\ writes[c].step = "uploaded"
  /\ LET h == writes[c].hold
         done == h # 0 /\ IsActive(Last, h)
         next == IF done THEN OneFrame(Last, h, Wants[c]) ELSE Rejected(Last, Wants[c])
     IN /\ log' = log \o next
        /\ writes' = [writes EXCEPT ![c] = [step |-> IF done THEN "putting" ELSE "refused", hold |-> h, at |-> Len(log')]]
  /\ UNCHANGED <<durable, bodies, now, crashes>>

\* The body is not that which was announced, or the client has left.
Cancel(c) ==
  /\ MayCancel(writes[c])
  /\ IF writes[c].hold # 0 /\ IsActive(Last, writes[c].hold)
     THEN log' = Append(log, [Last EXCEPT !.holds[writes[c].hold].step = "released"])
     ELSE UNCHANGED log
  /\ writes' = [writes EXCEPT ![c].step = "refused"]
  /\ UNCHANGED <<durable, bodies, now, crashes>>

Tell(c) ==
  /\ writes[c].step = "putting" /\ MayTell(writes[c])
  /\ writes' = [writes EXCEPT ![c].step = "stored"]
  /\ UNCHANGED <<log, durable, bodies, now, crashes>>

Lapse(h) ==
  /\ h \in DOMAIN Last.holds /\ MayLapse(Last, h)
  /\ log' = Append(log, [Last EXCEPT !.holds[h].step = "lapsed"])
  /\ UNCHANGED <<durable, writes, bodies, now, crashes>>

Sync == durable < Len(log) /\ durable' = durable + 1 /\ UNCHANGED <<log, writes, bodies, now, crashes>>
Tick == now < MaxTime /\ now' = now + 1 /\ UNCHANGED <<log, durable, writes, bodies, crashes>>

Crash ==
  /\ crashes < MaxCrashes /\ crashes' = crashes + 1
  /\ log' = SubSeq(log, 1, durable)
  /\ writes' = [c \in Clients |-> IF writes[c].step \in {"stored", "refused"} THEN writes[c] ELSE [step |-> "new", hold |-> 0, at |-> 0]]
  /\ bodies' = {h \in bodies : h \in DOMAIN log[durable].holds}
  /\ UNCHANGED <<durable, now>>

Next ==
  \/ \E c \in Clients : Reserve(c) \/ Reserved(c) \/ Upload(c) \/ Put(c) \/ Cancel(c) \/ Tell(c)
  \/ \E h \in 1..MaxHolds : Lapse(h)
  \/ Sync \/ Tick \/ Crash

Fairness ==
  /\ WF_vars(Sync) /\ WF_vars(Tick) /\ \A h \in 1..MaxHolds : WF_vars(Lapse(h))
  /\ \A c \in Clients : WF_vars(Reserve(c)) /\ WF_vars(Reserved(c)) /\ WF_vars(Upload(c)) /\ WF_vars(Put(c)) /\ WF_vars(Tell(c))

Spec == Init /\ [][Next]_vars
LiveSpec == Spec /\ Fairness

-----------------------------------------------------------------------------
\* What a crash may leave.
Kept == durable..Len(log)
Active(s) == {h \in DOMAIN s.holds : s.holds[h].step = "active"}

\* Every row that was created is paid, once, and nothing else is: whatever a crash leaves.
PaidExactly == \A i \in Kept : log[i].paid = log[i].created /\ log[i].created = Cardinality(log[i].rows)

\* What was captured and is held is there.
Covered == \A i \in Kept : Price * (log[i].paid + Cardinality(Active(log[i]))) <= Funds

\* No body is read without a hold that a crash cannot take.
BodyIsReserved == bodies \subseteq DOMAIN log[durable].holds

\* Who was told that the object is stored finds it after any crash.
StoredStands == \A c \in Clients : writes[c].step = "stored" => Wants[c] \in log[durable].rows

\* Who was refused has not paid for that write.
RefusedPaysNothing == \A c \in Clients :
  (writes[c].step = "refused" /\ writes[c].hold # 0) => Last.holds[writes[c].hold].step # "captured"

\* No money is reserved for ever.
HoldsEnd == <>[](Active(Last) = {})
=============================================================================
