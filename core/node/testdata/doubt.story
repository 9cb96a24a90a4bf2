# A clock that jumps two hours ahead, and that the kernel does not report as synchronized,
# is not trusted: no key expires meanwhile.
> ready
> issue k1 ann 1
frame @3: posted
> durable 3
> folded 3
reply 2 after @3: see @3.0
> indexed 3
> wall 2h unsynced
> after 61s
frame @4:
> status
degraded: ready yes, for read yes, reads yes, writes yes [has clock_untrusted]
finished 0, refused 0, aborted 0
> issue k1 ann 1
reply 3 after @3: see @3.0, replayed
> issue k2 ann 1
frame @5: posted

# After a confirmation by the operator it is trusted.
> durable 5
> folded 5
reply 4 after @5: see @5.0
> wall 2h unsynced
> after 1s
frame @6:
> status
degraded: ready yes, for read yes, reads yes, writes yes [has clock_untrusted]
finished 0, refused 0, aborted 0
> accept
> after 1s
> status
degraded: ready no, for read yes, reads yes, writes no [has journal_stalled]
finished 0, refused 0, aborted 0
