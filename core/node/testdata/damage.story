# A journal that lost durable frames is read, and not written: the loss is reported, and
# intact frames stay readable.
> damaged
start http
start admin
start sampler
start indexer
start keeper
start audit
> up http
> up admin
> up sampler
> up indexer
> status
degraded: ready no, for read yes, reads yes, writes no [has journal_failed]
finished 0, refused 0, aborted 0
> due
in 0s: false
> issue k1 ann 5
reply 1 after @0: unavailable
