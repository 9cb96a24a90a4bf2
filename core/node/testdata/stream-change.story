# A part of a body waits for its quota while the policy changes. It continues at its old
# time, whatever the new rate; meanwhile it delays no new request.
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

# The same if the quota is removed meanwhile.
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

# The same if another quota has taken its place: that quota has charged nothing for the
# part, so nothing is returned to it.
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

# A part that the new quota charges to an older body is charged like any other: while it
# waits it delays no new request, and it is returned.
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
