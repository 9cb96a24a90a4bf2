# A quota rejects at once, with the time to retry. The quotas of other subjects do not
# change.
> with quota peer/1/1s/1
> with quota tenant/10/1s/2
> ready
> arrive wallet 0.1 ann 7
0.1 goes; rule 1 has 0 left
> arrive query 1.1 ann 7
1.1: rate_limited, for quota_exceeded; rule 1 has 0 left, come in 1s
> arrive query 1.2 bob 8
1.2 goes; rule 1 has 0 left
> arrive query 2.1 cy 7
2.1 goes; rule 1 has 0 left
> settle 0.1
> after 1s
frame @3:
> arrive wallet 0.2 ann 7
0.2 goes; rule 1 has 0 left
> settle 0.2

# A request that one quota rejects is not charged to another: tenant 7 has as much left.
> arrive wallet 0.3 ann 7
0.3: rate_limited, for quota_exceeded; rule 1 has 0 left, come in 1s
> arrive wallet 0.4 dan 7
0.4 goes; rule 1 has 0 left

# The quota of the instance paces the queue, and classes take turns. A request that would
# wait for too long is rejected at once.
> with quota none
> with quota instance/1000/1s/1
> ready
> arrive wallet 0.1 eve 7
0.1 goes
> arrive wallet 1.1 fay
> arrive wallet 2.1 gus 8
> due
in 1ms: true
> after 1ms
1.1 goes, after 1ms
> settle 0.1
> after 1ms
2.1 goes, after 2ms
> settle 2.1
> settle 1.1

# A late tick delays no request: another arrival, also a rejected one or a part of a body,
# admits what is due.
> with quota peer/1/1h/1
> ready
> arrive wallet 0.1 eve 7
0.1 goes; rule 2 has 0 left
> arrive wallet 1.1 fay
> late 2ms
> arrive query 2.1 eve 7
2.1: rate_limited, for quota_exceeded; rule 2 has 0 left, come in 59m59.998s
1.1 goes, after 2ms
> arrive query 3.1 gus 8
> late 2ms
> stream 0.1 100
0.1 goes
3.1 goes, after 2ms
> settle 0.1
> settle 1.1
> settle 3.1

# A class with five times the weight may wait longer: two of its requests are admitted
# before one more anonymous request.
> with quota none
> with quota instance/150/1s/1
> ready
> arrive wallet 0.1 eve
0.1 goes
> settle 0.1
> arrive wallet 1.1 eve
> arrive wallet 2.1 eve
2.1: rate_limited, for pacing_timeout
> arrive wallet 3.1 gus 7
> arrive wallet 4.1 gus 7
> after 7ms
3.1 goes, after 7ms
> after 7ms
4.1 goes, after 14ms
> settle 3.1
> after 7ms
1.1 goes, after 21ms

# A quota in shadow mode rejects nothing, and reports what it would have rejected.
> with quota none
> with quota key/1/1h/1/shadow
> ready
> arrive wallet 0.1 hal 7
0.1 goes
> after 5ms
> arrive query 1.1 ida 7
1.1 goes; shadows 1

# A request that another limit rejects is charged nothing.
> with quota none
> with quota peer/1/1h/2
> ready
> arrive wallet 0.1 joy 7 /1
0.1 goes; rule 1 has 1 left
> arrive wallet 1.1 joy 7 /1
1.1: busy, for route_limit
> arrive wallet 2.1 joy 7
2.1 goes; rule 1 has 0 left

# A quota of a route counts the requests of all callers to it, and no others.
> with quota none
> with quota route/1/1h/2
> ready
> arrive wallet 0.1 kit /1
0.1 goes; rule 1 has 1 left
> settle 0.1
> arrive wallet 0.2 lea 7 /1
0.2 goes; rule 1 has 0 left
> settle 0.2
> arrive wallet 0.3 mo 8 /1
0.3: rate_limited, for quota_exceeded; rule 1 has 0 left, come in 1h0m0s
> arrive wallet 0.4 mo 8
0.4 goes
