# A node is ready when all it needs is there, and says what is missing.
> status
starting: ready no, for read no, reads no, writes no [needs journal needs key needs http needs admin needs sampler]
finished 0, refused 0, aborted 0
> issue k0 ann 5
reply 1 after @0: unavailable
> boot 12
frame @1: booted
start http
start admin
start sampler
start indexer
start keeper
start audit
> status
starting: ready no, for read no, reads no, writes no [needs key needs http needs admin needs sampler]
finished 0, refused 0, aborted 0
> up admin
> up http
> up sampler
> enrol 7
frame @2: key_made
> durable 1
> folded 1
> durable 2
> status
starting: ready no, for read no, reads no, writes no [needs key]
finished 0, refused 0, aborted 0
> folded 2
reply 2 after @2: see @0.0
> status
ready: ready yes, for read yes, reads yes, writes yes []
finished 0, refused 0, aborted 0
