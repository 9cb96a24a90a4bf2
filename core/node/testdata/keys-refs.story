# A key that is limited to accounts may not use a ref that begins with usage: in a single operation, or in a batch. The ref stays unused,
# so that the charge of usage can have it.
> with window 16
> ready
> grant 9 1 7 1 ann
frame @3: key_created
> durable 3
> folded 3
reply 2 after @3: see @0.0
> issue k1 ann 9
frame @4: posted
> durable 4
> folded 4
reply 3 after @4: see @4.0
> transfer k2 ann bob 1 1 *usage:1:4012 ^9
reply 4 after @4: forbidden, reserved ref
> batch k3 each burn ann 1 1, burn ann 1 2 *usage:1:4012 ^9
reply 5 after @4: forbidden, reserved ref
> issue k4 ann 1 *usage:1:4012 ^9
reply 6 after @4: forbidden, reserved ref
> transfer k5 ann bob 1 1 *order:1 ^9
frame @5: posted
> durable 5
> folded 5
reply 7 after @5: see @5.0
> transfer k6 ann bob 1 2 *usage:1:4012
frame @6: posted
> durable 6
> folded 6
reply 8 after @6: see @6.0
