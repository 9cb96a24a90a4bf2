# A rejected burn has no effect: the second burn of the same money is rejected, a retry
# gets the same bytes, and no money moves.
> ready
> issue k1 ann 10
frame @3: posted
> burn k2 ann 10 1
frame @4: posted
> burn k3 ann 10 2
frame @5: rejected(insufficient_funds)
> durable 5
> folded 5
reply 2 after @3: see @3.0
reply 3 after @4: see @4.0
reply 4 after @5: see @5.0
> burn k3 ann 10 2
reply 5 after @5: see @5.0, replayed
> transfer k4 ann bob 1 2
frame @6: rejected(insufficient_funds)
> durable 6
> folded 6
reply 6 after @6: see @6.0
