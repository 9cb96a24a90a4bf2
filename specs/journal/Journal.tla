------------------------------- MODULE Journal -------------------------------
(* The journal of one node on one disk: what may be told, and what a crash    *)
(* may take.                                                                  *)
(*                                                                            *)
(*   Emit ──► Write ──► Sync ──► Fold ──► Tell        batch k+1 grows while   *)
(*                                                    batch k is in Sync      *)
(*   Recover ──► MakeSync ──► MakeRename ──► MakeDirSync ──► up               *)
(*                                                                            *)
(* A segment is a file: a start, then batches, each a header and its frames.  *)
(* Start and header carry the mark: the frames known durable when they were   *)
(* written. A segment gets its name when what it begins with is on disk, and  *)
(* it ends where the next one begins; nothing is truncated.                   *)
(*                                                                            *)
(* The disk does what the law lets it. A power loss keeps any part of what    *)
(* was not synced, and of the names that were not synced. After a failed sync *)
(* it goes on showing pages that it does not have, until the power goes. What *)
(* was synced stays; only Rot breaks that.                                    *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  MaxFrames,   \* frames that somebody asks for; the node adds time frames
  MaxCrashes,  \* kills and power losses, together
  MaxFails,    \* writes and syncs that fail or take too long
  MaxRolls,    \* segments begun while up
  MaxRots      \* items that the disk loses against the law

VARIABLES
  log,      \* the frames of this life and those it recovered: log[n] is frame n, a number used once
  written,  \* frames ≤ written were written, or read back and made durable again
  durable,  \* frames ≤ durable are known durable
  folded,   \* the follower's
  failed,   \* of a flush: "no"; "slow", the node gave it up; "broken", the disk did
  idle,     \* the last frame holds nothing but the time
  phase,    \* of the process: "down", "boot", "up", "damaged"
  making,   \* what the making of a segment does next: "none", "sync", "rename", "dirsync"
  disk,     \* the files in order of their names: [name, items]; a nameless one is last
  told,     \* the frames that somebody has heard of
  was,      \* what the last life that was up had emitted, and knew durable
  spent     \* how often each bounded thing happened, and how many frames were made

process == <<log, written, durable, folded, failed, idle, phase, making>>
vars    == <<log, written, durable, folded, failed, idle, phase, making, disk, told, was, spent>>

Prefix(a, b) == Len(a) <= Len(b) /\ SubSeq(b, 1, Len(a)) = a
Max(S)       == CHOOSE n \in S : \A m \in S : m <= n

-----------------------------------------------------------------------------
(* Files. An item is on "disk"; or "dirty", which a sync will write; or in    *)
(* the "cache" alone, which a failed sync took for clean; or it is Gone.      *)
(* A name is "none" yet; or "seen" by who lists the directory; or "kept".     *)
(* Of a mark the file has the length; which frames it means, only we know.    *)

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

(* Reading: segment by segment, each up to the frame that the next begins     *)
(* with. r is what was read: the frames, the length of the longest mark, and  *)
(* whether something is missing before a segment.                             *)

Whole(f)   == f.items # <<>> /\ f.items[1].k = "start"
End(d, n)  == IF n < Len(d) /\ Whole(d[n + 1]) THEN d[n + 1].items[1].v ELSE 99

MarksBehind(items) == Marks(items) \* a decision: they count, though the frames before them are gone

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

(* What the power leaves: the lucky items, and any of the names that are seen. *)
(* Half an item, or none, at the end of a file is nothing to who reads.       *)

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

(* What nobody reads any more, because a later segment begins before it and   *)
(* has its name for ever, is left out of the disk: it keeps the model small.  *)
RECURSIVE Upto(_, _, _)
Upto(items, next, end) ==
  IF items = <<>> \/ next >= end THEN <<>>
  ELSE <<Head(items)>> \o Upto(Tail(items), IF Head(items).k = "frame" THEN next + 1 ELSE next, end)
Closed(d) == [f \in DOMAIN d |-> [d[f] EXCEPT !.items =
               IF Whole(d[f]) THEN <<Head(@)>> \o Upto(Tail(@), Head(@).v, End(d, f)) ELSE @]]

-----------------------------------------------------------------------------
(* The decisions: what the mutants of MCJournal replace.                      *)

Claim       == durable            \* of a batch's mark: what is durable before it
MayFold     == durable            \* the follower folds durable frames only
MayTell     == folded             \* an answer waits until all that it tells of is folded
AfterFail   == "broken"           \* after a failed flush this life writes no more
Believed    == durable            \* what a failed flush made durable: nothing
Damaged(r)  == r.gap \/ Len(r.log) < r.mark \* a tail is given up only if no mark vouches for it
Again(r)    == r.mark + 1         \* from here on nothing vouches for what was read: it is written anew
Listed(d)   == Kept(d)            \* recovery syncs the names before it believes them
AfterMake   == "sync"             \* a segment is synced before it gets its name
AfterRename == "dirsync"          \* and is used when its name is synced

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

Vouch == \* in the silence after a burst, a frame whose header vouches for the last batch
  /\ Writes /\ ~idle /\ durable = Len(log)
  /\ log' = Append(log, spent.made + 1) /\ idle' = TRUE
  /\ spent' = [spent EXCEPT !.made = @ + 1]
  /\ UNCHANGED <<written, durable, folded, failed, phase, making, disk, told, was>>

TooSlow == \* the node gives a flush up; the sealer does not know
  /\ Writes /\ durable < Len(log) /\ Spend("fails", MaxFails)
  /\ failed' = "slow"
  /\ UNCHANGED <<log, written, durable, folded, idle, phase, making, disk, told, was>>

Tell ==
  /\ phase = "up" /\ Len(told) < MayTell
  /\ told' = SubSeq(log, 1, MayTell)
  /\ UNCHANGED <<process, disk, was, spent>>

(* The sealer. One batch is out at a time. *)

Next1      == Batch(SubSeq(log, 1, Claim), log, written + 1)
Free       == phase = "up" /\ failed # "broken" /\ making = "none" /\ written = durable /\ written < Len(log)
Grow(more) == disk' = [disk EXCEPT ![Last].items = @ \o more]

Write ==
  /\ Free
  /\ Grow(Next1) /\ written' = Len(log)
  /\ UNCHANGED <<log, durable, folded, failed, idle, phase, making, told, was, spent>>

FailWrite == \* a part of it is there
  /\ Free /\ Spend("fails", MaxFails)
  /\ \E n \in 0..(Len(Next1) - 1) : Grow(SubSeq(Next1, 1, n))
  /\ failed' = "broken"
  /\ UNCHANGED <<log, written, durable, folded, idle, phase, making, told, was>>

InSync == phase = "up" /\ failed # "broken" /\ making = "none" /\ durable < written

Sync ==
  /\ InSync
  /\ disk' = [disk EXCEPT ![Last].items = Synced(@)] /\ durable' = written
  /\ UNCHANGED <<log, written, folded, failed, idle, phase, making, told, was, spent>>

FailSync == \* any of the pages are taken for clean, though the disk has them not
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

(* The follower. *)

Fold ==
  /\ phase = "up" /\ folded < MayFold
  /\ folded' = folded + 1
  /\ UNCHANGED <<log, written, durable, failed, idle, phase, making, disk, told, was, spent>>

(* Making a segment: at a roll, and at the end of a recovery. *)

MakeSync ==
  /\ making = "sync"
  /\ disk' = [disk EXCEPT ![Last].items = Synced(@)] /\ making' = "rename"
  /\ UNCHANGED <<log, written, durable, folded, failed, idle, phase, told, was, spent>>

Use == \* what was read back is durable from now on
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

(* The ends of a process. After a kill every page is still readable. *)

Remembers == was' = IF phase = "up" THEN [log |-> log, durable |-> durable] ELSE was
Dies      == disk' = Named(disk) /\ Remembers /\ Ends /\ UNCHANGED told

Restart == phase = "up" /\ failed # "no" /\ Dies /\ UNCHANGED spent
Kill    == phase \in {"boot", "up"} /\ failed = "no" /\ Spend("crashes", MaxCrashes) /\ Dies
Power   ==
  /\ phase \in {"boot", "up"} /\ Spend("crashes", MaxCrashes)
  /\ \E lucky \in SUBSET Dirty(disk), names \in SUBSET Seen(disk) :
       disk' = After(disk, lucky, names)
  /\ Remembers /\ Ends /\ UNCHANGED told

Rot == \* against the law
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
(* What holds as long as the disk keeps the law.                              *)

\* What was told is on the disk, whatever a power loss at this very moment takes.
TellsDurable == LET r == Read(Worst(disk)) IN ~Damaged(r) /\ Prefix(told, r.log)

\* What was told is there after every recovery.
NoAckLost == phase \in {"boot", "up"} => Prefix(told, log)

\* A recovery finds what was emitted, in its order: all that was known durable, and perhaps more.
RecoversPrefix == phase = "boot" => Prefix(log, was.log) /\ Len(log) >= was.durable

\* The follower has nothing that a power loss could take.
FollowerDurable == phase = "up" => Prefix(SubSeq(log, 1, folded), Read(Worst(disk)).log)

\* No mark claims a frame that is not on disk. A name that is only seen takes its marks with it.
KnownSound == LET d == Kept(Named(disk)) IN \A m \in AllMarks(d) : Prefix(m, Read(Worst(d)).log)

\* Damage is never said of a disk that kept the law.
NoFalseDamage == phase # "damaged"

\* N1 of the node, and what the sealer adds to it.
Ordered == phase = "up" => folded <= durable /\ durable <= written /\ written <= Len(log)

\* Who was told, and asks the follower, is shown it.
ReadYourWrites == phase = "up" => Len(told) <= folded

\* In silence a mark vouches for all but the last frame, which tells of nothing.
QuietIsVouched == Writes /\ idle /\ durable = Len(log) =>
                    \E m \in AllMarks(disk) : Prefix(SubSeq(log, 1, Len(log) - 1), m)

(* What holds on any disk: a frame that was told, and that a mark which is    *)
(* still there vouches for, is served, or its damage is said.                 *)
Both(a, b)   == LET n == Max({i \in 0..Len(a) : i <= Len(b) /\ SubSeq(a, 1, i) = SubSeq(b, 1, i)}) IN SubSeq(a, 1, n)
NoSilentLoss == phase \in {"boot", "up"} => \A m \in AllMarks(disk) : Prefix(Both(told, m), log)

\* What was told is never told otherwise.
ToldGrows == [][Prefix(told, told')]_told

\* When no more faults come, the node is up, takes writes, and all has been told.
Settles == <>[]Settled
=============================================================================
