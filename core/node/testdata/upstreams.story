# A request goes to the endpoint that has the least to do; one that fails is tried again, at
# another; what was answered is over when the answer is whole.
> ready
> pick 0
7: endpoint 0, picked; again false
> tried failed
7: endpoint 0, picked; again true
> after 200ms
> retry
7: endpoint 1, picked; again false
> tried answered
7: endpoint 0, picked; again false
> tried completed
7: endpoint 0, picked; again false
> pick 0
7: endpoint 0, picked; again false
> tried unsent
7: endpoint 0, picked; again true
> tried unsent
7: endpoint 0, picked; again false

# Where there is no other endpoint, the same one is tried again.
> pick 1
7: endpoint 0, picked; again false
> tried failed
7: endpoint 0, picked; again true
> retry
7: endpoint 0, picked; again false

# How an upstream looks: one call is with it, and there was one retry.
> look 1
7: closed, 1 calls, 1 retries, 1 well, 0 out, 0 sick
