--------------------------------- MODULE Drain ---------------------------------
(* A node from its start to its end: when it is ready, which requests it       *)
(* accepts, and what happens to them when it ends.                             *)
(*                                                                             *)
(*   starting ──all needs met──► serving ──Drain──► lame duck ──► draining     *)
(*        draining ──no request left──► stopped ──► the shell, the admin last   *)
(*            └──deadline, or Abort──► aborting ──► stopped                    *)
(*                                                                             *)
(* Time is what is left of a deadline: no wait exceeds one. The disk may be    *)
(* slow, fail or never answer, and a service may fail or never end: a drain    *)
(* depends on none of them. What a request does is specified in Wallet, and    *)
(* how frames get to the disk in Journal.                                      *)
EXTENDS Integers, FiniteSets

CONSTANTS
  Requests,
  StartTime,                     \* limit of the start
  LameTime, DrainTime, AbortTime,
  MaxFaults,                     \* stalls, failures, failed services, and unknown outcomes
  MaxSignals

VARIABLES
  met, seen,       \* needs that are met now; that were ever met
  started,
  ailing,          \* degraded by: of "stalled", "failed", "late"
  http,            \* the public listener: "down", "starting", "up", "ending"
  phase,           \* "none", "lame_duck", "draining", "aborting", "stopped"
  left,            \* until the deadline of the phase; before a drain, of the start
  age,             \* of the drain
  last, durable, folded,
  req,             \* "new", "sent", "admitted", "held", "answered", "unknown", "refused"
  after,           \* the frame that a held request waits for
  shell,           \* services that were not stopped yet
  spent

vars == <<met, seen, started, ailing, http, phase, left, age, last, durable, folded, req, after, shell, spent>>

Needs == {"key", "http", "admin"}
Parts == {"http", "index", "admin"}
Held  == {r \in Requests : req[r] = "held"}
Max(S) == CHOOSE n \in S : \A m \in S : m <= n

Rank(p) == CASE p = "none" -> 0 [] p = "lame_duck" -> 1 [] p = "draining" -> 2 [] p = "aborting" -> 3 [] p = "stopped" -> 4
Begun   == phase # "none"

-----------------------------------------------------------------------------
(* The decisions: what the mutants of MCDrain replace.                        *)

Closed        == Rank(phase) >= 2          \* a lame duck still serves
Complete(m)   == m = Needs                 \* all at one moment, once
Writes        == "stalled" \notin ailing /\ "failed" \notin ailing
Reads         == started /\ ~Closed        \* a failed journal stops no read
Readyz        == started /\ ~Begun /\ "http" \in met /\ Writes
Takes         == started /\ ~Closed /\ Writes
Finishes      == started /\ Rank(phase) < 3 /\ Writes  \* decides what was admitted, also while draining
Admits        == started /\ ~Closed
Outstanding   == durable < last /\ "failed" \notin ailing
Quiet         == http = "down" /\ Held = {} /\ ~Outstanding
GivenUp       == Held                      \* the requests whose outcome an abort makes unknown
Tells         == "unknown"                 \* the outcome of what may be lost
Lost(r)       == after[r] > durable        \* by a failed flush
MayBegin      == ~Begun                    \* a second request changes nothing
Restarts      == ~Begun                    \* no service is started while the node ends
MustEnd       == left = 0                  \* an abort does not wait beyond its time
MayGo(part)   == part = "admin" => shell = {"admin"}

-----------------------------------------------------------------------------
Init ==
  /\ met = {} /\ seen = {} /\ started = FALSE /\ ailing = {} /\ http = "starting"
  /\ phase = "none" /\ left = StartTime /\ age = 0
  /\ last = 0 /\ durable = 0 /\ folded = 0
  /\ req = [r \in Requests |-> "new"] /\ after = [r \in Requests |-> 0]
  /\ shell = Parts /\ spent = [faults |-> 0, signals |-> 0]

Spend(what, most) == spent[what] < most /\ spent' = [spent EXCEPT ![what] = @ + 1]

(* What the node needs.                                                       *)

Need(m) == /\ met' = m /\ seen' = seen \cup m
           /\ started' = (started \/ Complete(m))
           /\ ailing' = IF started' THEN ailing \ {"late"} ELSE ailing

Meet(n) ==
  /\ phase # "stopped" /\ n \notin met /\ n # "http" /\ Need(met \cup {n})
  /\ UNCHANGED <<http, phase, left, age, last, durable, folded, req, after, shell, spent>>

Up ==
  /\ http = "starting" /\ phase # "stopped" /\ http' = "up" /\ Need(met \cup {"http"})
  /\ UNCHANGED <<phase, left, age, last, durable, folded, req, after, shell, spent>>

Die == \* the public listener fails
  /\ http \in {"starting", "up"} /\ phase # "stopped" /\ Spend("faults", MaxFaults)
  /\ http' = "down" /\ Need(met \ {"http"})
  /\ UNCHANGED <<phase, left, age, last, durable, folded, req, after, shell>>

