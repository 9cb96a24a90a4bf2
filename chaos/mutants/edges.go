package mutants

// edges are bugs of where the node meets the world: listeners, the loop.
func edges() []Mutant {
	const (
		server, api, looks = "adapters/httpserver/", "adapters/httpapi/", "adapters/loop/"

		guests = "./adapters/httpserver TestGuestsAgree$"
		asking = "./adapters/httpserver TestWhoHasBegunToAskIsAnswered$"
		unread = "./adapters/httpserver TestWhatLiesUnread$"
		table  = "./adapters/httpapi TestTheStateTable$"
	)
	return []Mutant{
		one("guest that nobody counts", "an end cuts no request", server+"guests.go", "	if !g.over {\n\t\tg.in++\n", "	if false {\n\t\tg.in++\n", guests, "./adapters/httpserver TestNewcomersAreTold$"),
		one("guests who come behind the last call", "an end comes", server+"guests.go", "	if !g.over {\n\t\tg.in++\n\t}\n\treturn !g.over\n", "	g.in++\n\treturn true\n", guests, "./adapters/httpserver TestAStopCutsNoRequest$"),
		one("answer that keeps its connection", "an end cuts no request", server+"httpserver.go", "if !a.begun && a.ending.Load() {", "if false {", "./adapters/httpserver TestTheGraceServes$", "./adapters/httpserver TestAStopCutsNoRequest$"),
		alone("a time that passes is waited for by one test", one("cut, and nobody is told", "what was cut is said", server+"httpserver.go", "		return ErrCut\n", "		return nil\n", "./adapters/httpserver TestTheDeadlineCuts$")),
		alone("one test begins and waits", one("asked, and dropped by net/http", "an end cuts no request", server+"httpserver.go", "for (l.asked() || time", "for (time", asking)),
		alone("one test comes and says nothing", one("who has just come is not heard", "an end cuts no request", server+"httpserver.go", "time.Now().Before(until) && len(l.unheard()) > 0)", "time.Now().Before(until) && l.count() < 0)", "./adapters/httpserver TestHearsWhoHasJustCome$")),
		alone("one test comes late", one("a time that is over lets nobody in", "an end resets nobody who has connected", server+"shut.go", "l.wake(now.Add(settling))", "l.wake(until)", "./adapters/httpserver TestADoorThatShutsLate$")),
		alone("one test knocks for ever", one("a door that newcomers hold open", "an end ends", server+"listener.go", " || l.late > backlog", "", "./adapters/httpserver TestADoorIsNotHeldOpen$")),
		alone("one test lets it lie", one("what lies unread was not asked", "an end cuts no request", server+"listener.go", "(c.heard.Load() || unread(c.Conn))", "c.heard.Load()", unread)),
		one("what was read in part was not asked", "an end cuts no request", server+"listener.go", "(c.heard.Load() || unread(c.Conn))", "unread(c.Conn)", asking, unread),
		alone("a new connection is met by one test", one("a connection that has not asked yet", "an end cuts no request", server+"listener.go", "is == http.StateNew || is == http.StateIdle", "is == http.StateIdle", unread)),
		one("one connection too many", "connections are bounded", server+"peers.go", "case len(l.open) < l.most:", "case len(l.open) <= l.most:", "./adapters/httpserver TestOneConnectionTooManyIsClosedAndCounted$", "./adapters/httpserver TestConnectionsAgree$"),
		alone("a time that passes is waited for by one test", Mutant{Name: "silence that is waited for", Holds: "connections without a request do not hold up the end", Edits: []Edit{
			{server + "listener.go", "	for _, c := range l.silent() {\n\t\t_ = c.Close()\n\t}\n", ""}, {server + "listener.go", "	for _, c := range l.unheard() {\n\t\t_ = c.Close()\n\t}\n", ""},
		}, Kills: []string{"./adapters/httpserver TestSilenceDelaysNothing$"}}),
		one("listener that refuses what the node would answer", "R2: a replay is an answer, and no write", api+"httpapi.go", "if asleep(&s) {", "if !s.Reads || r.method != http.MethodGet && !s.Writes {", table, "./adapters/httpapi TestReplaysWhereNothingIsWritten$"),
		one("listener that reads before the node does", "whoever is not ready says so", api+"httpapi.go", "if asleep(&s) {", "if false {", table, "./adapters/httpapi TestRonGateNobodyIsShedSilently$"),
		one("key that is over and lets in", "from its expiry on it is nobody's", api+"enter.go", "if k.key.ID == 0 || k.over {", "if k.key.ID == 0 {", "./adapters/httpapi TestAKeyThatIsOverIsNobodys$", "./adapters/httpapi TestAKeyIsMadeAndEnded$"),
		one("scope that nobody looks at", "every scope that is asked for", api+"enter.go", "if k.key.Scopes&scope != scope {", "if false {", "./adapters/httpapi TestReadsWantTheScope$", "./adapters/httpapi TestWhoMayDoWhat$"),
		one("asked once, and sent back", "who asks the index too early asks again", looks+"index.go", "r.Problem != event.StaleIndexRead || k.Index == nil {", "true {", "./adapters/loop TestLooksAgain$", "./adapters/loop TestNobodyIsSentAway$"),
		one("index that failed, and is believed", "an index that fails decides nothing", looks+"index.go", "				forget(in)\n", "", "./adapters/loop TestLooksAgain$", "./adapters/loop TestNobodyIsSentAway$"),
		one("failed flush that is folded", "nothing from there on is shown", looks+"loop.go", "Fault: l.ports.Fault(err)})\n\t\treturn\n", "Fault: l.ports.Fault(err)})\n", "./adapters/loop TestRefused$", "./adapters/loop TestAnyOrder$"),
		one("follower that died, and nobody hears", "answers do not lie", looks+"loop.go", "case err := <-l.lost:\n\t\treturn err\n", "", "./adapters/loop TestFollowerDies$", "./adapters/loop TestAnyOrder$"),
	}
}
