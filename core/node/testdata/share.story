# One tenant may have two of three held replies: its further requests are rejected as busy
# until these replies are sent.
> with share 2
> ready
> issue k1 ann 10
frame @3: posted
> issue k2 ann 10
frame @4: posted
> issue k3 ann 10
reply 4 after @0: busy
> find k1
reply 5 after @0: busy
> durable 4
> folded 4
reply 2 after @3: see @3.0
reply 3 after @4: see @4.0
> issue k3 ann 10
frame @5: posted
> durable 5
> folded 5
reply 6 after @5: see @5.0
