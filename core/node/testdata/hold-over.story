# A hold that is due expires in the frame of the next decision about its account, before
# it, even without a sweep.
> with window 16
> ready
> after 10ms
> issue k1 ann 10
frame @3: posted
> hold k2 ann 6 1 300ms
frame @4: hold_opened
> durable 4
> folded 4
reply 2 after @3: see @3.0
reply 3 after @4: see @4.0
> after 299ms
> hold k3 ann 5 2 60s
frame @5: rejected(insufficient_funds)
> after 1ms
> capture k4 @4.0 ann bob 1
frame @6: hold_expired rejected(hold_not_active)
> hold k5 ann 10 2 1s
frame @7: hold_opened
> durable 7
> folded 7
reply 4 after @5: see @5.0
reply 5 after @6: see @6.1
reply 6 after @7: see @7.0

# Without requests the sweep expires it.
> after 2500ms
frame @8: hold_expired
