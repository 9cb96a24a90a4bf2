package mutants

// shares are bugs in who may hold permits, and in what a data directory knows of lost frames.
func shares() []Mutant {
	const (
		fair  = "core/gateway/drr/share.go"
		lasts = "adapters/httpapi/lasts.go"
		shell = "cmd/macronode/"

		agrees = "./core/gateway/drr TestAgrees$"
		use    = "./core/gateway/drr TestSharesInUse$"
		house  = "./core/gateway/admission TestShares$"
		room   = "./cmd/macronode TestOneStrangerLeavesRoomForOthers$"
		polls  = "./cmd/macronode TestLongPollsKeepNobodyFromLists$"
		golden = "./cmd/macronode TestSettingsOfEachKey$"
		loss   = "./cmd/macronode TestScripts/loss$"
	)
	return []Mutant{
		one("a caller without a share", "shares of permits", fair, "q.limits.Shares.Flow > 0 && int(f.out) >= q.limits.Shares.Flow", "false && f.out > 0", agrees, use, house, room),
		one("classes that do not count those behind them", "shares of permits", fair, "		out += q.classes[of-1].out\n", "		out = q.classes[of-1].out\n", agrees, use, house),
		one("a caller that stays parked", "shares of permits", fair, "	q.flows[at].out--\n	q.park(c, at)\n", "	q.flows[at].out--\n", agrees, sim),
		alone("one golden file has every key", one("nothing kept for the node's own", "shares of permits", shell+"admission.go", "permits*(100-c.Permits.Internal)/100", "permits", golden)),
		one("long polls that hold permits of lists", "what waits has permits of its own", lasts, "asksToWait(k.r.URL.RawQuery)", "false", polls, "./adapters/httpapi TestWhatLastsWantsAPermitOfStreams$"),
		one("tunnels that hold permits of requests", "what lasts has permits of its own", lasts, `len(k.r.Header["Upgrade"]) > 0 || accepts`, "accepts", "./cmd/macronode TestTunnelsHoldTheirOwnPermits$", "./adapters/httpapi TestTunnelsWantAPermitOfStreams$"),
		one("a mark that the journal's reader does not take", "acknowledged frames are missed", "adapters/journalfile/scan.go", "max(s.Known, s.From.LSN, s.Upto)", "max(s.From.LSN, s.Upto)", sim, "./cmd/macronode TestVerifySeesWhatIsGone$"),
		alone("one script has lost frames", one("an end that nobody misses", "acknowledged frames are missed", shell+"recover.go", "l.recoverFrom(kept, &st, h, l.known.LSN)", "l.recoverFrom(kept, &st, h, heads[0].LSN)", loss)),
		alone("the same", one("a loss given up without a word", "only an explicit decision gives frames up", shell+"backup.go", "(!v.Accept || !r.Checked.canAccept())", "!r.Checked.canAccept()", loss)),
	}
}
