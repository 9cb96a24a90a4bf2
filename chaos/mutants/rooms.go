package mutants

// rooms are faults of tables that tenants share.
func rooms() []Mutant {
	const (
		rule     = "core/share/share.go"
		counts   = "core/storage/counts.go"
		each     = "./core/share TestLeftIsOneAtATime$"
		halves   = "./core/share TestTenantsLeaveRoom$"
		objects  = "./core/storage TestTenantsLeaveRoom$"
		uploads  = "./adapters/objectstore TestTenantsLeaveUploads$"
		slots    = "./adapters/httpapi TestTenantsShareSlots$"
		holds    = "./core/wallet/ledger TestHoldsTranscript$"
		node     = "./cmd/macronode/internal/cli TestTenantsLeaveRoom$"
		exported = "./core/export TestNodeAgreesWithModel$"
		leaves   = "a tenant leaves room for others"
	)
	return []Mutant{
		one("a tenant takes all that is left", leaves, rule, "max(0, (room-has+1)/2)", "room", each, halves, ledgerModel, names, objects, uploads, slots, exported, sim, node),
		one("a tenant takes the place that another one needs", leaves, rule, "(room-has+1)/2", "(room-has+2)/2", each, halves, ledgerModel, names, objects, uploads, slots, exported, sim),
		one("a tenant fills the table of holds", leaves, "core/wallet/ledger/decide.go", "checkRow(l.limits.TenantHolds,", "checkRow(l.limits.Holds,", "./core/wallet/ledger TestModelCoversEveryProblem$", holds, node),
		one("parts take the rows of objects", leaves, counts, "0, entries+parts, ofAll", "0, entries, ofAll", names, objects),
		one("an object that others name too is exchanged for a new one", leaves, counts, "return replaced && o.refs == 1", "return replaced && o.refs > 0", names, objects),
		one("what a tenant replaces takes room from others", "a tenant without room replaces its own objects", counts, "needed > 0 && !p.givesBack(m, d)", "needed > 0", names, objects),
		one("a tenant fills the lanes of exports", leaves, "core/export/decide.go", "event.ExportLanes, p.limits.TenantLanes,", "event.ExportLanes, p.limits.Lanes,", exported, "./core/export TestLanes$"),
		one("a tenant fills the quarantine of exports", leaves, "core/export/decide.go", "event.ExportQuarantine, p.limits.TenantRows,", "event.ExportQuarantine, p.limits.Rows,", exported, "./core/export TestLanes$"),
		alone("one node has a sink and a tenant with too many streams", one("a tenant without room keeps lanes from others", "a full tenant stops no other", "cmd/macronode/internal/server/exporter_room.go", "if reply.Shortage.Limit == event.ExportTenantLanes {", "if false {", "./cmd/macronode/internal/cli TestFullTenantStopsNoOther$")),
		alone("one test has tenants with uploads", one("an upload that has ended is counted for its tenant", "what has ended leaves room", "adapters/objectstore/upload_end.go", "if s.tenants[u.tenant]--; s.tenants[u.tenant] == 0 {", "if s.tenants[u.tenant] == 0 {", uploads)),
	}
}
