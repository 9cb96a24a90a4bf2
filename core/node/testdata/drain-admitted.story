# What was admitted before a drain takes effect until the drain is aborted, also if its permit was revoked; what was
# not admitted is rejected.
> ready
> arrive wallet 0.1 ann 7
0.1 goes
> arrive wallet 1.1 bob 7
1.1 goes
> after 1m
frame @3:
> drain
stop http
> by 2.1
> issue k1 ann 10
reply 2 after @0: unavailable
> by 0.1
> issue k2 ann 10
frame @4: posted
> find k2
> grant 8 1 7 1
frame @5: key_created
> durable 5
> folded 5
reply 3 after @4: see @4.0
reply 4 after @4: see @4.0
reply 5 after @5: see @0.0
> revoke 8 7 1
frame @6: key_revoked
> durable 6
> folded 6
reply 6 after @6: see @0.0
> settle 0.1
> issue k3 ann 10
reply 7 after @0: unavailable
> by 1.1
> issue k4 ann 10
frame @7: posted
> give_up
reply 8 after @0: outcome_unknown
kill http
> issue k5 ann 10
reply 9 after @0: unavailable
