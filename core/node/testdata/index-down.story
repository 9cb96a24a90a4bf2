# The node is degraded while the index does not follow: after a start until the index has
# caught up, and from the end of the index until it has caught up again. Reads and writes
# that do not need the index continue.
> ready
> status
ready: ready yes, for read yes, reads yes, writes yes []
finished 0, refused 0, aborted 0
> down indexer
> status
degraded: ready yes, for read yes, reads yes, writes yes [has index_behind]
finished 0, refused 0, aborted 0
> issue k1 ann 10
frame @3: posted
> durable 3
> folded 3
reply 2 after @3: see @3.0
> after 500ms
start indexer
> status
degraded: ready yes, for read yes, reads yes, writes yes [has index_behind]
finished 0, refused 0, aborted 0
> up indexer
> status
ready: ready yes, for read yes, reads yes, writes yes []
finished 0, refused 0, aborted 0
