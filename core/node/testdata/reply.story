# Replies, and the time when they are sent.
> ready
> issue k1 ann 10
frame @3: posted
> transfer k2 ann bob 4 1
frame @4: posted
> durable 3
> folded 3
reply 2 after @3: see @3.0
> durable 4
> folded 4
reply 3 after @4: see @4.0

# A retry with the key gets the same record; another request with it is rejected.
> transfer k2 ann bob 4 1
reply 4 after @4: see @4.0, replayed
> transfer k2 ann bob 5 1
reply 5 after @4: idempotency_conflict
> transfer k3 ann bob 1 2
frame @5: posted

# A final rejection is a record too; that of a nonce that is ahead is not.
> durable 5
> folded 5
reply 6 after @5: see @5.0
> transfer k4 ann bob 1 9
reply 7 after @5: nonce_conflict, expected nonce 3
> transfer k4 ann bob 100 3
frame @6: rejected(insufficient_funds)
> durable 6
> folded 6
reply 8 after @6: see @6.0
> transfer k4 ann bob 100 3
reply 9 after @6: see @6.0, replayed

# This window has four keys, until their minute has passed and the index has them.
> issue k5 ann 1
reply 10 after @0: unavailable
> indexed 6
> after 61s
frame @7: keys_forgotten
> durable 7
> folded 7
> issue k5 ann 1
frame @8: posted
> durable 8
> folded 8
reply 11 after @8: see @8.0
