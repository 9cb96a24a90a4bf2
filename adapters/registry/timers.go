package registry

// Timers are all there are. What the core is to do in time is in its own words, on the
// loop's one timer.
var Timers = []Timer{
	{"adapters/audit.Log.wait.due", "audit lines are written", "Limits.Every, 1 s"},
	{"adapters/client.Client.try.ctx", "one try of a client is given up", "the client's own"},
	{"adapters/client.Client.listen.silence", "a client believes that its stream is dead", "the client's own"},
	{"adapters/client.sleep.t", "a client tries again", "the client's own"},
	{"adapters/httpapi.balance.ctx", "a read gives up waiting for its movement", "http.request_deadline"},
	{"adapters/httpapi.changes.ctx", "a wait for changes ends without one", "what is asked for, at most http.request_deadline"},
	{"adapters/httpapi.makeKey.ctx", "the making of a key is told to be unknown yet", "http.request_deadline"},
	{"adapters/httpapi.revokeKey.ctx", "the end of a key is told to be unknown yet", "http.request_deadline"},
	{"adapters/httpapi.call.outcome.ctx", "the look for an outcome is given up", "http.request_deadline"},
	{"adapters/httpapi.call.sight.ctx", "a read gives up waiting for the index", "http.request_deadline"},
	{"adapters/httpapi.stream.wait.ctx", "a stream looks whether it is to end, or says that it lives", "250 ms"},
	{"adapters/httpapi.call.submit.ctx", "a write is told that its outcome is not known yet", "http.request_deadline"},
	{"adapters/httpserver.Server.finish.quiet", "requests are cut", "node.drain"},
	{"adapters/httpserver.Server.finish.silent", "connections that never spoke are closed", "350 ms"},
	{"adapters/httpserver.Server.wait.t", "a step of the end of a listener", "350 ms, or node.drain"},
	{"adapters/indexer.folding.run.tick", "a small tail is written", "Limits.Interval, 1 min"},
	{"adapters/loop.Desk.informed.pause", "a request is asked again, with a younger index", "1 ms, doubling to 100 ms"},
	{"adapters/loop.Loop.run.timer", "the node's next step without an event", "what the node says is due"},
	{"adapters/snapshot.Maker.Run.tick", "it is looked whether a snapshot is due", "1 s"},
	{"adapters/snapshot.rest.t", "the making of a snapshot goes on", "as long as it has just worked"},
	{"cmd/macronode.beat.t", "the service manager is told that the node lives", "half of what it allows"},
	{"cmd/macronode.console.admin.ctx", "a client's request to the admin listener is given up", "the verb's own"},
	{"cmd/macronode.life.end.ctx", "children that do not end are left", "3 s"},
	{"cmd/macronode.life.end.soon", "the index and the audit file are left as they are", "1 s"},
	{"cmd/macronode.life.sample.tick", "the disk and the clock are looked at", "250 ms"},
	{"cmd/macronode.sleep.t", "whoever pauses goes on", "as asked"},
}
