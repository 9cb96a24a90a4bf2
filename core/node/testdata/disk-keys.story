# A full disk accepts no new API key, but a key can be revoked: a stolen key is ended at once. Its requests lose their permits.
> ready
> grant 8 1 7 1 none
frame @3: key_created
> grant 9 1 7 1 none
frame @4: key_created
> durable 4
> folded 4
reply 2 after @3: see @0.0
reply 3 after @4: see @0.0
> arrive query 0.1 ann 8
0.1 goes
> room 131072
> grant 10 1 7 1 none
reply 4 after @0: unavailable
> revoke 8 7 1
frame @5: key_revoked
0.1: unauthorized, for key_ended
> issue k1 ann 10
reply 6 after @0: unavailable
> durable 5
> folded 5
reply 5 after @5: see @0.0
> status
degraded: ready no, for read yes, reads yes, writes no [has disk_full]
finished 0, refused 0, aborted 0

# With less than an eighth of the reserve there is no space for a revocation either. A repeated one needs none.
> room 131071
> revoke 9 7 1
reply 7 after @0: unavailable
> revoke 8 7 1
reply 8 after @5: see @0.0

# Neither does a failed journal accept it.
> room 5000000
> issue k2 ann 10
frame @6: posted
> refused 6
reply 9 after @0: outcome_unknown
> revoke 9 7 1
reply 10 after @0: unavailable
