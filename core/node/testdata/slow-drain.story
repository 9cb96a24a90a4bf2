# A drain waits for a slow journal, and not for a failed one.
> ready
> issue k1 ann 1
frame @3: posted
> after 4s
> drain
stop http
> down http
> after 999ms
> status
draining: ready no, for read no, reads no, writes no [needs http has journal_stalled]
finished 0, refused 0, aborted 0
> after 1ms
reply 2 after @0: outcome_unknown
> status
stopped: ready no, for read no, reads no, writes no [needs http has journal_stalled has journal_failed]
finished 0, refused 0, aborted 0
