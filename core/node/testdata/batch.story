# An atomic batch: one frame, one answer, one key.
> ready
> batch b1 all issue ann 10, transfer ann bob 4 1, burn bob 1 1
frame @3: batched posted posted posted
> durable 3
> folded 3
reply 2 after @3: see @3.0
> batch b1 all issue ann 10, transfer ann bob 4 1, burn bob 1 1
reply 3 after @3: see @3.0, replayed
> batch b1 all issue ann 10, transfer ann bob 5 1, burn bob 1 1
reply 4 after @3: idempotency_conflict

# A rejected atomic batch has no effect, and its rejection is stored under the key.
> batch b2 all issue ann 10, transfer ann bob 100 2
frame @4: batched(insufficient_funds)
> durable 4
> folded 4
reply 5 after @4: see @4.0
> batch b2 all issue ann 10, transfer ann bob 100 2
reply 6 after @4: see @4.0, replayed
> transfer t1 ann bob 1 2
frame @5: posted
> durable 5
> folded 5
reply 7 after @5: see @5.0

# A rejection that may become valid is not stored, and makes no frame.
> batch b3 all issue ann 10, transfer ann bob 1 9
reply 8 after @5: nonce_conflict, expected nonce 3, item 2
> transfer t2 ann bob 1 3
frame @6: posted
