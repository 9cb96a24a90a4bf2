# A flush fails: the requests of its keys get outcome_unknown, and a retry never gets a
# success that the disk may not have.
> ready
> issue k1 ann 10
frame @3: posted
> refused 3
reply 2 after @0: outcome_unknown
> issue k1 ann 10
reply 3 after @0: outcome_unknown
