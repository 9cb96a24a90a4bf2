# An immediate abort waits only for the requests that it aborts.
> ready
> arrive wallet 0.1 ann 7
0.1 goes
> issue k1 ann 10
frame @3: posted
> give_up
reply 2 after @0: outcome_unknown
stop http
kill http
> status
aborting: ready no, for read no, reads no, writes no []
finished 0, refused 0, aborted 0; replies given up 1
> give_up
> down http
> settle 0.1 aborted
> after 1s
> status
stopped: ready no, for read no, reads no, writes no [needs http has journal_stalled]
finished 0, refused 0, aborted 1; replies given up 1
