# A machine's clock that is set back leaves the node's time ahead: the node says so while it is more than 10 s.
> ready
> wall -11s
> after 1s
frame @3:
> durable 3
> folded 3
> indexed 3
> status
degraded: ready yes, for read yes, reads yes, writes yes [has clock_ahead]
finished 0, refused 0, aborted 0
> wall 1s
> after 1s
frame @4:
> status
ready: ready yes, for read yes, reads yes, writes yes []
finished 0, refused 0, aborted 0
