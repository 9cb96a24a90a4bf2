# The bytes that are decided and not durable have a limit. Beyond it writes are rejected
# with Retry-After, until the disk has made progress.
> with backlog 2560
> ready
> issue k1 ann 1
frame @3: posted
> issue k2 ann 1
frame @4: posted
> issue k3 ann 1
reply 4 after @0: busy
> durable 4
> folded 4
reply 2 after @3: see @3.0
reply 3 after @4: see @4.0
> issue k3 ann 1
frame @5: posted
