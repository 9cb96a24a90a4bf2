# The report of a drain counts the requests in progress and the new ones, each once, and
# none that ended before.
> ready
> arrive wallet 0.1 ann 7
0.1 goes
> arrive wallet 1.1 ann 7
1.1 goes
> arrive wallet 2.1 ann 7
> arrive query 3.1 ann 7
3.1 goes
> settle 3.1 aborted
> arrive query 3.2 ann 7
3.2 goes
> arrive query 4.1 bob
4.1 goes
> arrive query 5.1 ann 7
> settle 5.1 aborted
> status
ready: ready yes, for read yes, reads yes, writes yes []
finished 0, refused 0, aborted 0

# Waiting requests are rejected with 503, and new ones too.
> drain
2.1: unavailable, for not_serving
stop http
> after 0s
> arrive wallet 6.1 ann 7
6.1: unavailable, for not_serving
> status
draining: ready no, for read no, reads no, writes no []
finished 0, refused 2, aborted 0

# Each request in progress reports its completion; an event of an earlier use of the slot
# does not count.
> settle 0.1
> status
draining: ready no, for read no, reads no, writes no []
finished 1, refused 2, aborted 0
> settle 3.2 rejected
> status
draining: ready no, for read no, reads no, writes no []
finished 1, refused 3, aborted 0
> settle 4.1 aborted
> settle 4.1 aborted
> settle 3.1 aborted
> settle 2.1
> status
draining: ready no, for read no, reads no, writes no []
finished 1, refused 3, aborted 1

# Requests that are in progress at the end count as aborted, until they report another
# completion.
> down http
> status
stopped: ready no, for read no, reads no, writes no [needs http]
finished 1, refused 3, aborted 2
> settle 1.1 completed
> status
stopped: ready no, for read no, reads no, writes no [needs http]
finished 2, refused 3, aborted 1
