----------------------------- MODULE TracesWallet ----------------------------
(* Runs of a real node, which chaos/explore writes step by step as actions of *)
(* Wallet. TLC must accept the runs in True up to their end. Each of the      *)
(* others has one wrong step, and TLC must not accept it.                     *)
EXTENDS Wallet, Traces, TLC

VARIABLES trace, next  \* the number of the run, and its next step

TracesTenants  == {"t"}
TracesAccounts == {<<"t", n>> : n \in {"ann", "bob", "shop"}}
Name(n)       == IF n = "nobody" THEN Nobody ELSE n
Wish(e)       == [tenant |-> "t", key |-> e[3], op |-> e[4], from |-> Name(e[5]), to |-> Name(e[6]), amount |-> e[7], nonce |-> e[8]]
TracesRequests == UNION {{Wish(l[i]) : i \in {j \in DOMAIN l : l[j][1] = "Ask"}} : l \in {All[n] : n \in DOMAIN All}}

Holds(c)    == client'[c].ph = "held"
Decides(c, rec) == Step(c) /\ Len(log') = Len(log) + 1 /\ log'[Len(log')].recs[1] = rec /\ Holds(c)

Observed(e) == LET c == e[2] IN
  CASE e[1] = "Ask"      -> Ask(c) /\ client'[c].req = Wish(e)
    [] e[1] = "Step"     -> Step(c) /\ log' = log /\ Holds(c)
    [] e[1] = "Moved"    -> Decides(c, [kind |-> "moved", req |-> client[c].req, seq |-> e[3], fromNow |-> e[4], toNow |-> e[5]])
    [] e[1] = "Refused"  -> Decides(c, [kind |-> "refused", req |-> client[c].req, why |-> e[3], next |-> e[4]])
    [] e[1] = "Leave"    -> Leave(c) /\ client[c].reply.what = e[3] /\ client[c].reply.lsn = e[4] /\ client[c].reply.next = e[5]
    [] e[1] = "Patience" -> LosePatience(c)
    [] e[1] = "Sync"     -> Sync /\ durable' = e[2]
    [] e[1] = "Follow"   -> Follow /\ folded' = e[2]
    [] e[1] = "Fail"     -> FailFlush
    [] e[1] = "Begin"    -> (Restart \/ Crash) /\ Len(log') = e[2]

TracesInit == Init /\ trace \in DOMAIN All /\ next = 1
TracesNext == /\ next <= Len(All[trace]) /\ Observed(All[trace][next])
             /\ next' = next + 1 /\ UNCHANGED trace
TracesSpec == TracesInit /\ [][TracesNext]_<<vars, trace, next>>

\* Printed for each run that reached its end, and for a true one that did not: the step where it stopped.
AtEnd    == next > Len(All[trace])
Accepted == /\ AtEnd => PrintT(<<"accepted", trace, trace \in True>>)
            /\ ~AtEnd /\ trace \in True /\ ~ENABLED TracesNext => PrintT(<<"refused", trace, next, All[trace][next], vars>>)
=============================================================================
