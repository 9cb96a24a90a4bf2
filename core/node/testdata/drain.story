# A drain rejects new requests, finishes those in progress, and stops.
> ready
> arrive wallet 0.1 ann 7
0.1 goes
> arrive query 1.1 ann 7
1.1 goes
> issue k1 ann 10
frame @3: posted
> drain
stop http
> status
draining: ready no, for read no, reads no, writes no []
finished 0, refused 0, aborted 0
> issue k2 ann 10
reply 3 after @0: unavailable
> settle 1.1 rejected
> down http
> status
draining: ready no, for read no, reads no, writes no [needs http]
finished 0, refused 1, aborted 0
> durable 3
> folded 3
reply 2 after @3: see @3.0
> settle 0.1
> status
stopped: ready no, for read no, reads no, writes no [needs http]
finished 1, refused 1, aborted 0
