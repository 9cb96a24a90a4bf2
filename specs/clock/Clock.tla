--------------------------------- MODULE Clock ---------------------------------
(* The node's own time, made of what the machine's clocks claim.              *)
(*                                                                            *)
(*   ahead of the machine: slow      a little behind: a step, then fast       *)
(*   far behind: doubted, until the machine was synchronised and steady for   *)
(*   a while, or an operator says so                                          *)
(*                                                                            *)
(* The machine's clock may be set to anything at any time, and the process may *)
(* end at any time: what it goes on with is the time of its last frame. Days   *)
(* are counted by this time, and so is what may leave an account in one.       *)
(* Between two readings the machine's clock goes on as fast as time does.      *)
EXTENDS Integers

CONSTANTS
  Step, Rest,      \* forward at once, and how long between two of them
  Trust, Gap,      \* an offset beyond is not believed, while running and across a restart
  Steady, Waver,   \* a doubted offset must stand still for so long, give or take
  Slew,
  Day, Ceiling,    \* a day's length, and how often an account may pay in one
  Gones,           \* what may go by between two readings
  MaxWall, MaxMono,
  MaxJumps, MaxCrashes, MaxAccepts, MaxPays

VARIABLES
  at,             \* what was last read
  wall, seen,     \* what the machine claims; what it claimed when it was read
  synced,         \* and that it is right
  doubted, since, offset, \* for how long the doubted offset has stood still, and where
  stepped,        \* since the last step
  mono,           \* that has gone by in all
  frame,          \* the time of the last frame: all that outlives the process
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
Far(behind)       == behind > (IF doubted THEN Step ELSE Trust) \* not believed while running
Distrusts(ahead)  == ahead > Gap                              \* nor across a restart
Slow(even, gone)  == Max(even - Fast(gone), seen')            \* who is ahead goes slower, never back
MayStep(gone)     == stepped + gone >= Rest
Catches(even, gone) == Min(even + Fast(gone), seen')          \* who is behind goes faster, and not beyond
Wavers(behind)    == Abs(behind - offset) > Waver
Vouched           == synced
Begins            == frame                                    \* a process goes on with the time of its last frame
Waits(ahead)      == ahead < 0                                \* for a machine that is behind that
Today             == at \div Day                              \* by the node's own time

-----------------------------------------------------------------------------
Days == 0..((MaxWall + MaxMono) \div Day)

Init ==
  /\ wall = Trust /\ seen = wall /\ at = wall /\ synced = TRUE \* the first start believes the machine
  /\ doubted = FALSE /\ since = 0 /\ offset = 0 /\ stepped = Rest /\ mono = 0
  /\ frame = at /\ paid = [day |-> 0, n |-> 0] /\ past = [d \in Days |-> 0]
  /\ still = 0 /\ rested = Rest /\ did = [what |-> "began", gone |-> 0, moved |-> 0]
  /\ spent = [jumps |-> 0, crashes |-> 0, accepts |-> 0, pays |-> 0]

Spend(what, most)      == spent[what] < most /\ spent' = [spent EXCEPT ![what] = @ + 1]
Did(what, gone, moved) == did' = [what |-> what, gone |-> gone, moved |-> moved]

Jump == \* somebody sets the machine's clock
  /\ Spend("jumps", MaxJumps) /\ \E w \in 0..MaxWall : w # wall /\ wall' = w
  /\ Did("jump", 0, 0)
  /\ UNCHANGED <<at, seen, synced, doubted, since, offset, stepped, mono, frame, paid, past, still, rested>>

Loses == \* the kernel holds its clock to be right no more, or again
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

Accept == \* an operator believes the machine, doubted or not
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
(* What is kept.                                                              *)

Reads == did'.what = "read" /\ seen' = wall' /\ mono' >= mono

\* C1. Time never goes back while a process lives.
NeverBack == [][did'.what # "restart" => at' >= at]_vars

\* Nor across its end: not behind anything that was written.
NotBehindFrames == at >= frame

\* C2. It runs slow or fast by one part in Slew, but for small steps and for what was believed after a doubt.
Rate == [][Reads /\ ~(doubted /\ ~doubted') =>
  did'.moved \in (did'.gone - Fast(did'.gone))..(did'.gone + Max(Fast(did'.gone), Step))]_vars

\* It never overtakes a machine that is ahead of it: it leads only those that were set back.
NoLeadOfItsOwn == [][Reads /\ wall' >= at + did'.gone => at' <= wall']_vars

\* What is far ahead is doubted.
FarIsDoubted == did.what \in {"read", "restart"} /\ seen - at > Trust => doubted

\* What is doubted is believed when the machine was right and steady for long enough, or an operator says so.
BelievedLate == [][Reads /\ doubted /\ did'.moved > did'.gone + Max(Fast(did'.gone), Step) => still' >= Steady]_vars

\* Steps are rare.
StepsAreRare == [][Reads /\ Steps(did'.gone) => rested + did'.gone >= Rest]_vars

\* A restart believes no more than a while has gone by.
RestartWithinGap == [][did'.what = "restart" => did'.moved \in 0..Gap]_vars

\* Where nobody interferes the offset shrinks, or the doubt about it comes to its end.
Settles == [][Reads /\ did'.gone >= Slew /\ synced /\ seen = wall =>
  \/ wall' = at'
  \/ ~doubted' /\ Abs(wall' - at') < Abs(wall - at)
  \/ doubted' /\ (~doubted \/ since' > since)]_vars

\* No day has more payments than may be made in one, whatever the machine says the day is.
DayCeiling == \A d \in Days : past[d] <= Ceiling
=============================================================================
