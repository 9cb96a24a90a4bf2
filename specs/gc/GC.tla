----------------------------------- MODULE GC -----------------------------------
(* The files of objects, and the collector that removes those that no row names. *)
(*                                                                              *)
(*   Begin ──► Store ──► Decide ──► Sync ──► Apply ──► End                        *)
(*   upload    file      row        durable  read model  reply                   *)
(*                                                                              *)
(* The collector lists the files, asks for each whether its upload is in         *)
(* progress, and then whether the read model has a row that names it. Nothing     *)
(* waits for it. A file has the number of its upload, which is never used again.  *)
(* A crash takes the uploads and what is not durable.                             *)
EXTENDS Integers, Sequences

CONSTANTS
  Contents,      \* addresses
  MaxUploads, MaxDeletes, MaxCrashes

VARIABLES
  next,          \* the number of the newest upload
  uploads,       \* [number -> [content, step, at]] of those in progress; step: "new", "stored", "decided", "refused"
  files,         \* numbers of files on the disk
  named,         \* number -> content, of every upload ever
  log,           \* the rows after each record: content -> number of its file, or 0
  durable, applied, \* records that are on disk, and in the read model
  todo, asked,   \* of a collection: files to look at; the file whose upload was not in progress, or 0
  newest,        \* the number of the newest upload when it began
  spent          \* deletes and crashes

vars == <<next, uploads, files, named, log, durable, applied, todo, asked, newest, spent>>

-----------------------------------------------------------------------------
(* The decisions: what the mutants of MCGC replace.                           *)

InProgress(f)  == f \in DOMAIN uploads
HasRow(f)      == log[applied][named[f]] = f
MayEnd(f)      == applied >= uploads[f].at         \* the reply comes after the row is applied
AsksUpload(f)  == ~InProgress(f)                  \* first,
AsksRow(f)     == ~HasRow(f)                      \* then
Number         == next + 1                        \* never used again
StoresFirst(f) == uploads[f].step = "stored"      \* the file is durable before its row is decided

-----------------------------------------------------------------------------
Rows == log[Len(log)]
Without(m, k) == [x \in DOMAIN m \ {k} |-> m[x]]
With(m, k, v) == [x \in DOMAIN m \cup {k} |-> IF x = k THEN v ELSE m[x]]

Init ==
  /\ next = 0 /\ uploads = <<>> /\ files = {} /\ named = <<>>
  /\ log = <<[c \in Contents |-> 0]>> /\ durable = 1 /\ applied = 1
  /\ todo = {} /\ asked = 0 /\ newest = 0 /\ spent = [deletes |-> 0, crashes |-> 0]

Begin(c) ==
  /\ next < MaxUploads
  /\ next' = Number
  /\ uploads' = With(uploads, next', [content |-> c, step |-> "new", at |-> 0])
  /\ named' = With(named, next', c)
  /\ UNCHANGED <<files, log, durable, applied, todo, asked, newest, spent>>

\* The file is durable under its address.
Store(f) ==
  /\ uploads[f].step = "new"
  /\ uploads' = [uploads EXCEPT ![f].step = "stored"]
  /\ files' = files \cup {f}
  /\ UNCHANGED <<next, named, log, durable, applied, todo, asked, newest, spent>>

\* A row that is there keeps its file: the new one is garbage.
Decide(f) ==
  /\ StoresFirst(f)
  /\ log' = Append(log, [Rows EXCEPT ![uploads[f].content] = IF @ = 0 THEN f ELSE @])
  /\ uploads' = [uploads EXCEPT ![f].step = "decided", ![f].at = Len(log')]
  /\ UNCHANGED <<next, files, named, durable, applied, todo, asked, newest, spent>>

Refuse(f) ==
  /\ uploads[f].step \in {"new", "stored"}
  /\ uploads' = [uploads EXCEPT ![f].step = "refused"]
  /\ UNCHANGED <<next, files, named, log, durable, applied, todo, asked, newest, spent>>

End(f) ==
  /\ \/ uploads[f].step = "refused"
     \/ (uploads[f].step = "decided" /\ MayEnd(f))
  /\ uploads' = Without(uploads, f)
  /\ UNCHANGED <<next, files, named, log, durable, applied, todo, asked, newest, spent>>

Delete(c) ==
  /\ Rows[c] # 0 /\ spent.deletes < MaxDeletes
  /\ log' = Append(log, [Rows EXCEPT ![c] = 0])
  /\ spent' = [spent EXCEPT !.deletes = @ + 1]
  /\ UNCHANGED <<next, uploads, files, named, durable, applied, todo, asked, newest>>

Sync ==
  /\ durable < Len(log) /\ durable' = durable + 1
  /\ UNCHANGED <<next, uploads, files, named, log, applied, todo, asked, newest, spent>>
Apply ==
  /\ applied < durable /\ applied' = applied + 1
  /\ UNCHANGED <<next, uploads, files, named, log, durable, todo, asked, newest, spent>>

Crash ==
  /\ spent.crashes < MaxCrashes
  /\ spent' = [spent EXCEPT !.crashes = @ + 1]
  /\ uploads' = <<>> /\ todo' = {} /\ asked' = 0
  /\ log' = SubSeq(log, 1, durable) /\ applied' = durable
  /\ UNCHANGED <<next, files, named, durable, newest>>

-----------------------------------------------------------------------------
Collect ==
  /\ todo = {} /\ asked = 0 /\ files # {}
  /\ todo' = files /\ newest' = next
  /\ UNCHANGED <<next, uploads, files, named, log, durable, applied, asked, spent>>

Look(f) ==
  /\ f \in todo /\ asked = 0
  /\ todo' = todo \ {f}
  /\ asked' = IF AsksUpload(f) THEN f ELSE 0
  /\ UNCHANGED <<next, uploads, files, named, log, durable, applied, newest, spent>>

Remove ==
  /\ asked # 0
  /\ asked' = 0
  /\ files' = IF AsksRow(asked) THEN files \ {asked} ELSE files
  /\ UNCHANGED <<next, uploads, named, log, durable, applied, todo, newest, spent>>

Next ==
  \/ \E c \in Contents : Begin(c) \/ Delete(c)
  \/ \E f \in DOMAIN uploads : Store(f) \/ Decide(f) \/ Refuse(f) \/ End(f)
  \/ Sync \/ Apply \/ Crash \/ Collect \/ Remove
  \/ \E f \in todo : Look(f)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
Numbers(m) == {m[c] : c \in Contents} \ {0}

\* Every row has its file, also that of a state to which a crash may go back.
NoLoss == \A i \in durable..Len(log) : Numbers(log[i]) \subseteq files

\* What a row names is the file of that content.
RightContent == \A c \in Contents : Rows[c] # 0 => named[Rows[c]] = c

\* The file of an upload in progress is not removed.
NotUnderAnUpload == \A f \in DOMAIN uploads : uploads[f].step \in {"stored", "decided"} => f \in files
=============================================================================
