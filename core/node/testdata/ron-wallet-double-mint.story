# Four identical issues at once: the look-up of the key and the decision are one step, so
# one issues, and the others get its outcome.
> ready
> issue k1 ann 10
frame @3: posted
> issue k1 ann 10
> issue k1 ann 10
reply 4 after @0: in_progress
> issue k1 ann 10
reply 5 after @0: in_progress
> durable 3
> folded 3
reply 2 after @3: see @3.0
reply 3 after @3: see @3.0, replayed
> issue k1 ann 10
reply 6 after @3: see @3.0, replayed
