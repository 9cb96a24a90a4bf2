--------------------------------- MODULE Clock ---------------------------------
(* The node's own time, made of what the machine's clocks claim.              *)
(*                                                                            *)
(*   ahead of the machine: slow      a little behind: a step, then fast       *)
(*   far behind: not trusted until the machine was synchronised and steady    *)
(*   for a while, or an operator confirms it                                  *)
(*                                                                            *)
(* The machine's clock may be set to anything at any time, and the process may *)
(* end at any time: it continues from the time of its last frame. Days are     *)
(* counted in this time, and so is the daily limit of an account's debits.     *)
(* Between two readings the machine's clock advances as fast as time does.     *)
EXTENDS Integers

CONSTANTS
  Step, Rest,      \* forward at once, and the time between two of them
  Trust, Gap,      \* a larger offset is not trusted, while running and across a restart
  Steady, Waver,   \* an untrusted offset must be steady for so long, within Waver
  Slew,
  Day, Ceiling,    \* the length of a day, and the limit of an account's debits in one
  Gones,           \* the possible times between two readings
  MaxWall, MaxMono,
  MaxJumps, MaxCrashes, MaxAccepts, MaxPays

VARIABLES
  at,             \* the last reading
  wall, seen,     \* the machine's time; what it was when it was read
  synced,         \* whether the machine's clock is synchronised
  doubted, since, offset, \* how long the untrusted offset was steady, and its value
  stepped,        \* since the last step
  mono,           \* the total elapsed time
  frame,          \* the time of the last frame: all that survives the process
  paid,           \* [day, n] of the account's row, which frames carry
  past, still, rested, did, \* for the invariants: payments of each day; how long the machine was
                  \* steady; since the last step; what the last action did: [what, gone, moved]
  spent

vars == <<at, wall, seen, synced, doubted, since, offset, stepped, mono, frame, paid, past, still, rested, did, spent>>

Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b
Abs(n)    == Max(n, -n)

-----------------------------------------------------------------------------
(* The decisions: what the mutants of MCClock replace.                        *)

Fast(gone)        == gone \div Slew
Far(behind)       == behind > (IF doubted THEN Step ELSE Trust) \* not trusted while running
Distrusts(ahead)  == ahead > Gap                              \* nor across a restart
Slow(even, gone)  == Max(even - Fast(gone), seen')            \* if the node is ahead it runs slower, and never goes back
MayStep(gone)     == stepped + gone >= Rest
Catches(even, gone) == Min(even + Fast(gone), seen')          \* if it is behind it runs faster, and does not overtake
Wavers(behind)    == Abs(behind - offset) > Waver
Vouched           == synced
Begins            == frame                                    \* a process continues from the time of its last frame
Waits(ahead)      == ahead < 0                                \* for a machine that is behind that
Today             == at \div Day                              \* in the node's own time

-----------------------------------------------------------------------------
Days == 0..((MaxWall + MaxMono) \div Day)

Init ==
  /\ wall = Trust /\ seen = wall /\ at = wall /\ synced = TRUE \* the first start trusts the machine
  /\ doubted = FALSE /\ since = 0 /\ offset = 0 /\ stepped = Rest /\ mono = 0
  /\ frame = at /\ paid = [day |-> 0, n |-> 0] /\ past = [d \in Days |-> 0]
  /\ still = 0 /\ rested = Rest /\ did = [what |-> "began", gone |-> 0, moved |-> 0]
  /\ spent = [jumps |-> 0, crashes |-> 0, accepts |-> 0, pays |-> 0]

Spend(what, most)      == spent[what] < most /\ spent' = [spent EXCEPT ![what] = @ + 1]
Did(what, gone, moved) == did' = [what |-> what, gone |-> gone, moved |-> moved]

Jump == \* the machine's clock is set
  /\ Spend("jumps", MaxJumps) /\ \E w \in 0..MaxWall : w # wall /\ wall' = w
  /\ Did("jump", 0, 0)
  /\ UNCHANGED <<at, seen, synced, doubted, since, offset, stepped, mono, frame, paid, past, still, rested>>

Loses == \* the kernel reports that its clock is not synchronised, or is again
  /\ Spend("jumps", MaxJumps) /\ synced' = ~synced /\ Did("sync", 0, 0)
  /\ UNCHANGED <<at, wall, seen, doubted, since, offset, stepped, mono, frame, paid, past, still, rested>>

Believes(even, gone, behind) == LET steps == behind > Fast(gone) /\ behind <= Step /\ MayStep(gone) IN
  /\ doubted' = FALSE /\ since' = 0 /\ offset' = 0
  /\ at' = IF behind < 0 THEN Slow(even, gone) ELSE IF steps THEN seen' ELSE Catches(even, gone)
  /\ stepped' = IF steps THEN 0 ELSE Min(Rest, stepped + gone)

Doubts(even, gone, behind) == LET steady == doubted /\ ~Wavers(behind) /\ Vouched IN
  /\ stepped' = Min(Rest, stepped + gone)
  /\ IF steady /\ since + gone >= Steady THEN at' = seen' /\ doubted' = FALSE /\ since' = 0 /\ offset' = 0
     ELSE /\ at' = even /\ doubted' = TRUE
          /\ since' = IF steady THEN since + gone ELSE 0
          /\ offset' = IF steady THEN offset ELSE behind

Steps(gone) == did'.moved - gone > Fast(gone) /\ ~(doubted /\ ~doubted')

Read(gone) ==
  /\ mono + gone <= MaxMono /\ mono' = mono + gone
  /\ wall' = wall + gone /\ seen' = wall'
  /\ LET even   == at + gone
         behind == wall + gone - even
     IN IF Far(behind) THEN Doubts(even, gone, behind) ELSE Believes(even, gone, behind)
  /\ Did("read", gone, at' - at)
  /\ still' = IF synced /\ Abs(seen' - seen - gone) <= 2 * Waver THEN Min(Steady, still + gone) ELSE 0
  /\ rested' = IF Steps(gone) THEN 0 ELSE Min(Rest, rested + gone)
  /\ UNCHANGED <<synced, frame, paid, past, spent>>

Accept == \* an operator confirms the machine's clock
  /\ Spend("accepts", MaxAccepts)
  /\ at' = Max(at, seen) /\ doubted' = FALSE /\ since' = 0 /\ offset' = 0 /\ Did("accept", 0, at' - at)
  /\ UNCHANGED <<wall, seen, synced, stepped, mono, frame, paid, past, still, rested>>

Vouch == \* a frame with nothing but the time
  /\ frame < at /\ frame' = at /\ Did("vouch", 0, 0)
  /\ UNCHANGED <<at, wall, seen, synced, doubted, since, offset, stepped, mono, paid, past, still, rested, spent>>

Pay == \* a frame with a payment
  /\ Spend("pays", MaxPays)
  /\ LET n == IF paid.day = Today THEN paid.n ELSE 0 IN
     /\ n < Ceiling /\ paid' = [day |-> Today, n |-> n + 1]
  /\ past' = [past EXCEPT ![at \div Day] = @ + 1]
  /\ frame' = at /\ Did("pay", 0, 0)
  /\ UNCHANGED <<at, wall, seen, synced, doubted, since, offset, stepped, mono, still, rested>>

Crash == \* and the next process reads the machine's clock for the first time
  /\ Spend("crashes", MaxCrashes)
  /\ LET ahead == wall - Begins IN
     /\ at' = IF Waits(ahead) \/ Distrusts(ahead) THEN Begins ELSE wall
     /\ doubted' = Distrusts(ahead) /\ since' = 0 /\ offset' = IF Distrusts(ahead) THEN ahead ELSE 0
  /\ Did("restart", 0, at' - frame)
  /\ stepped' = Rest /\ seen' = wall /\ still' = 0 /\ rested' = Rest
  /\ UNCHANGED <<wall, synced, mono, frame, paid, past>>

Next == \/ Jump \/ Loses \/ Accept \/ Vouch \/ Pay \/ Crash
        \/ \E gone \in Gones : Read(gone)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* Invariants and properties.                                                 *)

Reads == did'.what = "read" /\ seen' = wall' /\ mono' >= mono

\* C1. Time never goes back within a process.
NeverBack == [][did'.what # "restart" => at' >= at]_vars

\* Nor across a restart: it is never before anything that was written.
NotBehindFrames == at >= frame

\* C2. It runs slow or fast by one part in Slew, except for small steps and for an offset that became trusted.
Rate == [][Reads /\ ~(doubted /\ ~doubted') =>
  did'.moved \in (did'.gone - Fast(did'.gone))..(did'.gone + Max(Fast(did'.gone), Step))]_vars

\* It never overtakes a machine that is ahead of it: it leads only a machine that was set back.
NoLeadOfItsOwn == [][Reads /\ wall' >= at + did'.gone => at' <= wall']_vars

\* A large offset is not trusted.
FarIsDoubted == did.what \in {"read", "restart"} /\ seen - at > Trust => doubted

\* An untrusted offset is trusted when the machine was synchronised and steady for long enough, or an operator confirms it.
BelievedLate == [][Reads /\ doubted /\ did'.moved > did'.gone + Max(Fast(did'.gone), Step) => still' >= Steady]_vars

\* Steps are rare.
StepsAreRare == [][Reads /\ Steps(did'.gone) => rested + did'.gone >= Rest]_vars

\* A restart trusts only a limited offset.
RestartWithinGap == [][did'.what = "restart" => did'.moved \in 0..Gap]_vars

\* Without interference the offset shrinks, or becomes trusted.
Settles == [][Reads /\ did'.gone >= Slew /\ synced /\ seen = wall =>
  \/ wall' = at'
  \/ ~doubted' /\ Abs(wall' - at') < Abs(wall - at)
  \/ doubted' /\ (~doubted \/ since' > since)]_vars

\* No day has more debits than its limit, whatever the machine's date is.
DayCeiling == \A d \in Days : past[d] <= Ceiling
=============================================================================
