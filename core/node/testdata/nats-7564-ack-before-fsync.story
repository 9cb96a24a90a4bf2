# A reply is sent when every frame that it depends on is durable and folded: not when it
# is decided, written or synced.
> ready
> issue k1 ann 10
frame @3: posted
> durable 3
> folded 3
reply 2 after @3: see @3.0
