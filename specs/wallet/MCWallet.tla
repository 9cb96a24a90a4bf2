------------------------------- MODULE MCWallet -------------------------------
(* Requests for Wallet, and its deliberate bugs. One line of a cfg puts a bug *)
(* in place of a decision.                                                    *)
EXTENDS Wallet, TLC
CONSTANTS c1, c2

Two   == {"t", "u"}
Three == {<<"t", "a">>, <<"t", "b">>, <<"u", "a">>}
R(tenant, key, op, from, to, amount, nonce) ==
  [tenant |-> tenant, key |-> key, op |-> op, from |-> from, to |-> to, amount |-> amount, nonce |-> nonce]

Issue     == R("t", "k1", "issue", Nobody, "a", 2, 0)
Pay       == R("t", "k2", "transfer", "a", "b", 1, 1)
PayMore   == R("t", "k2", "transfer", "a", "b", 2, 1) \* the key of Pay
PayAgain  == R("t", "k3", "transfer", "a", "b", 1, 1) \* the nonce of Pay
PayNext   == R("t", "k4", "transfer", "a", "b", 1, 2)
Burn      == R("t", "k5", "burn", "a", Nobody, 1, 1)
PaySelf   == R("t", "k6", "transfer", "a", "a", 1, 1)
Other     == R("u", "k1", "issue", Nobody, "a", 2, 0) \* the key of Issue, with another tenant

All   == {Issue, Pay, PayMore, PayAgain, PayNext, Burn, PaySelf, Other}
Few   == {Issue, Pay, PayMore, PayNext}
Pair  == {Pay, PayNext, Issue}
Symm  == Permutations(Clients)

BugNo(a, b)      == FALSE
BugSame(k, r)    == TRUE
BugSane(r)       == TRUE
BugKeepsAll(why) == TRUE
BugKeepsNone(why) == FALSE
BugKeyAlone(r)   == <<"anybody", r.key>>
BugNonce(s, rec) == [s EXCEPT !.nonce[From(rec.req)] = @ + 1]
BugSeq(s, rec)   == [s EXCEPT !.seq[rec.req.tenant] = @ + 1]
BugExpired(k)    == TRUE
BugOneMore(k, upto) == k.lsn > upto + 1
BugNoKeys(l)     == [Fold(l, Len(l)) EXCEPT !.keys = <<>>]
BugRoom          == TRUE
BugEmitted       == Len(log)
BugDurable       == durable
BugAtOnce(what)  == 0
BugTooLong(what) == Len(log) + 1
BugToday(lsn)    == LET rec == log[lsn].recs[1] IN \* rendered from the balance of now
                    IF rec.kind = "moved" /\ rec.req.op # "burn" THEN [rec EXCEPT !.toNow = st.bal[To(rec.req)]] ELSE rec

BugSweep == \* without a record
  /\ ~failed /\ st.keys # <<>> /\ Expired(st.keys[1])
  /\ st' = [st EXCEPT !.keys = Tail(@)]
  /\ UNCHANGED <<log, durable, folded, now, failed, client, said, spent>>

BugTwoSteps(c) == \* the key is looked up in one step, and the request is decided in a later one
  /\ LET r == client[c].req IN
     \/ client[c].ph = "asked" /\ Found(r) # {} /\ Replay(c, st.keys[Max(Found(r))])
     \/ client[c].ph = "asked" /\ Found(r) = {} /\ client' = [client EXCEPT ![c].ph = "looked"] /\ UNCHANGED <<log, st>>
     \/ client[c].ph = "looked" /\ Decide(c, r)
  /\ UNCHANGED <<durable, folded, now, failed, said, spent>>

BugNonceFirst(c) == \* the key is looked up after the nonce
  /\ client[c].ph = "asked"
  /\ LET r == client[c].req IN
     IF Problem(st, r) = "used" THEN Hold(c, Tells("used", 0)) /\ UNCHANGED <<log, st>>
     ELSE IF Found(r) # {} THEN Replay(c, st.keys[Max(Found(r))])
     ELSE Decide(c, r)
  /\ UNCHANGED <<durable, folded, now, failed, said, spent>>
=============================================================================
