# A drain that cannot finish aborts requests at its deadline, and reports how many.
> ready
> arrive wallet 0.1 ann 7
0.1 goes
> issue k1 ann 10
frame @3: posted
> drain
stop http
> after 1s
> due
in 1s: true
> after 2s
reply 2 after @0: outcome_unknown
kill http
> settle 0.1 aborted
> status
aborting: ready no, for read no, reads no, writes no [has journal_stalled]
finished 0, refused 0, aborted 1; replies given up 1
> down http
> due
in 1s: true
> after 1s
> status
stopped: ready no, for read no, reads no, writes no [needs http has journal_stalled]
finished 0, refused 0, aborted 1; replies given up 1
