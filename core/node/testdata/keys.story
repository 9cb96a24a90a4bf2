# A key that another key created; a revocation takes effect in the next step.
> ready
> grant 8 1 7 1
frame @3: key_created
> durable 3
> folded 3
reply 2 after @3: see @0.0
> grant 9 2 8 1
frame @4: key_created
> revoke 8 7 1
frame @5: key_revoked
> grant 10 1 8 1
> durable 5
> folded 5
reply 3 after @4: see @0.0
reply 4 after @5: see @0.0
reply 5 after @5: unauthorized

# A repeated creation or revocation has no second effect; an unknown key is not found.
> revoke 8 7 1
reply 6 after @5: see @0.0
> revoke 5 7 1
reply 7 after @5: not_found
> grant 9 2 7 1
reply 8 after @5: see @0.0

# The bootstrap key is replaced if its file was lost.
> instead 6 1
frame @6: key_revoked bootstrap_key_created
> durable 6
> folded 6
reply 9 after @6: see @0.0
> issue k1 ann 5
reply 10 after @6: unauthorized
> issue k1 ann 5 ^6
frame @7: posted
> durable 7
> folded 7
reply 11 after @7: see @7.0
