-------------------------------- MODULE Windows --------------------------------
(* Usage: events are counted into windows of time, and windows are sealed into   *)
(* slices.                                                                       *)
(*                                                                              *)
(*   Report ──► row of a window ──due──► Seal ──► slice 1, 2, 3 ...              *)
(*     known: no effect   late: row of the next correction                       *)
(*                                                                              *)
(* The event's time decides the window. The node's time decides the seal: it     *)
(* never goes back while the process lives, and continues from the journal after *)
(* a crash. It follows a machine's clock, which may have any value. The model has *)
(* one stream of one series.                                                     *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Time,          \* event -> its time
  Length, Grace, \* of a window; after its end
  MaxClock,      \* the machine's clock is 0..MaxClock
  Trust,         \* a larger lead of the machine is not trusted
  MaxCrashes

VARIABLES
  machine,       \* the machine's clock
  at, untrusted, \* the node's time
  log,           \* records: an event with its row, or a slice
  durable,       \* records that are on disk
  acked,         \* events that were acknowledged
  started,       \* the length of the log at the start
  crashes

vars == <<machine, at, untrusted, log, durable, acked, started, crashes>>

Events == DOMAIN Time
From(t) == t - (t % Length)
IsEvent(r) == r.kind = "event"
Recorded(upto) == {i \in 1..upto : IsEvent(log[i])}
SlicesIn(upto) == {i \in 1..upto : ~IsEvent(log[i])}
Sealed == UNION {log[i].rows : i \in SlicesIn(Len(log))}  \* indices of event records
LastAt(l) == IF l = <<>> THEN 0 ELSE l[Len(l)].at

-----------------------------------------------------------------------------
(* The decisions: what the mutants of MCWindows replace.                        *)

Known(e)       == \E i \in Recorded(Len(log)) : log[i].event = e
WindowOf(e)    == From(Time[e])                         \* not the time of its report
IsLate(e)      == From(Time[e]) + Length + Grace <= at
DueOf(e)       == From(IF IsLate(e) THEN at ELSE Time[e]) + Length + Grace
IsDue(r)       == r.due <= at
MaySeal        == ~untrusted
Open           == Recorded(Len(log)) \ Sealed          \* records whose usage is not sealed
NextSeq        == Cardinality(SlicesIn(Len(log))) + 1
MayAck(e)      == \E i \in Recorded(durable) : log[i].event = e
TimeAfter(l)   == LastAt(l)                             \* a start continues from the journal's time
Correct(l, r)  == Append(l, r)                          \* late usage is a record of its own
Follow(t)      == IF machine > t THEN machine ELSE t    \* the node's time never goes back

-----------------------------------------------------------------------------
Init ==
  /\ machine = 0 /\ at = 0 /\ untrusted = FALSE
  /\ log = <<>> /\ durable = 0 /\ acked = {} /\ started = 0 /\ crashes = 0

\* The machine's clock runs, is set, or is corrected.
SetMachine(t) ==
  /\ t # machine /\ machine' = t
  /\ UNCHANGED <<at, untrusted, log, durable, acked, started, crashes>>

Read ==
  /\ IF machine - at > Trust
     THEN untrusted' = TRUE /\ at' = at
     ELSE untrusted' = FALSE /\ at' = Follow(at)
  /\ <<at, untrusted>>' # <<at, untrusted>>
  /\ UNCHANGED <<machine, log, durable, acked, started, crashes>>

\* A steady clock, or an operator.
Accept ==
  /\ untrusted /\ machine > at
  /\ at' = machine /\ untrusted' = FALSE
  /\ UNCHANGED <<machine, log, durable, acked, started, crashes>>

\* An event is reported, for the first time or again.
Report(e) ==
  /\ ~Known(e)
  /\ LET r == [kind |-> "event", at |-> at, event |-> e, from |-> WindowOf(e), late |-> IsLate(e), due |-> DueOf(e)]
     IN  log' = IF r.late THEN Correct(log, r) ELSE Append(log, r)
  /\ UNCHANGED <<machine, at, untrusted, durable, acked, started, crashes>>

Ack(e) ==
  /\ e \notin acked /\ MayAck(e)
  /\ acked' = acked \cup {e}
  /\ UNCHANGED <<machine, at, untrusted, log, durable, started, crashes>>

\* The rows of one window that are due first become a slice.
Seal ==
  /\ MaySeal
  /\ \E i \in Open :
       /\ IsDue(log[i])
       /\ \A j \in Open : log[i].due <= log[j].due
       /\ log' = Append(log, [kind |-> "slice", at |-> at, seq |-> NextSeq, from |-> log[i].from, late |-> log[i].late, due |-> log[i].due, trusted |-> ~untrusted,
            rows |-> {j \in Open : <<log[j].from, log[j].late, log[j].due>> = <<log[i].from, log[i].late, log[i].due>>}])
  /\ UNCHANGED <<machine, at, untrusted, durable, acked, started, crashes>>

Sync ==
  /\ durable < Len(log) /\ durable' = durable + 1
  /\ UNCHANGED <<machine, at, untrusted, log, acked, started, crashes>>

\* A crash keeps everything that is durable, and some of what is not.
Crash ==
  /\ crashes < MaxCrashes /\ crashes' = crashes + 1
  /\ \E n \in durable..Len(log) :
       /\ log' = SubSeq(log, 1, n)
       /\ durable' = n /\ started' = n
       /\ at' = TimeAfter(log')
  /\ untrusted' = FALSE
  /\ UNCHANGED <<machine, acked>>

Next ==
  \/ \E t \in 0..MaxClock : SetMachine(t)
  \/ Read \/ Accept \/ Seal \/ Sync \/ Crash
  \/ \E e \in Events : Report(e) \/ Ack(e)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
Slices == SlicesIn(Len(log))

\* Each event is recorded once, and no event that is sealed is sealed again.
CountedOnce ==
  /\ \A i, j \in Recorded(Len(log)) : log[i].event = log[j].event => i = j
  /\ \A i, j \in Slices : i # j => log[i].rows \cap log[j].rows = {}

\* What was acknowledged survives a crash at this very moment.
NoAckLost == \A e \in acked : \E i \in Recorded(durable) : log[i].event = e

\* The usage of a window is sealed once, and its corrections once at each boundary.
SealedOnce == \A i, j \in Slices : <<log[i].from, log[i].late>> = <<log[j].from, log[j].late>> /\ (~log[i].late \/ log[i].due = log[j].due) => i = j

\* No window is sealed before its end and its grace, whatever the machine's clock is.
SealedAfterEnd == \A i \in Slices : log[i].due <= log[i].at /\ log[i].from + Length + Grace <= log[i].due

NotWhileUntrusted == \A i \in Slices : log[i].trusted

\* Usage is in the window of its event.
RightWindow == \A i \in Slices : \A j \in log[i].rows : j < i /\ log[j].from = log[i].from /\ From(Time[log[j].event]) = log[i].from

\* The n-th slice has seq n.
SeqExact == \A i \in Slices : log[i].seq = Cardinality({j \in Slices : j <= i})

\* The time of records never goes back.
TimeGoesOn == \A i \in 1..Len(log) - 1 : log[i].at <= log[i + 1].at

\* What is on disk never changes: no sealed slice is written again.
SealedStands == [][\A i \in 1..durable : log'[i] = log[i]]_vars
=============================================================================
