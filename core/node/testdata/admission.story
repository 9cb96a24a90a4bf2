# No request is admitted before the node serves.
> arrive wallet 0.1 ann
0.1: unavailable, for not_serving
> ready

# Two permits per facet. The third request waits for at most 25 ms, and is then rejected
# with the reason; a full facet does not block another one.
> arrive wallet 0.2 ann 7
0.2 goes
> arrive wallet 1.1 ann 7
1.1 goes
> arrive wallet 2.1 ann 7
> arrive query 3.1 ann 7
3.1 goes
> settle 0.2
2.1 goes
> arrive wallet 0.3 ann 7
> due
in 25ms: true
> after 25ms
0.3: busy, for queue_timeout, after 25ms
> settle 0.2

# Classes take turns, each for as many quanta as its weight; each rejection has its limit
# as the reason.
> arrive wallet 0.4 bob
> arrive wallet 4.1 cy
> arrive wallet 5.1 dan
5.1: busy, for class_limit
> arrive wallet 6.1 ann 7
> arrive wallet 7.1 ann 7
> arrive wallet 8.1 ann 7
8.1: busy, for queue_full
> settle 1.1
0.4 goes
> settle 2.1
4.1 goes

# A route has at most its limit of requests.
> arrive query 9.1 ann 7 /1
9.1 goes
> arrive query 10.1 ann 7 /1
10.1: busy, for route_limit
> settle 9.1
> arrive query 10.2 ann 7 /1
10.2 goes

# A drain admits no request and rejects the waiting ones; requests in progress continue.
> drain
6.1: unavailable, for not_serving
7.1: unavailable, for not_serving
stop http
> after 0s
> arrive wallet 11.1 ann 7
11.1: unavailable, for not_serving
> settle 6.1
