# Consecutive fast flushes do not add up to a stall: each is timed from its own begin.
> ready
> issue k1 ann 1
frame @3: posted
> after 150ms
> issue k2 ann 1
frame @4: posted
> durable 3
> folded 3
reply 2 after @3: see @3.0
> after 150ms
> status
ready: ready yes, for read yes, reads yes, writes yes []
finished 0, refused 0, aborted 0
> after 50ms
> status
degraded: ready no, for read yes, reads yes, writes no [has journal_stalled]
finished 0, refused 0, aborted 0
