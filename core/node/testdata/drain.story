# A drain takes nothing new, finishes what is in, and stops.
> boot 0
frame @1: booted
start http
start admin
start sampler
> enrol 7
frame @2: key_made
> up http
> up admin
> up sampler
> durable 2
> folded 2
reply 1 after @2: see @0.0
> issue k1 ann 10
frame @3: moved
> drain
stop http
> status
draining: ready no, for read no, reads no, writes no []
finished 0, refused 0, aborted 0
> issue k2 ann 10
reply 3 after @0: unavailable
> down http
> status
draining: ready no, for read no, reads no, writes no [needs http]
finished 0, refused 1, aborted 0
> durable 3
> folded 3
reply 2 after @3: see @3.0
> status
stopped: ready no, for read no, reads no, writes no [needs http]
finished 1, refused 1, aborted 0
