# A revocation ends what its key still runs, in the step that records it: a request at work loses its permit, and a queued one is
# rejected. The permit goes to a request of another key. The revoked key gets no other permit.
> ready
> grant 8 1 7 1 none
frame @3: key_created
> grant 9 1 7 1 none
frame @4: key_created
> arrive query 0.1 ann 8
0.1 goes
> arrive query 1.1 bob 9
1.1 goes
> arrive query 2.1 ann 8
> arrive query 3.1 bob 9
> revoke 8 7 1
frame @5: key_revoked
0.1: unauthorized, for key_ended
2.1: unauthorized, for key_ended
3.1 goes
> arrive query 4.1 ann 8
4.1: unauthorized, for key_ended

# The second revocation has nothing to end, and a request that has lost its permit ends as any other.
> durable 5
> folded 5
reply 2 after @3: see @0.0
reply 3 after @4: see @0.0
reply 4 after @5: see @0.0
> revoke 8 7 1
reply 5 after @5: see @0.0
> settle 0.1 5000
> settle 1.1
> settle 3.1

# A part of a body that waits is dropped, and there is no further one.
> with quota tenant/10000B/1s/10000
> ready
> grant 8 1 7 1 none
frame @3: key_created
> arrive wallet 0.1 ann 8 +9000
0.1 goes; rule 1 has 5904 left
> stream 0.1 6000
0.1 goes
> stream 0.1 6000
> stream 0.1 6000
> revoke 8 7 1
frame @4: key_revoked
0.1: unauthorized, for key_ended
0.1: unauthorized, for key_ended
> stream 0.1 6000
0.1: unauthorized, for key_ended

# A key that expires does the same, at a tick.
> with quota none
> ready
> grant 8 1 7 1 none 300ms
frame @3: key_created
> grant 9 1 7 1 none 200ms
frame @4: key_created
> arrive streams 0.1 ann 8
0.1 goes
> arrive streams 1.1 bob 9
1.1 goes
> after 190ms
> after 10ms
1.1: unauthorized, for key_ended
> arrive streams 2.1 bob 9
2.1: unauthorized, for key_ended
> after 99ms
> after 1ms
0.1: unauthorized, for key_ended