Restart ==
  /\ http = "down" /\ Restarts /\ phase # "stopped" /\ http' = "starting"
  /\ UNCHANGED <<met, seen, started, ailing, phase, left, age, last, durable, folded, req, after, shell, spent>>

Ended == \* it was stopped: an abort cuts its requests, a drain waits for them
  /\ http = "ending" /\ phase # "stopped"
  /\ phase = "aborting" \/ \A r \in Requests : req[r] \notin {"sent", "admitted", "held"}
  /\ http' = "down" /\ Need(met \ {"http"})
  /\ UNCHANGED <<phase, left, age, last, durable, folded, req, after, shell, spent>>

Late ==
  /\ ~started /\ ~Begun /\ left = 0 /\ "late" \notin ailing /\ ailing' = ailing \cup {"late"}
  /\ UNCHANGED <<met, seen, started, http, phase, left, age, last, durable, folded, req, after, shell, spent>>

(* Requests.                                                                  *)

Send(r) ==
  /\ req[r] = "new" /\ http = "up" /\ phase # "stopped" /\ req' = [req EXCEPT ![r] = "sent"]
  /\ UNCHANGED <<met, seen, started, ailing, http, phase, left, age, last, durable, folded, after, shell, spent>>

Admit(r) == \* it has a permit, and its body may take its time
  /\ req[r] = "sent" /\ Admits /\ phase # "stopped" /\ req' = [req EXCEPT ![r] = "admitted"]
  /\ UNCHANGED <<met, seen, started, ailing, http, phase, left, age, last, durable, folded, after, shell, spent>>

Enter(r) == \* decided and recorded, or rejected at once
  /\ req[r] \in {"sent", "admitted"} /\ phase # "stopped"
  /\ IF Takes \/ (req[r] = "admitted" /\ Finishes) THEN /\ last' = last + 1 /\ req' = [req EXCEPT ![r] = "held"] /\ after' = [after EXCEPT ![r] = last + 1]
     ELSE req' = [req EXCEPT ![r] = "refused"] /\ UNCHANGED <<last, after>>
  /\ UNCHANGED <<met, seen, started, ailing, http, phase, left, age, durable, folded, shell, spent>>

Tell(who, what) == req' = [r \in Requests |-> IF r \in who THEN what ELSE req[r]]

Sync == \* also of a flush that has timed out
  /\ durable < last /\ phase # "stopped" /\ \E n \in (durable + 1)..last : durable' = n
  /\ ailing' = ailing \ {"stalled"}
  /\ UNCHANGED <<met, seen, started, http, phase, left, age, last, folded, req, after, shell, spent>>

Fold == \* the requests that waited for it are answered
  /\ folded < durable /\ phase # "stopped" /\ folded' = durable
  /\ Tell({r \in Held : after[r] <= durable}, "answered")
  /\ UNCHANGED <<met, seen, started, ailing, http, phase, left, age, last, durable, after, shell, spent>>

Stall ==
  /\ Outstanding /\ "stalled" \notin ailing /\ phase # "stopped" /\ Spend("faults", MaxFaults)
  /\ ailing' = ailing \cup {"stalled"}
  /\ UNCHANGED <<met, seen, started, http, phase, left, age, last, durable, folded, req, after, shell>>

Fail ==
  /\ Outstanding /\ phase # "stopped" /\ Spend("faults", MaxFaults)
  /\ ailing' = ailing \cup {"failed"} /\ Tell({r \in Held : Lost(r)}, "unknown")
  /\ UNCHANGED <<met, seen, started, http, phase, left, age, last, durable, folded, after, shell>>

LosePatience(r) ==
  /\ r \in Held /\ phase # "stopped" /\ Spend("faults", MaxFaults) /\ Tell({r}, "unknown")
  /\ UNCHANGED <<met, seen, started, ailing, http, phase, left, age, last, durable, folded, after, shell>>

(* The end.                                                                   *)

Asked == IF http \in {"starting", "up"} THEN "ending" ELSE http

Aborts == /\ phase' = "aborting" /\ left' = AbortTime /\ http' = Asked /\ Tell(GivenUp, Tells)

Drain ==
  /\ MayBegin /\ phase # "stopped" /\ Spend("signals", MaxSignals)
  /\ phase' = "lame_duck" /\ left' = LameTime
  /\ UNCHANGED <<met, seen, started, ailing, http, age, last, durable, folded, req, after, shell>>

Abort ==
  /\ Rank(phase) < 3 /\ Spend("signals", MaxSignals) /\ Aborts
  /\ UNCHANGED <<met, seen, started, ailing, age, last, durable, folded, after, shell>>

