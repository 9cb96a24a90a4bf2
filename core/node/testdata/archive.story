# Segments that cannot be moved into the archive degrade the node until they are.
> ready
> archived failed
> status
degraded: ready yes, for read yes, reads yes, writes yes [has archive_failed]
finished 0, refused 0, aborted 0
> archived well
> status
ready: ready yes, for read yes, reads yes, writes yes []
finished 0, refused 0, aborted 0
