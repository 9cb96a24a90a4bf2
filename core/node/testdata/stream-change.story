# A change finds a part of a body that waits for its quota. It goes when it was told to, whatever
# comes back in what time now; and while it waits it keeps out nobody who comes.
> counts
> with quota tenant/10000B/1s/10000
> ready
> arrive wallet 0.1 ann 7 +4096
0.1 goes with 4096; rule 1 has 5904 left
> stream 0.1 4096
0.1 goes with 4096
> stream 0.1 4096
> due
in 228.8ms: true
> change permits=2 queue=3 1=tenant/1000B/1s/10000
> due
in 228.8ms: true
> arrive query 1.1 bob 7 +1
1.1 goes with 1; rule 1 has 0 left
> after 228800us
0.1 goes with 4096
> settle 0.1 12288
> settle 1.1 1

# The same where the quota is gone meanwhile.
> with quota none
> with quota tenant/10000B/1s/10000
> ready
> arrive wallet 0.1 ann 7 +4096
0.1 goes with 4096; rule 1 has 5904 left
> stream 0.1 4096
0.1 goes with 4096
> stream 0.1 4096
> change permits=2 queue=3 1=none
> arrive query 1.1 bob 7 +4096
1.1 goes with 65536
> after 228800us
0.1 goes with 4096
> settle 0.1 12288
> settle 1.1 4096

# And where another has come in its place, which has charged nothing of it: so nothing of that is
# as good as free, and nothing is given back.
> with quota none
> with quota tenant/10000B/1s/10000
> ready
> arrive wallet 0.1 ann 7 +4096
0.1 goes with 4096; rule 1 has 5904 left
> stream 0.1 4096
0.1 goes with 4096
> stream 0.1 4096
> change permits=2 queue=3 fresh=1
> arrive query 1.1 bob 7 +4000
1.1 goes with 4000; rule 1 has 6000 left
> arrive query 2.1 bob 7 +4096
2.1 goes with 4096; rule 1 has 1904 left
> arrive wallet 3.1 bob 7 +4096
3.1: rate_limited, for quota_exceeded; rule 1 has 1904 left, come in 219.2ms
> settle 0.1 0
> arrive wallet 3.1 bob 7 +1000
3.1 goes with 1000; rule 1 has 904 left
> settle 1.1 4000
> settle 2.1 4096
> settle 3.1 1000

# What the other has charged a body that was there before is charged as any is: while that waits it
# keeps out nobody who comes, and it is given back.
> with quota none
> with quota tenant/10000B/1s/10000
> ready
> arrive wallet 0.1 ann 7 +4096
0.1 goes with 4096; rule 1 has 5904 left
> change permits=2 queue=3 fresh=1
> stream 0.1 4096
0.1 goes with 4096
> stream 0.1 4096
0.1 goes with 4096
> stream 0.1 4096
> due
in 228.8ms: true
> arrive query 1.1 bob 7 +100
1.1 goes with 100; rule 1 has 0 left
> settle 0.1 4096
> arrive query 2.1 bob 7 +100
2.1 goes with 100; rule 1 has 9800 left
