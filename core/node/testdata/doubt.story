# A clock that leaps two hours is not believed: keys do not expire by it.
> ready
> issue k1 ann 1
frame @3: moved
> durable 3
> folded 3
reply 2 after @3: see @3.0
> wall 2h
> after 2s
frame @4:
> status
degraded: ready yes, for read yes, reads yes, writes yes [has clock]
finished 0, refused 0, aborted 0
> issue k1 ann 1
reply 3 after @3: see @3.0, replayed
