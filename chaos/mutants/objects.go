package mutants

// objects are faults of the storage plane and of the files of objects.
func objects() []Mutant {
	const (
		plane = "core/storage/plane.go"
		store = "adapters/objectstore/store.go"
		tree  = "core/digest/tree.go"
		http  = "adapters/httpapi/"

		model     = "./core/storage TestPlaneAgreesWithModel$"
		collector = "./adapters/objectstore TestCollectorAgreesWithModel$"
		power     = "./adapters/objectstore TestPowerLoss$"
	)
	return []Mutant{
		alone("the quota is a rule of one model", one("a tenant has no quota", "a tenant's quota is exact", plane, "case !total.add(size).within(p.limits.TenantQuota), !used", "case !used", model)),
		alone("the quota is a rule of one model", one("a bucket has no quota", "a bucket's quota is exact", plane, "!used.add(size).within(p.limits.BucketQuota)", "false", model)),
		alone("the quota is a rule of one model", one("a quota can be reached but for one byte", "a quota of n bytes admits n bytes", plane, "return u.Bytes <= quota.Bytes &&", "return u.Bytes < quota.Bytes &&", model)),
		alone("the limits of tables are a rule of one model", one("buckets have no limit", "no table grows beyond its limit", plane, "p.usage.Room() >= rows && ", "", model)),
		one("an object counts one holding", "an object exists while a bucket holds it", plane, "\to.refs++\n", "\to.refs = 1\n", model, "./core/storage TestCheckFinds$"),
		alone("one model has the files of objects", one("every upload replaces the file of an object", "a put names the file that is there", plane, "if known && !c.Replace {", "if false {", model)),
		one("a damaged file is kept", "an upload replaces a damaged file", http+"objects.go", "put.Replace = !o.intact(row)", "_ = !o.intact(row)", "./adapters/httpapi TestDamagedObjects$", "./cmd/macronode TestObjectsSurvive$"),
		alone("one test undoes records of this plane", one("a record is not undone", "an undone savepoint leaves no trace", plane, "p.undo = append(p.undo, c)", "_ = c", "./core/storage TestUndo$")),
		alone("one test has this", one("every key may store", "a put needs the scope store", plane, "return keys.Allows(at, c.Head().Caller, c.Head().Tenant, event.ScopeStore)", "return true", "./core/storage TestAuthorization$")),
		alone("one test has this", one("a record with any usage fits", "a journal proves the quotas", plane, "m.tenantUsage == total.add(m.size) && m.bucketUsage == used.add(m.size) &&", "", "./core/storage TestFitsRejectsWhatDoesNotContinue$")),
		alone("the index is asked for no key by one test", one("a put without a key waits for the index", "a command without a key needs no index", "core/node/request.go", "if cost.Rows == 0 {", "if false {", "./core/storage TestCommandsWithoutKeyNeedNoIndex$")),

		one("objects take the permits of streams", "uploads and downloads have permits of their own", http+"httpapi.go", "d.facet, d.mean = types.FacetStorage, 64<<10", "d.facet, d.mean = types.Streams, 64<<10", "./adapters/httpapi TestWhatLastsWantsAPermitOfStreams$", "./cmd/macronode TestEachEndpointIsCounted$"),
		one("a copy is not compared with its address", "a backup verifies what it copies", store, "if !valid(part) {", "if valid(nil) {", "./adapters/objectstore TestCopyReportsWhichSideFailed$", "./cmd/macronode TestScripts/^backup_objects$"),
		alone("the power fails at each operation of one test", one("the names of copies are not made durable", "a finished backup is durable", "adapters/objectstore/copy.go", "return s.dir.SyncDir()", "_ = s.dir.SyncDir\n\treturn nil", "./adapters/objectstore TestCopySurvivesPowerLoss$")),
		alone("one test uses a number again", one("a copy leaves its number free", "a restored node never uses a number again", "adapters/objectstore/copy.go", "\ts.Reserve(o.File)\n", "", "./adapters/objectstore TestCopySurvivesPowerLoss$")),
		alone("under load the race is seldom", one("a backup takes a deleted object for lost", "a backup is of one frame", "cmd/macronode/backup_objects.go", "deleted = deleted || !before[o.File]", "_ = before", "./cmd/macronode TestBackupFollowsDeletes$")),
		alone("one script looks at the files of a backup", one("a backup keeps deleted objects for ever", "a backup has the objects of its last frame", "cmd/macronode/backup_objects.go", "return ok && o.File == file", "_, _ = o, ok\n\t\treturn true", "./cmd/macronode TestScripts/^backup_objects$")),
		alone("one script deletes the last object", one("a backup keeps the last deleted objects", "a backup has the objects of its last frame", "cmd/macronode/backup.go", "hasObjects(cfg.Data) || hasObjects(v.To)", "hasObjects(cfg.Data)", "./cmd/macronode TestScripts/^backup_objects$")),
		alone("one script damages objects", one("verify does not read contents", "verify finds a damaged object", "cmd/macronode/backup_objects.go", "check, r.Contents = store.Verify, true", "r.Contents = true", "./cmd/macronode TestScripts/^backup_objects$")),

		one("the root is hashed as an inner node", "an address is the BLAKE3 digest", tree, "\tlast.Flags |= guts.FlagRoot\n", "", "./core/digest TestTreeIsBLAKE3$", "./core/digest TestRangesAreVerified$"),
		one("nodes are not verified", "every node on the way is verified", tree, "if chainingValue(n) != s.value {", "if false {", "./core/digest TestNodesAreVerified$", "./adapters/objectstore TestDamageIsNeverSent$"),
		one("content is not verified", "no byte is sent that was not verified", store, "if !valid(part) {", "if false {", "./adapters/objectstore TestDamageIsNeverSent$", "./adapters/httpapi TestDamagedObjects$"),
		one("the name of a file is not durable", "an acknowledged object survives", store, "u.err = u.store.dir.SyncDir()", "", power, collector),
		one("the content of a file is not durable", "an acknowledged object survives", store, "u.err = f.Sync()", "_ = f", power, collector),
		one("the file of an upload is collected", "the collector removes no file that is being written", store, "f.file > newest || s.writes(f.file) ||", "f.file > newest ||", collector, "./adapters/objectstore TestCollectorAsksInOrder$"),
		alone("one test ends an upload between the two questions", one("the collector asks for the row first", "an upload that ended has its row", store, "!ok || f.file > newest || s.writes(f.file) || !f.part && live(f.address, f.file)", "!ok || !f.part && live(f.address, f.file) || f.file > newest || s.writes(f.file)", "./adapters/objectstore TestCollectorAsksInOrder$")),
		alone("a file that is lost is not in the list that a start reads", one("the number of a lost file is used again", "no number is used twice", store, "\ts.next = max(s.next, file)\n", "", "./adapters/objectstore TestNumbersAreNeverUsedAgain$")),
		alone("one model starts again and again", one("numbers begin again at a start", "no number is used twice", store, "s.Reserve(f.file)", "_ = f", collector)),
		alone("one test has an upload whose outcome is unknown", one("an unknown outcome ends the upload", "a file whose row may come is kept", http+"objects.go", "return err == nil || ok && r.problem != event.OutcomeUnknown", "return err == nil || ok || r.problem == event.OutcomeUnknown", "./adapters/httpapi TestUnknownOutcomeKeepsTheFile$")),
		alone("one test has this", one("uploads take the reserve of the disk", "uploads never stop the journal", store, "free < u.store.limits.Reserve+freeCheck", "free < 1", "./adapters/objectstore TestRefusals$")),
		alone("a script that has it waits for a node that serves", one("a lost journal begins anew beside objects", "no file is removed because its journal is lost", "cmd/macronode/recover.go", "indexName, objectsName}", "indexName}", "./cmd/macronode TestObjectsNeedTheirJournal$")),
		alone("one table has the conditions", one("a weak tag selects a range", "a range needs the very object", http+"object_read.go", "if tag == \"*\" || tag == etag(a) {", "if tag == \"*\" || strings.TrimPrefix(tag, \"W/\") == etag(a) {", "./adapters/httpapi TestConditionsOfObjects$")),
		one("another content is stored", "the address decides what is stored", http+"objects.go", "o.address != (storage.Address{}) && o.address != a {", "false {", "./adapters/httpapi TestRefusedUploads$", "./adapters/httpapi TestTheWireIsGolden$"),
	}
}
