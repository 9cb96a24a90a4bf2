# A report begins when the node is told to end, though it serves on for a while. Who waits for his turn
# and leaves was never in.
> with lame_duck 1s
> ready
> arrive money 0.1 ann 7
0.1 goes
> drain
> arrive money 1.1 ann 7
1.1 goes
> arrive money 2.1 ann 7
> status
lame duck: ready no, for read no, reads yes, writes yes []
finished 0, refused 0, aborted 0
> settle 2.1 given up
> settle 0.1
> settle 1.1 turned away
> status
lame duck: ready no, for read no, reads yes, writes yes []
finished 1, refused 1, aborted 0
