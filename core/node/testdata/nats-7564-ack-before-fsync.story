# A reply leaves when all that it tells of is durable and folded: not when it is
# decided, not when it is written, not when the disk alone has it.
> ready
> issue k1 ann 10
frame @3: posted
> durable 3
> folded 3
reply 2 after @3: see @3.0
