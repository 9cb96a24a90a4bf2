# If the node is idle for a second after the last frame is durable, a heartbeat frame
# proves it; the heartbeat has no further one.
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

# On a full disk no heartbeat is written; it follows when there is space.
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

# While the time is ahead of the clock of the machine, each second is journaled, so that a
# restart finds it.
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