Close ==
  /\ phase = "lame_duck" /\ left = 0
  /\ phase' = "draining" /\ left' = DrainTime /\ http' = Asked
  /\ UNCHANGED <<met, seen, started, ailing, age, last, durable, folded, req, after, shell, spent>>

GiveUp ==
  /\ phase = "draining" /\ ~Quiet /\ left = 0 /\ Aborts
  /\ UNCHANGED <<met, seen, started, ailing, age, last, durable, folded, after, shell, spent>>

Stop ==
  /\ \/ phase = "draining" /\ Quiet
     \/ phase = "aborting" /\ (Quiet \/ MustEnd)
  /\ phase' = "stopped" /\ left' = 0
  /\ UNCHANGED <<met, seen, started, ailing, http, age, last, durable, folded, req, after, shell, spent>>

Go(part) ==
  /\ phase = "stopped" /\ part \in shell /\ MayGo(part) /\ shell' = shell \ {part}
  /\ UNCHANGED <<met, seen, started, ailing, http, phase, left, age, last, durable, folded, req, after, spent>>

Waiting == IF Begun THEN phase # "stopped" ELSE ~started
Pass == \* never beyond a deadline
  /\ Waiting /\ left > 0 /\ left' = left - 1 /\ age' = IF Begun THEN age + 1 ELSE 0
  /\ UNCHANGED <<met, seen, started, ailing, http, phase, last, durable, folded, req, after, shell, spent>>

Done == phase = "stopped" /\ shell = {} /\ UNCHANGED vars

Ending == Pass \/ Close \/ GiveUp \/ Stop \/ \E p \in Parts : Go(p)
Next == \/ Ending \/ Up \/ Die \/ Restart \/ Ended \/ Late \/ Sync \/ Fold \/ Stall \/ Fail \/ Drain \/ Abort \/ Done
        \/ \E n \in Needs : Meet(n)
        \/ \E r \in Requests : Send(r) \/ Admit(r) \/ Enter(r) \/ LosePatience(r)

Spec     == Init /\ [][Next]_vars
LiveSpec == Spec /\ WF_vars(Ending) \* no other action is assumed to happen

-----------------------------------------------------------------------------
(* Invariants and properties.                                                 *)

\* R1. Before every need was met once, no request is served and the node is not ready.
ReadyOnce == Readyz \/ Reads \/ (\E r \in Requests : req[r] = "held") => seen = Needs

\* The node is not ready if it ends, cannot be reached or cannot write.
ReadyHonest == Readyz => phase = "none" /\ "http" \in met /\ ailing \cap {"stalled", "failed"} = {}

\* R2. A failed or stalled journal accepts no write.
WritesNeedJournal == [][last' > last => ailing \cap {"stalled", "failed"} = {}]_vars

\* Reads are served until the node accepts no requests any more.
ReadsGoOn == started /\ phase \in {"none", "lame_duck"} => Reads

\* D2. No request is admitted from draining on, and none is accepted that was not admitted; from aborting on, none is.
NothingNew == [][\A r \in Requests :
  /\ Rank(phase) >= 2 /\ req'[r] = "admitted" => req[r] = "admitted"
  /\ Rank(phase) >= 2 /\ req'[r] = "held" /\ req[r] # "held" => req[r] = "admitted" /\ Rank(phase) = 2
  /\ Rank(phase) >= 2 /\ last' > last => \E q \in Requests : req[q] = "admitted" /\ req'[q] = "held"]_vars

\* A drain rejects nothing that was admitted, while the node can write.
AdmittedFinish == [][\A r \in Requests : phase \in {"lame_duck", "draining"} /\ req[r] = "admitted" /\ req'[r] = "refused" => ~Writes]_vars

\* Every accepted request gets its outcome, or an unknown one, before the node stops.
AllHear == phase = "stopped" => Held = {}

\* An abort is immediate: no request waits through it.
AbortIsNow == phase = "aborting" => Held = {}

\* An outcome that is returned is durable and folded.
TellsFolded == \A r \in Requests : req[r] = "answered" => after[r] <= folded

\* No request waits for a frame that a failed flush may have lost.
NobodyWaitsForLost == \A r \in Held : "failed" \in ailing => after[r] <= durable

\* A drain that was not aborted leaves nothing that is only in memory.
DrainFinishes == [][phase = "draining" /\ phase' = "stopped" => durable = last \/ "failed" \in ailing]_vars

\* D1. Phases only advance.
PhasesAdvance == [][Rank(phase') >= Rank(phase)]_vars

\* D1. Whatever hangs, the end takes at most its time limits.
InTime == age <= LameTime + DrainTime + AbortTime

\* No service is started while the node ends.
NoRestart == [][Begun /\ http' = "starting" => http = "starting"]_vars

\* The end is observable: the admin listener stops last.
AdminLast == "admin" \notin shell => shell = {}

\* Every drain ends.
DrainEnds == Begun ~> phase = "stopped" /\ shell = {}
=============================================================================
