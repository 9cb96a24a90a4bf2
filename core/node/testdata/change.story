# Fewer permits: requests in progress stay, and no new one is admitted before there is
# room. A smaller queue: waiting requests stay.
> ready
> arrive wallet 0.1 ann 7
0.1 goes
> arrive wallet 1.1 ann 7
1.1 goes
> arrive wallet 2.1 ann 7
> arrive wallet 3.1 cy
> change permits=1 queue=1
> arrive wallet 4.1 ann 7
4.1: busy, for queue_full
> settle 0.1
> settle 1.1
3.1 goes
> settle 2.1
> settle 3.1

# More permits: waiting requests are admitted at once.
> arrive wallet 0.2 ann 7
0.2 goes
> arrive wallet 1.2 ann 7
> change permits=2 queue=3
1.2 goes
> settle 0.2
> settle 1.2

# A class with the weight 0 is not served: its waiting requests are rejected at once.
> arrive wallet 0.3 ann 7
0.3 goes
> arrive wallet 1.3 ann 7
1.3 goes
> arrive wallet 2.3 cy
> arrive wallet 3.3 ann 7
> after 5ms
> change anon=0
2.3: busy, for class_disabled, after 5ms
> arrive wallet 4.3 cy
4.3: busy, for class_disabled
> settle 0.3
3.3 goes, after 5ms
> settle 1.3
> settle 3.3
> change anon=1

# The used part of a quota stays used: two of three were used, so three of five are left,
# whatever the new rate.
> change 1=key/1/1s/3
> arrive wallet 0.4 ann 7
0.4 goes; rule 1 has 2 left
> settle 0.4
> arrive wallet 0.5 ann 7
0.5 goes; rule 1 has 1 left
> settle 0.5
> change 1=key/1/10s/5
> arrive wallet 0.6 ann 7
0.6 goes; rule 1 has 2 left
> settle 0.6
# With a smaller burst the used part is cut to it: no caller owes for what was admitted.
> change 1=key/1/1s/1
> arrive wallet 0.7 ann 7
0.7: rate_limited, for quota_exceeded; rule 1 has 0 left, come in 1s
> after 1s
frame @3:
> arrive wallet 0.7 ann 7
0.7 goes; rule 1 has 0 left
> settle 0.7
# A removed quota counts no request.
> change 1=none
> arrive wallet 0.8 ann 7
0.8 goes
> settle 0.8

# A new limit of a route counts the requests that are in progress.
> arrive wallet 0.9 ann 7 /4
0.9 goes
> change route4=1
> arrive wallet 1.9 ann 7 /4
1.9: busy, for route_limit
> settle 0.9
> arrive wallet 1.9 ann 7 /4
1.9 goes
> settle 1.9

# A request at a removed endpoint is completed, and retried at another one if it fails.
> pick 0
7: endpoint 0, picked; again false
> change up0=2
> tried failed
7: endpoint 0, picked; again true
> retry
7: endpoint 1, picked; again false
> tried answered
7: endpoint 0, picked; again false
> change up0=0
> tried completed
7: endpoint 0, picked; again false
> pick 0
7: endpoint 0, no_healthy_endpoint; again false
> pick 9
7: endpoint 0, no_healthy_endpoint; again false

# If no endpoint stays, it may be another service: no request is retried there.
> change up0=1
> pick 0
7: endpoint 0, picked; again false
> change up0=2
> tried failed
7: endpoint 0, picked; again false
> pick 0
7: endpoint 1, picked; again false

# A policy that exceeds the limits of the start is rejected.
> change permits=4 queue=1
policy: more wallet permits than the replies that the node can hold since its start: 4, and it holds 3
> change permits=2 queue=400
policy: permits and queues need more slots than the node was started with: 2010, and it has 26
