# A slow flush stops writes; reads continue; its end resumes writes.
> ready
> issue k1 ann 10
frame @3: posted
> due
in 0s: true
> after 200ms
> status
degraded: ready no, for read yes, reads yes, writes no [has journal_stalled]
finished 0, refused 0, aborted 0
> issue k2 ann 1
reply 3 after @0: unavailable
> issue k1 ann 10
> durable 3
> folded 3
reply 2 after @3: see @3.0
reply 4 after @3: see @3.0, replayed
> status
ready: ready yes, for read yes, reads yes, writes yes []
finished 0, refused 0, aborted 0

# A full disk stops writes too, and resumes them when there is space.
> room 5
> issue k2 ann 1
reply 5 after @0: unavailable
> status
degraded: ready no, for read yes, reads yes, writes no [has disk_full]
finished 0, refused 0, aborted 0
> room 5000000
> status
ready: ready yes, for read yes, reads yes, writes yes []
finished 0, refused 0, aborted 0

# After a failed flush the outcomes in it are unknown, durable outcomes are still
# returned, and nothing new is written.
> issue k3 ann 1
frame @4: posted
> issue k4 ann 1
frame @5: posted
> durable 4
> refused 5
reply 7 after @0: outcome_unknown
> folded 4
reply 6 after @4: see @4.0
> issue k3 ann 1
reply 8 after @4: see @4.0, replayed
> issue k4 ann 1
reply 9 after @0: outcome_unknown
> issue k5 ann 1
reply 10 after @0: unavailable
> status
degraded: ready no, for read yes, reads yes, writes no [has journal_failed]
finished 0, refused 0, aborted 0

# A configuration that was rejected is reported, and changes nothing else.
> reloaded failed
> status
degraded: ready no, for read yes, reads yes, writes no [has journal_failed has config_rejected]
finished 0, refused 0, aborted 0
> reloaded well
> status
degraded: ready no, for read yes, reads yes, writes no [has journal_failed]
finished 0, refused 0, aborted 0

# An unreadable frame degrades the node until its restart.
> unreadable
> status
degraded: ready no, for read yes, reads yes, writes no [has journal_failed has journal_damaged]
finished 0, refused 0, aborted 0

# Files of objects that cannot be read or written degrade the node until they can.
> objects unreadable unwritable
> status
degraded: ready no, for read yes, reads yes, writes no [has journal_failed has journal_damaged has objects_unavailable has uploads_refused]
finished 0, refused 0, aborted 0
> objects unwritable
> status
degraded: ready no, for read yes, reads yes, writes no [has journal_failed has journal_damaged has uploads_refused]
finished 0, refused 0, aborted 0
> objects
> status
degraded: ready no, for read yes, reads yes, writes no [has journal_failed has journal_damaged]
finished 0, refused 0, aborted 0

# A provider of objects that cannot be used degrades the node until it can be used again.
> providers 1
> status
degraded: ready no, for read yes, reads yes, writes no [has journal_failed has journal_damaged has provider_failed]
finished 0, refused 0, aborted 0
> providers 0
> status
degraded: ready no, for read yes, reads yes, writes no [has journal_failed has journal_damaged]
finished 0, refused 0, aborted 0

# Objects that lack copies degrade the node, although every provider can be used, until the copies are restored.
> providers 0 lacking
> status
degraded: ready no, for read yes, reads yes, writes no [has journal_failed has journal_damaged has copies_missing]
finished 0, refused 0, aborted 0
> providers 0
> status
degraded: ready no, for read yes, reads yes, writes no [has journal_failed has journal_damaged]
finished 0, refused 0, aborted 0

# Objects that are lost degrade the node until they are uploaded again, deleted or found again.
> providers 0 lost
> status
degraded: ready no, for read yes, reads yes, writes no [has journal_failed has journal_damaged has objects_lost]
finished 0, refused 0, aborted 0
> providers 0
> status
degraded: ready no, for read yes, reads yes, writes no [has journal_failed has journal_damaged]
finished 0, refused 0, aborted 0
