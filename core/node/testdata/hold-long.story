# A hold that lasts longer than all keys expires without another event.
> ready
> issue k1 ann 10
frame @3: posted
> hold k2 ann 6 1 120s
frame @4: hold_opened
> durable 4
> folded 4
reply 2 after @3: see @3.0
reply 3 after @4: see @4.0
> indexed 4
> after 61s
frame @5: keys_forgotten
> durable 5
> folded 5
> indexed 5
> after 30s
frame @6:
> durable 6
> folded 6
> after 30s
frame @7: hold_expired
> durable 7
> folded 7
> after 1s
frame @8:
> transfer k3 ann bob 10 2
frame @9: posted
