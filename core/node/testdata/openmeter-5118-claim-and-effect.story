# A flush fails: whoever claimed its keys is told that nobody knows, and a retry is
# never shown a success that the disk may not have.
> ready
> issue k1 ann 10
frame @3: posted
> refused 3
reply 2 after @0: outcome_unknown
> issue k1 ann 10
reply 3 after @0: outcome_unknown
