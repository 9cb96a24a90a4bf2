# Three replies may be held, one of them for the outcome of another request; the fourth
# request is busy.
> ready
> issue k1 ann 10
frame @3: posted
> issue k1 ann 10
> issue k1 ann 10
reply 4 after @0: in_progress
> issue k2 ann 10
frame @4: posted
> issue k3 ann 10
reply 6 after @0: busy
> grant 8 1 7 1
reply 7 after @0: busy
> revoke 7 7 1
reply 8 after @0: busy
> find k1
reply 9 after @0: busy

# A client that disconnects gets no reply; the outcome stays.
> cancel 2
> durable 3
> folded 3
reply 3 after @3: see @3.0, replayed
> issue k1 ann 10
reply 10 after @3: see @3.0, replayed
> cancel 5
> durable 4
> folded 4

# A request that waits too long gets outcome_unknown; a second one with the key gets
# in_progress.
> issue k4 ann 1
frame @5: posted
> issue k4 ann 1
> durable 5
> after 5s
frame @6:
reply 11 after @0: outcome_unknown
reply 12 after @0: in_progress
