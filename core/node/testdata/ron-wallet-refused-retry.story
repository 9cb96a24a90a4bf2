# Two identical transfers at once: the key is looked up before the nonce, so the second
# one gets the first outcome instead of a rejection of a used nonce.
> ready
> issue k1 ann 10
frame @3: posted
> durable 3
> folded 3
reply 2 after @3: see @3.0
> transfer k2 ann bob 4 1
frame @4: posted
> transfer k2 ann bob 4 1
> durable 4
> folded 4
reply 3 after @4: see @4.0
reply 4 after @4: see @4.0, replayed
