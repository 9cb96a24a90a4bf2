# The key of a request that timed out stays used: a later duplicate gets the first
# outcome, and has no second effect.
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
