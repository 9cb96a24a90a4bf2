# The report begins with the signal, although the node still serves. A waiting request of
# a client that disconnects is not counted.
> with lame_duck 1s
> ready
> arrive wallet 0.1 ann 7
0.1 goes
> drain
> arrive wallet 1.1 ann 7
1.1 goes
> arrive wallet 2.1 ann 7
> status
lame_duck: ready no, for read no, reads yes, writes yes []
finished 0, refused 0, aborted 0
> settle 2.1 aborted
> settle 0.1
> settle 1.1 rejected
> status
lame_duck: ready no, for read no, reads yes, writes yes []
finished 1, refused 1, aborted 0
