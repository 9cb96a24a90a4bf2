# A batch that is not atomic: invalid items are rejected, and the others take effect.
> ready
> batch b1 each issue ann 10, transfer ann bob 40 1, transfer ann bob 4 9, transfer ann bob 4 1
frame @3: batched posted rejected(insufficient_funds) rejected(nonce_conflict) posted
> durable 3
> folded 3
reply 2 after @3: see @3.0
> batch b1 each issue ann 10, transfer ann bob 40 1, transfer ann bob 4 9, transfer ann bob 4 1
reply 3 after @3: see @3.0, replayed
> transfer t1 ann bob 6 2
frame @4: posted
> durable 4
> folded 4
reply 4 after @4: see @4.0
