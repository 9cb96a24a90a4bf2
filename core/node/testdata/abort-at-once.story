# With an abort time of 0 the requests are still aborted, and counted.
> with abort 0s
> ready
> arrive wallet 0.1 ann 7
0.1 goes
> issue k1 ann 10
frame @3: posted
> drain
stop http
> after 3s
reply 2 after @0: outcome_unknown
kill http
> status
stopped: ready no, for read no, reads no, writes no [has journal_stalled]
finished 0, refused 0, aborted 1; replies given up 1
> settle 0.1 aborted
> status
stopped: ready no, for read no, reads no, writes no [has journal_stalled]
finished 0, refused 0, aborted 1; replies given up 1
