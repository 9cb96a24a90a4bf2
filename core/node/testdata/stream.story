# Where nobody counts bytes, what streams goes on by quanta, at once: they are charged to
# its flow, and that is all.
> counts
> ready
> arrive wallet 0.1 ann 7 +5000000000
0.1 goes with 65536
> stream 0.1 32768
0.1 goes with 65536
> stream 0.1 32768
0.1 goes with 65536
> settle 0.1 150000

# Nothing is told of a request that was settled, and nothing of an earlier one.
> stream 0.1 32768
> stream 0.0 1

# A quota of bytes is charged a part of a body when it comes, and each further part before it
# goes on. What the quota does not have is not refused: it waits until it has.
> with quota tenant/10000B/1s/10000
> ready
> arrive wallet 0.1 ann 7 +9000
0.1 goes with 4096; rule 1 has 5904 left
> stream 0.1 4904
0.1 goes with 4096
> stream 0.1 808
0.1 goes with 808
> stream 0.1 3000
> due
in 200ms: true

# It waits beside what comes: a small request of the same tenant has of what there is as well,
# and what streams goes on when it was told to. So there may be one part more for each that is in.
> after 100ms
> arrive wallet 1.1 ann 7 +2000
1.1 goes with 2000; rule 1 has 0 left
> arrive query 2.1 ann 7 +1
2.1: rate_limited, for quota_exceeded; rule 1 has 0 left, come in 100µs
> after 100ms
0.1 goes with 3000
> stream 0.1 1000
> due
in 300ms: true
> settle 1.1 2000
> after 300ms
0.1 goes with 1000

# Abort midway: what was charged and has not gone is given back, once. Of 10000 that were charged to it
# now 1000 have gone.
> settle 0.1 1000
> settle 0.1 0
> arrive query 2.1 ann 7 +1
2.1 goes with 1; rule 1 has 9999 left
> settle 2.1 1

# Of a body of which nobody knows how long it is nothing is charged when it comes.
> after 10s
frame @3:
> arrive wallet 0.2 ann 7 +?
0.2 goes with 0; rule 1 has 10000 left
> stream 0.2 200000
0.2 goes with 4096
> stream 0.2 200000
0.2 goes with 4096
> stream 0.2 1808
0.2 goes with 1808
> stream 0.2 200000

# A part that waits is given back too when its client leaves.
> due
in 200ms: true
> settle 0.2 10000
> arrive wallet 0.3 ann 7 +?
0.3 goes with 0; rule 1 has 0 left
> stream 0.3 1
> settle 0.3 0

# Who said more than he brought is given back the rest.
> with quota none
> with quota tenant/10000000B/1s/100000
> ready
> arrive wallet 0.1 ann 7 +65536
0.1 goes with 65536; rule 1 has 34464 left
> arrive wallet 1.1 ann 7 +65536
1.1: rate_limited, for quota_exceeded; rule 1 has 34464 left, come in 3.1072ms
> settle 0.1 0
> arrive wallet 1.2 ann 7 +65536
1.2 goes with 65536; rule 1 has 34464 left
> settle 1.2 65536

# What would take longer than the request has patience, which is a second here, is refused, and
# when to come again is told.
> with quota none
> with quota tenant/1000B/1s/1
> ready
> arrive wallet 0.1 ann 7 +?
0.1 goes with 0; rule 1 has 1 left
> stream 0.1 65536
0.1 goes with 4096
> stream 0.1 65536
0.1: rate_limited, for quota_exceeded; rule 1 has 0 left, come in 4.096s
> settle 0.1 65536

# A request that waited in vain is given back what it was charged, itself too; so is who
# waited when a drain came.
> with quota none
> with quota tenant/1/1h/4
> with quota tenant/1000B/1h/4000
> ready
> arrive wallet 0.1 ann 7 +1000
0.1 goes with 1000; rule 1 has 3 left
> arrive wallet 1.1 ann 7 +1000
1.1 goes with 1000; rule 1 has 2 left
> arrive wallet 2.1 ann 7 +1000
> after 25ms
2.1: busy, for queue_timeout, after 25ms
> arrive wallet 2.2 ann 7 +1000
> settle 2.2
> arrive wallet 2.3 ann 7 +1000
> settle 0.1
2.3 goes with 1000
> settle 1.1
> settle 2.3

# The quota of the instance paces parts of bodies and requests in turn: a 5 GiB upload keeps out
# nobody. No part is larger than what it gives in half the time that others may wait.
> with quota none
> with quota instance/4096000B/1s/4096
> ready
> arrive wallet 0.1 ann 7 +5368709120
0.1 goes with 32768
> stream 0.1 32768
> arrive query 1.1 bob 8 +4096
> after 7ms
0.1 goes with 32768
> arrive query 2.1 cy 9 +100
> stream 0.1 32768
> after 8ms
1.1 goes with 4096, after 15ms
> after 1ms
0.1 goes with 32768
> after 8ms
2.1 goes with 100, after 17ms
> settle 1.1 4096
> settle 2.1 100

# Two tenants stream, one of them with two bodies: each has as much as the other.
> after 20ms
> arrive wallet 3.1 ann 7 +?
3.1 goes with 0
> arrive query 4.1 bob 8 +?
4.1 goes with 0
> stream 0.1 32768
0.1 goes with 32768
> stream 3.1 32768
> stream 4.1 32768
> after 8ms
3.1 goes with 32768
> stream 0.1 32768
> after 8ms
4.1 goes with 32768
> stream 4.1 32768
> after 8ms
0.1 goes with 32768
> after 8ms
4.1 goes with 32768
> stream 3.1 32768
> drain
stop http
> after 8ms
3.1 goes with 32768
> after 8ms

# Who waits for his turn for longer than he has patience is told so, and given back his part.
> with quota none
> with quota instance/1000B/1s/1
> with quota tenant/1B/1s/20000
> ready
> arrive wallet 0.1 ann 7 +?
0.1 goes with 0; rule 2 has 20000 left
> stream 0.1 4096
0.1 goes with 4096
> stream 0.1 4096
> after 1s
frame @3:
0.1: rate_limited, for pacing_timeout
> after 4s
> arrive query 1.1 ann 7 +?
1.1 goes with 0; rule 2 has 15909 left
> settle 1.1
> settle 0.1 4096

# A drain that comes before a late tick lets what may go by now go.
> with quota none
> with quota instance/4096000B/1s/4096
> ready
> arrive wallet 0.1 ann 7 +?
0.1 goes with 0
> stream 0.1 8192
0.1 goes with 8192
> stream 0.1 4096
> late 2ms
> drain
0.1 goes with 4096
stop http
> settle 0.1 12288
