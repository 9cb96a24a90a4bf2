# A node is ready when all dependencies are available, and reports those that are missing.
> status
starting: ready no, for read no, reads no, writes no [needs journal needs key needs http needs admin needs sampler]
finished 0, refused 0, aborted 0
> issue k0 ann 5
reply 1 after @0: unavailable
> boot 12
frame @1: started
start http
start admin
start sampler
start indexer
start keeper
start audit
> status
starting: ready no, for read no, reads no, writes no [needs key needs http needs admin needs sampler has index_behind]
finished 0, refused 0, aborted 0
> up admin
> up http
> up sampler
> up indexer
> enrol 7
frame @2: bootstrap_key_created
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

# If a route requires its upstream, the node is not ready before the upstream was healthy
# once. It is not checked again: if it fails later, only its own requests fail.
> with awaited 10
> ready
> status
starting: ready no, for read no, reads no, writes no [needs upstreams]
finished 0, refused 0, aborted 0
> issue k0 ann 5
reply 4 after @0: unavailable
> arrive wallet 0.1 ann 7
0.1: unavailable, for not_serving
> probed 0 well
> probed 1 sick
> status
starting: ready no, for read no, reads no, writes no [needs upstreams]
finished 0, refused 0, aborted 0
> probed 1 well
> status
ready: ready yes, for read yes, reads yes, writes yes []
finished 0, refused 0, aborted 0
> arrive wallet 0.2 ann 7
0.2 goes
> probed 1 sick
> probed 1 sick
> probed 1 sick
> status
degraded: ready yes, for read yes, reads yes, writes yes [has no_healthy_endpoint]
finished 0, refused 0, aborted 0

# A removed upstream is not awaited.
> with awaited 11
> ready
> probed 0 well
> status
starting: ready no, for read no, reads no, writes no [needs upstreams]
finished 0, refused 0, aborted 0
> change permits=1 up1=0b0
> status
ready: ready yes, for read yes, reads yes, writes yes []
finished 0, refused 0, aborted 0
