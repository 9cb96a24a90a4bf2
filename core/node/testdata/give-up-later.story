# An abort ends a drain; without requests in progress it has nothing to abort.
> ready
> issue k1 ann 10
frame @3: posted
> drain
stop http
> after 1s
> give_up
reply 2 after @0: outcome_unknown
kill http
> down http
> durable 3
> folded 3
> status
stopped: ready no, for read no, reads no, writes no [needs http]
finished 0, refused 0, aborted 0; replies given up 1
