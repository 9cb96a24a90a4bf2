# A frozen account rejects debits and accepts credits. The rejection is not stored,
# because a retry with the same key may succeed.
> with window 16
> ready
> issue k1 ann 10
frame @3: posted
> freeze k2 ann
frame @4: freeze_changed
> durable 4
> folded 4
reply 2 after @3: see @3.0
reply 3 after @4: see @4.0
> transfer k3 ann bob 1 1
reply 4 after @4: account_frozen
> issue k4 ann 5
frame @5: posted
> durable 5
> folded 5
reply 5 after @5: see @5.0
> unfreeze k5 ann
frame @6: freeze_changed
> transfer k3 ann bob 1 1
frame @7: posted
> durable 7
> folded 7
reply 6 after @6: see @6.0
reply 7 after @7: see @7.0
