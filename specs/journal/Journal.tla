------------------------------- MODULE Journal -------------------------------
(* The journal of one node on one disk: which frames may be acknowledged, and *)
(* what a crash can remove.                                                   *)
(*                                                                            *)
(*   Emit ──► Write ──► Sync ──► Fold ──► Tell        batch k+1 grows while   *)
(*                                                    batch k is in Sync      *)
(*   Recover ──► MakeSync ──► MakeRename ──► MakeDirSync ──► up               *)
(*                                                                            *)
(* A segment is a file: a start, then batches, each a header and its frames.  *)
(* Start and header contain the mark: the frames that were known to be        *)
(* durable when they were written. A segment gets its name when its beginning *)
(* is on disk, and it ends where the next one begins; no file is truncated.   *)
(*                                                                            *)
(* The rules of the disk: a power loss keeps any part of the unsynced data,   *)
(* and of the unsynced names. After a failed sync, the disk may return pages  *)
(* that it has not stored, until the power is lost. Synced data stays; only   *)
(* Rot breaks this rule.                                                      *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  MaxFrames,   \* frames of requests; the node adds heartbeat frames
  MaxCrashes,  \* kills and power losses together
  MaxFails,    \* writes and syncs that fail or take too long
  MaxRolls,    \* segments begun while up
  MaxRots      \* synced items that the disk loses

VARIABLES
  log,      \* the frames of this process and those it recovered: log[n] is frame n, a unique number
  written,  \* frames ≤ written were written, or were recovered and made durable again
  durable,  \* frames ≤ durable are known durable
  folded,   \* frames ≤ folded are in the read model
  failed,   \* a failed flush: "no"; "slow": it took too long; "broken": the disk returned an error
  idle,     \* the last frame is a heartbeat
  phase,    \* of the process: "down", "boot", "up", "damaged"
  making,   \* the next step of a new segment: "none", "sync", "rename", "dirsync"
  disk,     \* the files in the order of their names: [name, items]; a file without a name is last
  told,     \* the frames that were acknowledged
  was,      \* the frames that the last running process had emitted, and its durable mark
  spent     \* how often each bounded action happened, and how many frames were made

process == <<log, written, durable, folded, failed, idle, phase, making>>
vars    == <<log, written, durable, folded, failed, idle, phase, making, disk, told, was, spent>>

Prefix(a, b) == Len(a) <= Len(b) /\ SubSeq(b, 1, Len(a)) = a
Max(S)       == CHOOSE n \in S : \A m \in S : m <= n

-----------------------------------------------------------------------------
(* Files. An item is on "disk"; "dirty": the next sync writes it; in the      *)
(* "cache" alone: a failed sync marked it as clean; or Gone.                  *)
(* A name is "none"; "seen": it is listed, but not synced; or "kept": synced. *)
(* A file contains the length of a mark; the model also keeps its frames.     *)

Start(first, mark) == [k |-> "start", v |-> first, mark |-> mark, on |-> "dirty"]
Header(mark)       == [k |-> "batch", v |-> 0, mark |-> mark, on |-> "dirty"]
Frame(id)          == [k |-> "frame", v |-> id, mark |-> <<>>, on |-> "dirty"]
Gone               == [k |-> "gone", v |-> 0, mark |-> <<>>, on |-> "gone"]

Batch(mark, l, from) == IF from > Len(l) THEN <<>>
                        ELSE <<Header(mark)>> \o [n \in 1..(Len(l) - from + 1) |-> Frame(l[from + n - 1])]
Fresh(items)  == [name |-> "none", items |-> items]
Last          == Len(disk)
Synced(items) == [i \in DOMAIN items |-> IF items[i].on = "dirty" THEN [items[i] EXCEPT !.on = "disk"] ELSE items[i]]
Named(d)      == SelectSeq(d, LAMBDA f : f.name # "none")
Kept(d)       == [f \in DOMAIN d |-> IF d[f].name = "seen" THEN [d[f] EXCEPT !.name = "kept"] ELSE d[f]]
Marks(items)  == {items[i].mark : i \in DOMAIN items}
AllMarks(d)   == UNION {Marks(d[f].items) : f \in DOMAIN d}

(* Reading: segment by segment, each up to the first frame of the next one.   *)
(* r is the result: the frames, the length of the longest mark, and whether   *)
(* frames are missing before a segment.                                       *)

Whole(f)   == f.items # <<>> /\ f.items[1].k = "start"
End(d, n)  == IF n < Len(d) /\ Whole(d[n + 1]) THEN d[n + 1].items[1].v ELSE 99

MarksBehind(items) == Marks(items) \* a decision: marks count even if frames before them are lost

Longest(r, marks) == [r EXCEPT !.mark = Max({@} \cup {Len(m) : m \in marks})]

RECURSIVE Items(_, _, _)
Items(items, end, r) ==
  IF items = <<>> \/ Len(r.log) + 1 >= end THEN r
  ELSE LET i == Head(items) IN
       CASE i.k = "frame" -> Items(Tail(items), end, [r EXCEPT !.log = Append(@, i.v)])
         [] i.k = "batch" -> Items(Tail(items), end, Longest(r, {i.mark}))
         [] OTHER         -> Longest(r, MarksBehind(items))

RECURSIVE Segments(_, _, _)
Segments(d, n, r) ==
  IF n > Len(d) \/ r.gap THEN r
  ELSE IF ~Whole(d[n]) \/ d[n].items[1].v # Len(r.log) + 1 THEN [r EXCEPT !.gap = TRUE]
  ELSE Segments(d, n + 1, Items(Tail(d[n].items), End(d, n), Longest(r, {d[n].items[1].mark})))

Read(d) == Segments(d, 1, [log |-> <<>>, mark |-> 0, gap |-> FALSE])

(* What a power loss leaves: the lucky items, and any of the names that are   *)
(* seen. An incomplete item at the end of a file is ignored by the reader.    *)

RECURSIVE Trim(_)
Trim(items) == IF items # <<>> /\ items[Len(items)] = Gone THEN Trim(SubSeq(items, 1, Len(items) - 1)) ELSE items

Dirty(d) == UNION {{<<f, i>> : i \in {j \in DOMAIN d[f].items : d[f].items[j].on = "dirty"}} : f \in DOMAIN d}
Seen(d)  == {f \in DOMAIN d : d[f].name = "seen"}

After(d, lucky, names) ==
  LET item(f, i) == CASE d[f].items[i].on = "disk" -> d[f].items[i]
                      [] <<f, i>> \in lucky        -> [d[f].items[i] EXCEPT !.on = "disk"]
                      [] OTHER                     -> Gone
  IN Named([f \in DOMAIN d |-> [name  |-> IF d[f].name = "kept" \/ f \in names THEN "kept" ELSE "none",
                                items |-> Trim([i \in DOMAIN d[f].items |-> item(f, i)])]])
Worst(d) == After(d, {}, {})

(* Items that are never read again, because a later segment begins before     *)
(* them and has a durable name, are removed: this keeps the model small.      *)
RECURSIVE Upto(_, _, _)
Upto(items, next, end) ==
  IF items = <<>> \/ next >= end THEN <<>>
  ELSE <<Head(items)>> \o Upto(Tail(items), IF Head(items).k = "frame" THEN next + 1 ELSE next, end)
Closed(d) == [f \in DOMAIN d |-> [d[f] EXCEPT !.items =
               IF Whole(d[f]) THEN <<Head(@)>> \o Upto(Tail(@), Head(@).v, End(d, f)) ELSE @]]

-----------------------------------------------------------------------------
(* Decisions of the design. The mutants of MCJournal replace them.            *)

Claim       == durable            \* the mark of a batch: the frames that are durable before it
MayFold     == durable            \* the read model folds durable frames only
MayTell     == folded             \* an answer waits until every frame that it depends on is folded
AfterFail   == "broken"           \* after a failed flush this process writes nothing more
Believed    == durable            \* a failed flush makes nothing durable
Damaged(r)  == r.gap \/ Len(r.log) < r.mark \* a tail is cut only if no mark proves that it was durable
Again(r)    == r.mark + 1         \* frames from here on have no proof of durability: they are written again
Listed(d)   == Kept(d)            \* recovery syncs the directory before it uses the names
AfterMake   == "sync"             \* a segment is synced before it gets its name
AfterRename == "dirsync"          \* and is used after its name is synced

-----------------------------------------------------------------------------
Nothing == [log |-> <<>>, durable |-> 0]

Init ==
  /\ log = <<>> /\ written = 0 /\ durable = 0 /\ folded = 0 /\ failed = "no" /\ idle = TRUE
  /\ phase = "down" /\ making = "none" /\ disk = <<>> /\ told = <<>> /\ was = Nothing
  /\ spent = [frames |-> 0, crashes |-> 0, fails |-> 0, rolls |-> 0, rots |-> 0, made |-> 0]

Spend(what, most) == spent[what] < most /\ spent' = [spent EXCEPT ![what] = @ + 1]
Writes == phase = "up" /\ failed = "no"

(* The node. *)

Emit ==
  /\ Writes /\ spent.frames < MaxFrames
  /\ log' = Append(log, spent.made + 1) /\ idle' = FALSE
  /\ spent' = [spent EXCEPT !.frames = @ + 1, !.made = @ + 1]
  /\ UNCHANGED <<written, durable, folded, failed, phase, making, disk, told, was>>

Vouch == \* after a burst, a heartbeat frame is written; its header proves that the last batch is durable
  /\ Writes /\ ~idle /\ durable = Len(log)
  /\ log' = Append(log, spent.made + 1) /\ idle' = TRUE
  /\ spent' = [spent EXCEPT !.made = @ + 1]
  /\ UNCHANGED <<written, durable, folded, failed, phase, making, disk, told, was>>

TooSlow == \* the node treats a flush as failed; the writer continues
  /\ Writes /\ durable < Len(log) /\ Spend("fails", MaxFails)
  /\ failed' = "slow"
  /\ UNCHANGED <<log, written, durable, folded, idle, phase, making, disk, told, was>>

Tell ==
  /\ phase = "up" /\ Len(told) < MayTell
  /\ told' = SubSeq(log, 1, MayTell)
  /\ UNCHANGED <<process, disk, was, spent>>

(* The writer. It writes and syncs one batch at a time.                       *)

Next1      == Batch(SubSeq(log, 1, Claim), log, written + 1)
Free       == phase = "up" /\ failed # "broken" /\ making = "none" /\ written = durable /\ written < Len(log)
Grow(more) == disk' = [disk EXCEPT ![Last].items = @ \o more]

Write ==
  /\ Free
  /\ Grow(Next1) /\ written' = Len(log)
  /\ UNCHANGED <<log, durable, folded, failed, idle, phase, making, told, was, spent>>

FailWrite == \* a part of the batch is in the file
  /\ Free /\ Spend("fails", MaxFails)
  /\ \E n \in 0..(Len(Next1) - 1) : Grow(SubSeq(Next1, 1, n))
  /\ failed' = "broken"
  /\ UNCHANGED <<log, written, durable, folded, idle, phase, making, told, was>>

InSync == phase = "up" /\ failed # "broken" /\ making = "none" /\ durable < written

Sync ==
  /\ InSync
  /\ disk' = [disk EXCEPT ![Last].items = Synced(@)] /\ durable' = written
  /\ UNCHANGED <<log, written, folded, failed, idle, phase, making, told, was, spent>>

FailSync == \* any of the pages may count as clean, although they are not on disk
  /\ InSync /\ Spend("fails", MaxFails)
  /\ LET items == disk[Last].items IN
     \E lost \in SUBSET {i \in DOMAIN items : items[i].on = "dirty"} :
       disk' = [disk EXCEPT ![Last].items =
                  Synced([i \in DOMAIN items |-> IF i \in lost THEN [items[i] EXCEPT !.on = "cache"] ELSE items[i]])]
  /\ failed' = AfterFail /\ durable' = Believed
  /\ UNCHANGED <<log, written, folded, idle, phase, making, told, was>>

Roll ==
  /\ Free /\ Spend("rolls", MaxRolls)
  /\ disk' = Append(disk, Fresh(<<Start(written + 1, SubSeq(log, 1, written))>>)) /\ making' = AfterMake
  /\ UNCHANGED <<log, written, durable, folded, failed, idle, phase, told, was>>

(* The read model.                                                            *)

Fold ==
  /\ phase = "up" /\ folded < MayFold
  /\ folded' = folded + 1
  /\ UNCHANGED <<log, written, durable, failed, idle, phase, making, disk, told, was, spent>>

(* A new segment: at a roll, and at the end of recovery.                      *)

MakeSync ==
  /\ making = "sync"
  /\ disk' = [disk EXCEPT ![Last].items = Synced(@)] /\ making' = "rename"
  /\ UNCHANGED <<log, written, durable, folded, failed, idle, phase, told, was, spent>>

Use == \* the recovered frames are durable from now on
  IF phase = "boot" THEN phase' = "up" /\ was' = Nothing /\ written' = Len(log) /\ durable' = Len(log) /\ folded' = Len(log)
                    ELSE UNCHANGED <<phase, was, written, durable, folded>>

MakeRename ==
  /\ making = "rename"
  /\ disk' = [disk EXCEPT ![Last].name = "seen"] /\ making' = AfterRename
  /\ IF AfterRename = "none" THEN Use ELSE UNCHANGED <<phase, was, written, durable, folded>>
  /\ UNCHANGED <<log, failed, idle, told, spent>>

MakeDirSync ==
  /\ making = "dirsync"
  /\ disk' = Closed(Kept(disk)) /\ making' = "none" /\ Use
  /\ UNCHANGED <<log, failed, idle, told, spent>>

Ends == /\ phase' = "down" /\ making' = "none" /\ failed' = "no" /\ idle' = TRUE
        /\ log' = <<>> /\ written' = 0 /\ durable' = 0 /\ folded' = 0

FailMake ==
  /\ making # "none" /\ Spend("fails", MaxFails)
  /\ disk' = Named(disk)
  /\ IF phase = "boot" THEN Ends
     ELSE failed' = "broken" /\ making' = "none" /\ UNCHANGED <<log, written, durable, folded, idle, phase>>
  /\ UNCHANGED <<told, was>>

(* The end of a process. After a kill every page can still be read.           *)

Remembers == was' = IF phase = "up" THEN [log |-> log, durable |-> durable] ELSE was
Dies      == disk' = Named(disk) /\ Remembers /\ Ends /\ UNCHANGED told

Restart == phase = "up" /\ failed # "no" /\ Dies /\ UNCHANGED spent
Kill    == phase \in {"boot", "up"} /\ failed = "no" /\ Spend("crashes", MaxCrashes) /\ Dies
Power   ==
  /\ phase \in {"boot", "up"} /\ Spend("crashes", MaxCrashes)
  /\ \E lucky \in SUBSET Dirty(disk), names \in SUBSET Seen(disk) :
       disk' = After(disk, lucky, names)
  /\ Remembers /\ Ends /\ UNCHANGED told

Rot == \* against the rules of the disk
  /\ phase = "down" /\ Spend("rots", MaxRots)
  /\ \E f \in DOMAIN disk : \E i \in DOMAIN disk[f].items :
       disk[f].items[i] # Gone /\ disk' = [disk EXCEPT ![f].items = Trim([@ EXCEPT ![i] = Gone])]
  /\ UNCHANGED <<process, told, was>>

Recover ==
  /\ phase = "down"
  /\ LET d == Listed(disk)  r == Read(d) IN
     IF Damaged(r) THEN phase' = "damaged" /\ disk' = d /\ UNCHANGED <<log, making>>
     ELSE /\ phase' = "boot" /\ log' = r.log /\ making' = AfterMake
          /\ disk' = Append(d, Fresh(<<Start(Again(r), r.log)>> \o Batch(SubSeq(r.log, 1, Again(r) - 1), r.log, Again(r))))
  /\ UNCHANGED <<written, durable, folded, failed, idle, told, was, spent>>

Settled == Writes /\ told = log /\ idle
Done    == (phase = "damaged" \/ (Settled /\ spent.frames = MaxFrames)) /\ UNCHANGED vars

Progress == Recover \/ MakeSync \/ MakeRename \/ MakeDirSync \/ Vouch \/ Write \/ Sync \/ Fold \/ Tell \/ Restart
Faults   == TooSlow \/ FailWrite \/ FailSync \/ FailMake \/ Kill \/ Power \/ Rot
Next     == Progress \/ Emit \/ Roll \/ Faults \/ Done

Spec     == Init /\ [][Next]_vars
LiveSpec == Spec /\ WF_vars(Progress)

-----------------------------------------------------------------------------
(* Invariants, as long as the disk keeps its rules.                           *)

\* Every acknowledged frame survives a power loss at this moment.
TellsDurable == LET r == Read(Worst(disk)) IN ~Damaged(r) /\ Prefix(told, r.log)

\* Every acknowledged frame is there after each recovery.
NoAckLost == phase \in {"boot", "up"} => Prefix(told, log)

\* Recovery finds a prefix of the emitted frames, with at least all durable ones.
RecoversPrefix == phase = "boot" => Prefix(log, was.log) /\ Len(log) >= was.durable

\* A power loss cannot remove a frame that the read model has.
FollowerDurable == phase = "up" => Prefix(SubSeq(log, 1, folded), Read(Worst(disk)).log)

\* Every frame that a mark claims is on disk. A file with an unsynced name can be lost with its marks.
KnownSound == LET d == Kept(Named(disk)) IN \A m \in AllMarks(d) : Prefix(m, Read(Worst(d)).log)

\* Damage is reported only if the disk broke its rules.
NoFalseDamage == phase # "damaged"

\* Invariant N1 of the node, with the position of the writer.
Ordered == phase = "up" => folded <= durable /\ durable <= written /\ written <= Len(log)

\* The read model has every acknowledged frame.
ReadYourWrites == phase = "up" => Len(told) <= folded

\* If the node is idle, a mark proves that all frames but the last, a heartbeat, are durable.
QuietIsVouched == Writes /\ idle /\ durable = Len(log) =>
                    \E m \in AllMarks(disk) : Prefix(SubSeq(log, 1, Len(log) - 1), m)

(* An invariant on any disk: an acknowledged frame that an existing mark      *)
(* covers is served, or its damage is reported.                               *)
Both(a, b)   == LET n == Max({i \in 0..Len(a) : i <= Len(b) /\ SubSeq(a, 1, i) = SubSeq(b, 1, i)}) IN SubSeq(a, 1, n)
NoSilentLoss == phase \in {"boot", "up"} => \A m \in AllMarks(disk) : Prefix(Both(told, m), log)

\* An acknowledged frame is never replaced.
ToldGrows == [][Prefix(told, told')]_told

\* After the last fault, the node runs, accepts writes, and acknowledges all frames.
Settles == <>[]Settled
=============================================================================
