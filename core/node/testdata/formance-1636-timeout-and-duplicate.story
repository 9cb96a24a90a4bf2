# A request that timed out leaves its key taken: the duplicate that comes after finds
# the first outcome, and does nothing a second time.
> ready
> issue k1 ann 10
frame @3: posted
> durable 3
> after 5s
frame @4:
reply 2 after @0: outcome_unknown
> folded 3
> issue k1 ann 10
reply 3 after @3: see @3.0, replayed
