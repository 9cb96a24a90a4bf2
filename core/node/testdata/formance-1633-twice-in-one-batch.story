# The same ref twice in one batch: the first item uses it, and the second is rejected. An
# atomic batch has no effect: no record uses the ref, so none is named.
> with window 16
> ready
> batch b1 each issue ann 10 *inv-1, issue ann 10 *inv-1
frame @3: batched posted rejected(ref_used)
> durable 3
> folded 3
reply 2 after @3: see @3.0
> batch b2 all issue ann 10 *inv-2, issue ann 10 *inv-2
reply 3 after @0: bad_request, item 2
> batch b3 all issue ann 10 *inv-2, issue ann 10 *inv-1
frame @4: batched(ref_used)
> issue k1 ann 5 *inv-2
frame @5: posted
> issue k2 ann 5 *inv-1
frame @6: rejected(ref_used)
> durable 6
> folded 6
reply 4 after @4: see @4.0
reply 5 after @5: see @5.0
reply 6 after @6: see @6.0
