# The last frame is vouched for by another, a second later, when it is durable and nothing else
# comes; that one by none.
> ready
> issue k1 ann 1
frame @3: posted
> after 1s
> durable 3
> folded 3
reply 2 after @3: see @3.0
> after 1s
frame @4:
> after 1s
> durable 4
> folded 4
> after 1s
> after 1s

# On a full disk nobody vouches; then somebody does.
> issue k2 ann 1
frame @5: posted
> durable 5
> folded 5
reply 3 after @5: see @5.0
> room 5
> after 1s
> room 5000000
> after 1s
frame @6:
> durable 6
> folded 6
> after 1s

# While the clock is ahead of the machine's, each second is on record: a restart must find it.
> wall -10s
> after 1s
frame @7:
> durable 7
> folded 7
> after 1s
frame @8:
> durable 8
> folded 8
> wall 10s
> after 1s
> after 1s
