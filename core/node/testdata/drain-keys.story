# A drain rejects commands about keys too, even those without an effect.
> ready
> grant 8 1 7 1
frame @3: key_created
> durable 3
> folded 3
reply 2 after @3: see @0.0
> drain
stop http
> grant 8 1 7 1
reply 3 after @0: unavailable
> revoke 8 5 1
reply 4 after @0: unavailable
> grant 10 1 5 1
reply 5 after @0: unavailable
> find k1
reply 6 after @0: unavailable
