# An administrator manages the keys of its own tenant, and of no other, whatever tenant it
# names.
> ready
> grant 9 2 7 1
frame @3: key_created
> durable 3
> folded 3
reply 2 after @3: see @0.0
> grant 10 1 9 2
reply 3 after @3: forbidden
> grant 10 2 9 1
reply 4 after @3: forbidden
> revoke 7 9 2
reply 5 after @3: not_found
> revoke 9 9 1
reply 6 after @3: forbidden

# A tenant has a quarter of the four keys, and the last is reserved for the bootstrap key.
> grant 11 2 9 2
reply 7 after @3: limits_exceeded
> grant 11 1 7 1
frame @4: key_created
> grant 12 1 7 1
> durable 4
> folded 4
reply 8 after @4: see @0.0
reply 9 after @4: limits_exceeded

# An administrator of the default tenant manages the keys of all tenants.
> revoke 9 7 1
frame @5: key_revoked
> durable 5
> folded 5
reply 10 after @5: see @0.0

# A known key needs no room, and there is one bootstrap key.
> grant 9 2 7 1
reply 11 after @5: see @0.0
> enrol 13
reply 12 after @5: limits_exceeded

# On a full disk no key is created or revoked; known outcomes are returned.
> room 5
> grant 12 1 7 1
reply 13 after @0: unavailable
> grant 11 1 7 1
reply 14 after @5: see @0.0
> revoke 11 7 1
reply 15 after @0: unavailable
> revoke 9 7 1
reply 16 after @5: see @0.0
