# A held amount cannot be spent; a capture takes a part, and the rest is available again.
> with window 16
> ready
> issue k1 ann 10
frame @3: posted
> hold k2 ann 6 1 60s
frame @4: hold_opened
> transfer k3 ann bob 5 2
frame @5: rejected(insufficient_funds)
> durable 5
> folded 5
reply 2 after @3: see @3.0
reply 3 after @4: see @4.0
reply 4 after @5: see @5.0
> capture k4 @4.0 ann bob 4
frame @6: hold_captured
> transfer k5 ann bob 5 2
frame @7: posted
> durable 7
> folded 7
reply 5 after @6: see @6.0
reply 6 after @7: see @7.0
> capture k6 @4.0 ann bob 1
frame @8: rejected(hold_not_active)
> release k7 @4.0 ann
frame @9: rejected(hold_not_active)
> durable 9
> folded 9
reply 7 after @8: see @8.0
reply 8 after @9: see @9.0
