# An indexed key is evicted if the window is more than half full. Then a request needs a
# read of the index that includes the evicted keys.
> ready
> issue k1 ann 10
frame @3: posted
> issue k2 ann 10
frame @4: posted
> issue k3 ann 10
frame @5: posted
> durable 5
> folded 5
reply 2 after @3: see @3.0
reply 3 after @4: see @4.0
reply 4 after @5: see @5.0
> indexed 5
> after 6s
frame @6: keys_forgotten
> issue k1 ann 10 <@2
reply 5 after @0: look again
> issue k1 ann 10 <@5 =@3
reply 6 after @3: see @3.0, replayed
> issue k4 ann 10 <@2
reply 7 after @0: look again
> issue k4 ann 10
frame @7: posted keys_forgotten
> find k3
reply 9 after @5: see @5.0
> find k9
reply 10 after @0: not_found
# A look-up with an index read that is too old is repeated; with a newer one it finds the
# outcome.
> find k1 <@2
reply 11 after @0: look again
> find k1 =@3
reply 12 after @3: see @3.0
> durable 7
> folded 7
reply 8 after @7: see @7.0
> status
ready: ready yes, for read yes, reads yes, writes yes []
finished 0, refused 0, aborted 0
