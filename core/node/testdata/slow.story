# A flush beyond the sync time-out stops writing: the outcomes that wait for it are
# unknown, until the disk reports its end.
> ready
> issue k1 ann 1
frame @3: posted
> issue k2 ann 1
frame @4: posted
> durable 3
> folded 3
reply 2 after @3: see @3.0
> after 200ms
> status
degraded: ready no, for read yes, reads yes, writes no [has journal_stalled]
finished 0, refused 0, aborted 0
> after 4799ms
> status
degraded: ready no, for read yes, reads yes, writes no [has journal_stalled]
finished 0, refused 0, aborted 0
> after 1ms
reply 3 after @0: outcome_unknown
> status
degraded: ready no, for read yes, reads yes, writes no [has journal_stalled has journal_failed]
finished 0, refused 0, aborted 0
> issue k3 ann 1
reply 4 after @0: unavailable
> issue k1 ann 1
reply 5 after @3: see @3.0, replayed
> issue k2 ann 1
reply 6 after @0: outcome_unknown
> durable 4
> folded 4
> issue k2 ann 1
reply 7 after @4: see @4.0, replayed
> status
degraded: ready no, for read yes, reads yes, writes no [has journal_failed]
finished 0, refused 0, aborted 0
