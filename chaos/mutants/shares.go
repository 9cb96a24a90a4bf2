package mutants

// shares are bugs of shares of permits, and of lost frames.
func shares() []Mutant {
	const (
		fair   = "core/gateway/drr/share.go"
		permit = "adapters/httpapi/permit.go"
		shell  = "cmd/macronode/"
		give   = "core/gateway/admission/give_way.go"

		agrees        = "./core/gateway/drr TestMatchesModel$"
		use           = "./core/gateway/drr TestSharesInUse$"
		admissionTest = "./core/gateway/admission TestShares$"
		room          = "./cmd/macronode/internal/cli TestAnonymousTunnelsLeavePermits$"
		polls         = "./cmd/macronode/internal/cli TestLongPollsLeaveListPermits$"
		golden        = "./cmd/macronode/internal/settings TestSettingsOfEachKey$"
		loss          = "./cmd/macronode TestScripts/loss$"
	)
	return []Mutant{
		alone("one test pauses a small response", one("a small response has one deadline", "a client is not blamed for a slow upstream", "adapters/proxy/response.go", "if c.isSmall = c.isSmall && c.rest == 0; c.isSmall {", "if c.isSmall {", "./adapters/proxy TestPausedStreamCompletes$")),
		one("share of a caller is not limited", "shares of permits", fair, "q.limits.Shares.Flow > 0 && int(f.out) >= q.limits.Shares.Flow", "false && f.out > 0", agrees, use, admissionTest, room),
		one("a tenant takes the last permits of streams", "a tenant leaves permits of streams to others", "core/gateway/admission/room.go", "in.Class == types.ClassInternal {", "in.Class != types.ClassAnon {", "./core/gateway/admission TestMatchesModel$", "./core/gateway/admission TestStreamsLeaveRoom$", sim),
		one("a peer takes the last permits of streams", "a peer leaves permits of streams to others", "core/gateway/admission/room.go", "share.Left(0, held, q.Free(in.Class)) > 0", "held > 0", "./core/gateway/admission TestMatchesModel$", "./core/gateway/admission TestStreamsLeaveRoom$", sim, "./cmd/macronode/internal/cli TestTunnelsOfTwoAddressesLeavePermits$"),
		alone("random histories rarely have one", one("a request that has just begun gives way", "a request that lasts gives way to a peer without a permit", give, "ok && a.rows[from].since.Add(a.limits.GiveWay) <= now", "ok", "./core/gateway/admission TestGiveWay$")),
		one("a peer with permits takes another one", "a request that lasts gives way to a peer without a permit", give, "q.First(place) && q.Uses(r.flow) == 0 &&", "q.First(place) &&", "./core/gateway/admission TestGiveWay$", "./core/gateway/admission TestMatchesModel$", "./chaos/trace TestEveryStepIsPermitted$"),
		one("no peer without a permit is served", "a request that lasts gives way to a peer without a permit", give, "return a.limits.GiveWay > 0 &&", "return a.limits.GiveWay < 0 &&", "./core/gateway/admission TestGiveWay$", "./cmd/macronode/internal/cli TestPeerWithoutPermitIsServed$"),
		alone("one node has requests that last", one("a request that gave way goes on reading", "a request that gave way ends", "adapters/httpapi/lost_permit.go", "		at = time.Unix(1, 0)\n", "", "./adapters/httpapi TestGiveWayEndsCall$")),
		alone("the same", one("a request that gave way waits for its upstream", "a request that gave way ends", "adapters/proxy/exchange.go", "		m.OnLostPermit(t)\n", "		_ = m\n", "./cmd/macronode/internal/cli TestPeerWithoutPermitIsServed/proxy$")),
		alone("the same", one("a request that may have been done gets 429", "an unknown outcome is not called a rejection", "adapters/proxy/outcome.go", "!isIdempotent(t.r.Method) && t.isBodyRead()", "false", "./cmd/macronode/internal/cli TestPeerWithoutPermitIsServed/proxy$")),
		one("lower classes are not counted", "shares of permits", fair, "		out += q.classes[of-1].out\n", "		out = q.classes[of-1].out\n", agrees, use, admissionTest),
		one("caller at its share is never resumed", "shares of permits", fair, "	q.flows[at].out--\n	q.park(c, at)\n", "	q.flows[at].out--\n", agrees, sim),
		alone("one golden file has every key", one("permits for the node itself are not reserved", "shares of permits", "cmd/macronode/internal/settings/policy.go", "permits*(100-c.Permits.Internal)/100", "permits", golden)),
		one("long polls take query permits", "waiting requests have their own permits", permit, "mayWait(k.r.URL.RawQuery)", "false", polls, "./adapters/httpapi TestWaitingRequestsUseStreamPermits$"),
		alone("one test has streams that read at the same time", one("streams are read all at once", "streams leave the processors to others", "adapters/httpapi/stream.go", "for !s.awaitTurn() {", "for false {", "./adapters/httpapi TestStreamsReadInTurn$")),
		alone("one test has three tenants", one("the queue of a tenant goes before those of others", "tenants get slots in turn", "adapters/httpapi/tenant_slots.go", "s.waits = append(others, own...)", "s.waits = append(own, others...)", "./adapters/httpapi TestTenantsGetSlotsInTurn$")),
		one("large pages are read all at once", "large pages leave the processors to others", "adapters/httpapi/history_reads.go", "if rows <= defaultPage {", "if rows > 0 {", "./adapters/httpapi TestLargePagesTakeASlot$", "./adapters/httpapi TestLargePagesReadInTurn$"),
		alone("one test uses the refs of others", one("ref_used has the txid of an operation that the key may not see", "a bounded key sees what it covers", "adapters/httpapi/authorization.go", "if !k.maySeeTx(string(text)) {", "if false {", "./adapters/httpapi TestUsedRefHidesOperation$")),
		alone("one test lists reserved accounts", one("reserved accounts of other assets are listed", "a bounded key sees what it covers", "adapters/httpapi/account.go", "(!isReserved || types.Covers(&k.key.Assets, of))", "(!isReserved || len(of) > 0)", "./adapters/httpapi TestReservedAccountsOfOtherAssetsAreNotListed$")),
		one("default pages wait for large ones", "a page of the default size needs no slot", "adapters/httpapi/history_reads.go", "if rows <= defaultPage {", "if rows < defaultPage {", "./adapters/httpapi TestLargePagesTakeASlot$", "./adapters/httpapi TestLargePageIsRejectedAtItsDeadline$"),
		alone("one test has such an account", one("an account with many assets is read all at once", "large pages leave the processors to others", "adapters/httpapi/account.go", "if read >= PartRows {", "if false {", "./adapters/httpapi TestAccountWithManyAssetsTakesASlot$")),
		one("tunnels take permits of requests", "tunnels have their own permits", permit, `len(k.r.Header["Upgrade"]) > 0 || accepts`, "accepts", "./cmd/macronode/internal/cli TestTunnelsHoldTheirOwnPermits$", "./adapters/httpapi TestTunnelsUseStreamPermits$"),
		one("known durable end is ignored by a reading", "lost acknowledged frames are reported", "adapters/journalfile/scan.go", "max(s.Known, s.From.LSN, s.Upto, s.Verdict.Against.LSN)", "max(s.From.LSN, s.Upto, s.Verdict.Against.LSN)", sim, "./cmd/macronode/internal/offline TestVerifyReportsMissingSegments$"),
		alone("a power loss at each operation is tried there", one("a restore that cannot be read is another journal", "a disk that does not read is no damage", "adapters/journalfile/part.go", "return p.reborn(fsys)", "is, _ := p.reborn(fsys)\n\treturn is, nil", "./adapters/journalfile TestReadErrorIsNotAnotherJournal$")),
		alone("each single read fails there", one("a segment behind one that cannot be read keeps its journal", "a frame is read as of the journal that wrote it", "adapters/journalfile/table.go", "if restored, err := next.reborn(j.fs); restored || err != nil {\n\t\t\treturn 0, err", "if restored, _ := next.reborn(j.fs); restored {\n\t\t\treturn 0, nil", "./adapters/journalfile TestReadErrorIsNoOwner$")),
		alone("one test has a mark without a root", one("lost end of the journal is not noticed", "lost acknowledged frames are reported", "cmd/macronode/internal/server/recover.go", "journalfile.Reading{Known: s.known.LSN,", "journalfile.Reading{Known: heads[0].LSN,", "./cmd/macronode/internal/server TestMarkWithoutRootIsEvidence$")),
		alone("one script has lost frames", one("loss is accepted without a decision", "only an explicit decision discards frames", "cmd/macronode/internal/cli/backup_cmd.go", "(!v.Accept || !r.Checked.CanAccept())", "!r.Checked.CanAccept()", loss)),
	}
}
