# The clock of the machine is behind the time of the node, which continues from the
# journal at the next start. A drain journals the time, so that the next start does not
# read an earlier one.
> ready
> issue k1 ann 10
frame @3: posted
> durable 3
> folded 3
reply 2 after @3: see @3.0
> wall -5s
> after 300ms
> drain
stop http
> due
in 0s: true
> after 0s
frame @4:
> durable 4
> folded 4
