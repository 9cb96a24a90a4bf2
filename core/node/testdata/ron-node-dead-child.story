# A service that is not up is reported as an unmet dependency, also if it was up before.
# It is restarted after a backoff; five restarts a minute are allowed.
> ready
> status
ready: ready yes, for read yes, reads yes, writes yes []
finished 0, refused 0, aborted 0
> down http
> status
degraded: ready no, for read no, reads yes, writes yes [needs http]
finished 0, refused 0, aborted 0
> due
in 100.822465ms: true
> after 500ms
start http
> up http
> status
ready: ready yes, for read yes, reads yes, writes yes []
finished 0, refused 0, aborted 0
