# Without a quota of bytes a stream continues by quanta, at once: they are charged to its
# flow.
> counts
> ready
> arrive wallet 0.1 ann 7 +5000000000
0.1 goes with 65536
> stream 0.1 32768
0.1 goes with 65536
> stream 0.1 32768
0.1 goes with 65536
> settle 0.1 150000

# A request that has ended gets no decision, and neither does an earlier use of its slot.
> stream 0.1 32768
> stream 0.0 1

# A quota of bytes is charged the first part of a body at admission, and each further part
# before it continues. A part that exceeds the quota waits.
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

# A waiting part does not block a small request of the same tenant, and continues at its
# time. So each request in progress may exceed the quota by one part.
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

# An abort returns the charged bytes that were not sent, once: of 10000 charged bytes 1000
# were sent.
> settle 0.1 1000
> settle 0.1 0
> arrive query 2.1 ann 7 +1
2.1 goes with 1; rule 1 has 9999 left
> settle 2.1 1

# A body of unknown length is charged nothing at admission.
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

# A waiting part is returned too if the client disconnects.
> due
in 200ms: true
> settle 0.2 10000
> arrive wallet 0.3 ann 7 +?
0.3 goes with 0; rule 1 has 0 left
> stream 0.3 1
> settle 0.3 0

# If a body is shorter than declared, the rest is returned.
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

# A part that would wait beyond the deadline of the request, one second here, is rejected
# with the time to retry.
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

# A request that is rejected after it waited gets its charge back, the request itself too;
# so does one that a drain rejects.
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

# The quota of the instance paces parts of bodies and requests in turn: a 5 GiB upload
# blocks no request. A part has at most the bytes of half the time that others may wait.
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

# Two tenants stream, one of them two bodies: each gets the same.
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

# A part that waits for its turn beyond the deadline is rejected, and returned.
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

# A drain before a late tick admits the parts that are due.
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
