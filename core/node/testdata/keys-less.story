# A key can grant only what it has, and no caller can create a bootstrap key; an
# administrator can revoke any key.
> ready
> grant 9 1 7 1 admin
frame @3: key_created
> durable 3
> folded 3
reply 2 after @3: see @0.0
> grant 10 1 9 1
reply 3 after @3: forbidden
> grant 10 1 7 1 first
reply 4 after @0: bad_request
> grant 10 1 9 1 admin
frame @4: key_created
> durable 4
> folded 4
reply 5 after @4: see @0.0
> revoke 7 9 1
frame @5: key_revoked
> durable 5
> folded 5
reply 6 after @5: see @0.0

# A look-up needs the scope read.
> find k1
reply 7 after @5: unauthorized
> find k1 ^9
reply 8 after @5: forbidden
> find k1 ^7
reply 9 after @5: unauthorized
