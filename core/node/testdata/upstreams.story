# A request goes to the endpoint with the fewest requests; a failed one is retried at
# another endpoint; an attempt ends when its response is complete.
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

# If there is no other endpoint, the same one gets the retry.
> pick 1
7: endpoint 0, picked; again false
> tried failed
7: endpoint 0, picked; again true
> retry
7: endpoint 0, picked; again false

# The statistics of an upstream: one request in progress, and one retry.
> look 1
7: closed, 1 calls, 1 retries, 1 well, 0 out, 0 sick
