package mutants

const (
	decide = "core/storage/decide.go"
	apply  = "core/storage/apply.go"
	http   = "adapters/httpapi/"
	names  = "./core/storage TestNamesAgreeWithModel$"
)

// objects are faults of the storage plane and of the files of objects.
func objects() []Mutant {
	const (
		plane     = "core/storage/plane.go"
		rows      = "core/storage/rows.go"
		undo      = "core/storage/undo.go"
		store     = "adapters/objectstore/store.go"
		writes    = "adapters/objectstore/upload.go"
		ends      = "adapters/objectstore/upload_end.go"
		reads     = "adapters/objectstore/object.go"
		tree      = "core/digest/tree.go"
		model     = "./core/storage TestPlaneAgreesWithModel$"
		tenants   = "./core/storage TestTenantsShareTables$"
		collector = "./adapters/objectstore TestCollectorAgreesWithModel$"
		power     = "./adapters/objectstore TestPowerLoss$"
	)
	return []Mutant{
		one("a tenant has no quota", "a tenant's quota is exact", decide, "!(total.within(p.limits.tenantQuota()) && used", "!(total.Bytes|1 > 0 && used", model, names),
		one("a rejection names no quota", "a rejection names its limit", decide, "return event.QuotaExceeded, p.QuotaShortage(t, d.place.bucket, d.growth())", "return event.QuotaExceeded, event.Shortage{}", names, "./core/storage TestQuotaIsNamed$"),
		one("a bucket has no quota", "a bucket's quota is exact", decide, "total.within(p.limits.tenantQuota()) && used.within(p.limits.BucketQuota)", "total.within(p.limits.tenantQuota())", model, names),
		one("a quota can be reached but for one byte", "a quota of n bytes admits n bytes", rows, "return u.Bytes <= quota.Bytes &&", "return u.Bytes < quota.Bytes &&", model, names),
		one("buckets have no limit", "no table grows beyond its limit", "core/storage/counts.go", "p.limits.Buckets - p.buckets, false}", "1, false}", model, names),
		one("a tenant may take all buckets", "a tenant leaves room for others", "core/storage/counts.go", "l.TenantBuckets, buckets, ofAll[", "l.Buckets, buckets, ofAll[", names, tenants),
		one("an upload that has ended leaves room at once", "the rows of a tenant are counted until they are removed", "core/storage/counts.go", "if n := difference(had, has); n != 0 {\n\t\tp.count(t, func(c *counts) { c.uploads", "if n := difference(had, has && !u.ended); n != 0 {\n\t\tp.count(t, func(c *counts) { c.uploads", names, tenants),
		one("an object counts one reference", "an object exists while an entry names it", apply, "\to.refs++\n", "\to.refs = 1\n", model, names),
		one("every upload replaces the file of an object", "a put names the file that is there", decide, "if known && (!replace || f == 0) {", "if known && f == 0 {", model, "./core/storage TestFileOfKnownObject$", files),
		one("a damaged file is kept", "an upload replaces a damaged file", http+"objects.go", "c.replace = !o.intact(c.address, row)", "_ = !o.intact(c.address, row)", "./adapters/httpapi TestDamagedObjects$", "./cmd/macronode/internal/cli TestObjectsSurvive$"),
		one("a record is not undone", "an undone savepoint leaves no trace", undo, "p.undo = append(p.undo, c)", "_ = c", names, "./core/storage TestUndo$"),
		alone("one test has this", one("every key may store", "a put needs the scope store", plane, "return keys.Allows(at, c.Head().Caller, c.Head().Tenant, event.ScopeStore)", "return true", "./core/storage TestAuthorization$")),
		alone("one test has this", one("a record with any usage fits", "a journal proves the quotas", apply, "return m.tenantUsage == d.apply(total) && m.bucketUsage == d.apply(used) &&\n\t\t", "return total.Bytes|1 > 0 && ", "./core/storage TestFitsRejectsWhatDoesNotContinue$")),
		alone("the index is asked for no key by one test", one("a put without a key waits for the index", "a command without a key needs no index", "core/node/request.go", "if len(in.Key.Text) == 0 {", "if false {", "./core/storage TestCommandsWithoutKeyNeedNoIndex$")),

		one("objects take the permits of streams", "uploads and downloads have permits of their own", http+"httpapi.go", "e.facet, e.meanBytes = types.FacetStorage, 64<<10", "e.facet, e.meanBytes = types.Streams, 64<<10", "./adapters/httpapi TestWaitingRequestsUseStreamPermits$", "./cmd/macronode/internal/cli TestEachEndpointIsCounted$"),
		one("an empty directory gets the identity of a lost one", "objects are not stored on the wrong disk", "adapters/objectstore/identity.go", "if !s.owner.hasObjects() ||", "if len(names) == 0 || !s.owner.hasObjects() ||", "./adapters/objectstore TestOnlyDirectory$", "./adapters/objectstore TestNoDirectoryIsThere$", "./cmd/macronode/internal/cli TestUnmountedObjectDirectoryDegrades$"),
		alone("one test has files of another node", one("the files of another node are removed", "the collector removes only files of its node", "adapters/objectstore/store.go", "if err = s.checkClaimed(p); err == nil {", "if err == nil {", "./adapters/objectstore TestOnlyDirectory$")),
		alone("one script has no directory of the objects", one("a backup without files of objects is complete", "a backup names each object that it lacks", "cmd/macronode/internal/offline/backup.go", "if total(is).Objects == 0 {", "if total(is).Objects < 1<<40 {", "./cmd/macronode TestScripts/^backup_objects$")),
		one("an object of failed providers is taken for lost", "a read that may be repeated says so", "adapters/objectstore/provider.go", "case isFault(err), IsShortage(err), errors.Is(err, ErrGone) && m.failed.Load() != nil:", "case IsShortage(err):", "./adapters/objectstore TestReadOfFailedProviders$", "./cmd/macronode/internal/cli TestReadsOfFailedProviders$"),
		one("a copy is not compared with its address", "a backup verifies what it copies", reads, "if !valid(part) {", "if valid(nil) {", "./adapters/objectstore TestCopyReportsWhichSideFailed$", "./cmd/macronode TestScripts/^backup_objects$"),
		alone("one test cuts the power at each operation", one("the names of copies are not made durable", "a finished backup is durable", "adapters/objectstore/copy.go", "err = errors.Join(err, p.Port.Flush())", "_ = p", "./adapters/objectstore TestCopySurvivesPowerLoss$")),
		alone("one test uses a number again", one("a copy leaves its number free", "a restored node never uses a number again", "adapters/objectstore/copy.go", "\ts.Reserve(o.File)\n", "", "./adapters/objectstore TestCopySurvivesPowerLoss$")),
		alone("under load the race is seldom", one("a backup takes a deleted object for lost", "a backup is of one frame", "cmd/macronode/internal/offline/objects.go", "deleted = deleted || !before[o.File]", "_ = before", "./cmd/macronode/internal/offline TestBackupFollowsDeletes$")),
		alone("one script looks at the files of a backup", one("a backup keeps deleted objects for ever", "a backup has the objects of its last frame", "cmd/macronode/internal/offline/objects.go", "return ok && o.File == file", "_, _ = o, ok\n\t\treturn true", "./cmd/macronode TestScripts/^backup_objects$")),
		one("a backup is among the copies that it is for", "a backup is not lost with a disk of the copies", "cmd/macronode/internal/offline/backup.go", "path); err == nil && in {", "path); err == nil && in && path == to {", "./cmd/macronode TestScripts/^backup_objects$", "./cmd/macronode/internal/offline TestBackupKeepsOutOfTheNode$"),
		alone("one script deletes the last object", one("a backup keeps the last deleted objects", "a backup has the objects of its last frame", "cmd/macronode/internal/offline/backup.go", "hasObjects(objects) || hasObjects(copied)", "hasObjects(objects)", "./cmd/macronode TestScripts/^backup_objects$")),
		alone("one script damages objects", one("a backup keeps a damaged copy", "a backup replaces a damaged copy", "cmd/macronode/internal/offline/objects.go", "if !have.Has(o) || k.sound[o.File] {", "if true {", "./cmd/macronode TestScripts/^backup_objects$")),
		alone("one script damages objects", one("verify does not read contents", "verify finds a damaged object", "cmd/macronode/internal/offline/objects.go", "check = func(o storage.Stored, p objectstore.Part) error { return store.VerifyPart(o, p, nil) }", "", "./cmd/macronode TestScripts/^backup_objects$")),

		one("the root is hashed as an inner node", "an address is the BLAKE3 digest", tree, "\tlast.Flags |= guts.FlagRoot\n", "", "./core/digest TestTreeIsBLAKE3$", "./core/digest TestRangesAreVerified$"),
		one("nodes are not verified", "every node on the way is verified", tree, "if chainingValue(n) != s.value {", "if false {", "./core/digest TestNodesAreVerified$", "./adapters/objectstore TestDamageIsNeverSent$"),
		one("content is not verified", "no byte is sent that was not verified", reads, "if !valid(part) {", "if false {", "./adapters/objectstore TestDamageIsNeverSent$", "./adapters/httpapi TestDamagedObjects$", files),
		one("the name of a file is not durable", "an acknowledged object survives", ends, "return t.Port.Flush()", "return nil", power, collector, files),
		alone("one test has a body that ends after its last byte", one("an empty group ends an object of whole groups", "an address does not depend on how a body arrives", writes, "u.filled > 0 || u.written == 0", "u.filled >= 0", "./adapters/objectio TestReceiveOfWholeGroups$")),
		alone("one test has more nodes than an upload has room for at first", one("nodes are lost when an upload gets more room for them", "an object has all its nodes", writes, "u.pending = append(u.nodes[:0], u.pending...)", "u.pending = u.nodes[:len(u.pending)]", "./adapters/objectstore TestUploadsKeepNodesApart$")),
		one("the content of a file is not durable", "an acknowledged object survives", ends, "err := f.Sync(); err != nil", "err := error(nil); err != nil", power, collector, files),
		one("appended nodes are read from the begin of the file", "a range is verified by the nodes behind the content", reads, "x.nodes, x.nodesAt = data, o.Size", "x.nodes, x.nodesAt = data, 0", "./adapters/objectstore TestRanges$", power),
		alone("one test damages files", one("a file with appended nodes may have any length", "a file that is cut or grown is damaged", reads, "err == nil && uint64(size) != want {", "err == nil && uint64(size) < o.Size {", "./adapters/objectstore TestDamageIsNeverSent$")),
		one("objects of older versions are not found", "a file that was written once stays readable", store, "severalGroups = []layout{appendedNodes, separateNodes}", "severalGroups = []layout{appendedNodes}", "./adapters/objectstore TestRanges$", power),
		one("the file of an upload is collected", "the collector removes no file that is being written", store, "f.file > newest || s.writes(f.file) ||", "f.file > newest ||", collector, "./adapters/objectstore TestCollectorAsksInOrder$", files),
		one("the collector asks for the row first", "an upload that ended has its row", store, "!ok || f.file > newest || s.writes(f.file) || !f.part && live(f.address, f.file)", "!ok || !f.part && live(f.address, f.file) || f.file > newest || s.writes(f.file)", "./adapters/objectstore TestCollectorAsksInOrder$", files),
		alone("a file that is lost is not in the list that a start reads", one("the number of a lost file is used again", "no number is used twice", store, "\ts.next = max(s.next, file)\n", "", "./adapters/objectstore TestNumbersAreNeverUsedAgain$")),
		alone("one model starts again and again", one("numbers begin again at a start", "no number is used twice", store, "s.Reserve(f.file)", "_ = f", collector)),
		{Name: "the price of an object is reserved after its body was received", Holds: "a tenant without credit causes no transfer", Edits: []Edit{
			{http + "objects.go", "\tif err := o.reservePrice(held); err != nil {\n\t\treturn err\n\t}\n\treturn o.keep(o.address, func(up *objectstore.Upload) error {\n\t\tif err := o.receive(up, body, left); err != nil {",
				"\treturn o.keep(o.address, func(up *objectstore.Upload) error {\n\t\tif err := errors.Join(o.receive(up, body, left), o.reservePrice(held)); err != nil {"},
			{"adapters/s3/put.go", "\t\tif err := c.reserve(uint64(size)); err != nil {\n\t\t\treturn err\n\t\t}\n\t}\n\tvar tag storage.ETag\n\treply, err := c.store(in.receive, func(s stored) (event.Reply, error) {\n",
				"\t\t_ = size\n\t}\n\tvar tag storage.ETag\n\treply, err := c.store(in.receive, func(s stored) (event.Reply, error) {\n\t\tif err := c.reserve(s.size); err != nil {\n\t\t\treturn event.Reply{}, err\n\t\t}\n"},
		}, Kills: []string{"./adapters/httpapi TestPaymentIsRequiredBeforeTheBody$", "./adapters/s3 TestPaymentIsRequiredBeforeTheBody$"}},
		alone("one test has an upload whose outcome is unknown", one("an unknown outcome ends the upload", "a file whose row may come is kept", http+"objects.go", "return err == nil || ok && r.problem != event.OutcomeUnknown", "return err == nil || ok || r.problem == event.OutcomeUnknown", "./adapters/httpapi TestUnknownOutcomeKeepsTheFile$")),
		alone("a script that has it waits for a node that serves", one("a lost journal begins anew beside objects", "no file is removed because its journal is lost", "cmd/macronode/internal/server/recover.go", "datadir.Index, datadir.Objects}", "datadir.Index}", "./cmd/macronode/internal/server TestObjectsNeedTheirJournal$")),
		alone("one table has the conditions", one("a weak tag selects a range", "a range needs the very object", http+"object_read.go", "if tag == \"*\" || tag == etag(a) {", "if tag == \"*\" || strings.TrimPrefix(tag, \"W/\") == etag(a) {", "./adapters/httpapi TestConditionsOfObjects$")),
		one("another content is stored", "the address decides what is stored", http+"objects.go", "want != (storage.Address{}) && want != a {", "false {", "./adapters/httpapi TestRefusedUploads$", "./adapters/httpapi TestWireGolden$"),
	}
}

// smallObjects are mutants of the uploads that need no draft.
func smallObjects() []Mutant {
	const (
		writes = "adapters/objectstore/upload.go"
		ends   = "adapters/objectstore/upload_end.go"
	)
	return []Mutant{
		one("a failed upload of one group leaves its file", "an upload that fails leaves no file", ends, "if t.isComplete || t.isNamed && t.data != nil {", "if t.isComplete {", "./adapters/objectstore TestFailedSmallObjectLeavesNoFile$", "./adapters/objectstore TestSmallObjectWithoutDirect$"),
		one("an object of one group is written into any directory", "a directory that is not the claimed one gets no copy", writes, "\t\tif err := u.store.checkPlace(t.member); err != nil {\n\t\t\treturn err\n\t\t}\n\t\tt.isNamed", "\t\tt.isNamed", "./adapters/objectstore TestSmallObjectNeedsThePlace$", "./adapters/objectstore TestCopyNeedsIdentity$"),
		one("a repair writes into the file that it replaces", "a repair replaces a file when the new one is durable", "adapters/objectstore/small.go", "u.written == 0 && !u.replaces &&", "u.written == 0 &&", "./adapters/objectstore TestCopiesAgreeWithModel$", "./adapters/objectstore TestCopySurvivesPowerLoss$"),
	}
}

// copies are faults of placement, of copies and of their repair.
func copies() []Mutant {
	const (
		places  = "core/placement/placement.go"
		upload  = "adapters/objectstore/upload.go"
		ends    = "adapters/objectstore/upload_end.go"
		object  = "adapters/objectstore/object.go"
		copied  = "adapters/objectstore/copy.go"
		queue   = "core/repair/repair.go"
		budget  = "core/repair/budget.go"
		domains = "./core/placement TestCopiesHaveDistinctDomains$"
		mirror  = "./adapters/objectstore TestCopiesAgreeWithModel$"
		failure = "./adapters/objectstore TestUploadSurvivesFailures$"
		tasks   = "./core/repair TestQueueAgreesWithModel$"
		rate    = "./core/repair TestBudgetHoldsOverEveryInterval$"
		restore = "./adapters/objectstore TestRestoreKnowsWhatIsHopeless$"
	)
	return []Mutant{
		alone("one test looks at domains", one("two copies are in one failure domain", "a failure takes one copy at most", places, "if usable.Has(i) && !domains.Has(t.all[i].domain) {", "if usable.Has(i) {", domains)),
		alone("one test counts", one("weights are ignored", "a disk gets its share", places, "a, b := costs[i]*t.all[j].weight, costs[j]*t.all[i].weight", "a, b := costs[i], costs[j]", "./core/placement TestWeightsAreRespected$")),
		one("an upload succeeds with one of two required copies", "as many copies as are required are durable", upload, "return min(u.store.copies.Required, len(u.targets))", "return 1", failure, files),
		one("an upload that lacks a copy is not repaired", "a missing copy is restored", ends, "good < s.wanted(u.scheme) {", "good < 0 {", failure, mirror),
		one("a read ends at the first bad copy", "a read falls over to another copy", object, "if !o.next(off, err) {", "if true {", "./adapters/objectstore TestReadFallsOver$", mirror),
		one("another copy is read from the beginning of the range", "a read that falls over repeats no byte", object, "off, length = off+uint64(len(part)), length-uint64(len(part))", "length -= uint64(len(part)) * 0", "./adapters/objectstore TestReadFallsOver$", mirror),
		alone("one test collects meanwhile", one("the collector removes the file of a repair", "the collector removes no file that is being written", "adapters/objectstore/store.go", "s.uploads[f] || s.repairs[f]", "s.uploads[f]", "./adapters/objectstore TestCollectorSparesRepair$")),
		one("a repair reads nothing of what it replaces", "copies that are damaged in different places repair each other", places, "if found {", "if found && o.n == 0 {", "./adapters/objectstore TestDamagedCopiesRepairEachOther$", mirror),
		alone("one test has a provider that fails at the start", one("a provider that was never claimed is written", "no node writes into the directory of another", "adapters/objectstore/identity.go", "p.absent.Store(errors.Is(err, ErrAbsent) || errors.Is(err, fs.ErrHeld) || !p.claimed)", "p.absent.Store(errors.Is(err, ErrAbsent) || errors.Is(err, fs.ErrHeld))", "./adapters/objectstore TestUnclaimedIsNotWritten$")),
		alone("one test damages the identity of a directory", one("a refused directory passes a verification", "verify reports a directory that the node refuses", "cmd/macronode/internal/offline/verify.go", "len(v.Foreign) == 0 && ", "", "./cmd/macronode/internal/cli TestVerifyNamesRefusedDirectory$")),
		alone("one test has no provider that can be used", one("a scrub that failed is not reported", "storage scrub, repair and rebalance end with the reason", "cmd/macronode/internal/server/repair_scans.go", "\t\ts.Failure = err.Error()\n", "", "./cmd/macronode/internal/cli TestNothingIsVerifiedWithoutProviders$")),
		one("a command joins the scrub in progress", "storage scrub reports what was found since it was requested", "core/repair/scrubs.go", "s.wanted, s.found = s.begun+1, 0", "s.wanted, s.found = max(1, s.begun), 0", "./core/repair TestScrubsAgreeWithModel$", "./cmd/macronode/internal/server TestScrubCountsDamageSinceRequest$"),
		one("what the scrub in progress finds is not reported", "storage scrub reports what was found since it was requested", "cmd/macronode/internal/server/repair_scans.go", "\t\t\t\tr.scrubs.Found()\n", "", "./cmd/macronode/internal/server TestScrubReportsUnrestoredCopy$", "./cmd/macronode/internal/cli TestScrubsAtOnceReportDamage$"),
		one("a command takes the result of the last scrub", "storage scrub reports what was found since it was requested", "cmd/macronode/internal/cli/storage.go", "if !is.ShowScrub(number) {", "if number == 0 {", "./cmd/macronode/internal/cli TestScrubShowsItsResult$", "./cmd/macronode/internal/cli TestScrubsAtOnceReportDamage$"),
		alone("one test has no provider that can be used", one("an inventory that failed is not reported", "storage scrub, repair and rebalance end with the reason", "cmd/macronode/internal/server/repair_scans.go", "\tr.is.inventory.Failure = err.Error()\n", "", "./cmd/macronode/internal/cli TestNothingIsVerifiedWithoutProviders$")),
		one("a new disk gets copies before it is claimed", "objects are not stored on the wrong disk", "adapters/objectstore/identity.go", "\tif p.Far {\n\t\treturn nil\n\t}\n\treturn s.checkClaimed(p)", "\treturn nil", "./adapters/objectstore TestCopyNeedsIdentity$", files),
		alone("lies about this one file are rare", one("a damaged identity is that of another node", "money and routes do not depend on one of several disks", "adapters/objectstore/identity.go", "!p.Far && !isIdentity.Match(got)", "!p.Far && len(got) > maxIdentity && !isIdentity.Match(got)", "./adapters/objectstore TestDamagedIdentity$")),
		alone("reads do not need the repair", one("an object without a whole copy is given up", "copies that are damaged in different places repair each other", "adapters/objectstore/restore_parts.go", "if !held.AreEnough() {", "if !good.AreEnough() {", "./adapters/objectstore TestRestore$")),
		alone("a queue that is full of lost objects is rare", one("lost objects take the places of others", "every object that can be restored is", "core/repair/inventory.go", "case has >= needed:", "case has >= needed || o.Limit > 0:", "./core/repair TestLostObjectsArePlannedLast$")),
		one("a damaged copy is not replaced", "every object gets its copies again", "adapters/objectstore/restore_parts.go", "list := inPlace.List()", "list := inPlace.List()[:0]", "./adapters/objectstore TestRestore$", files),
		alone("one model has moves", one("a task that waits forgets the move", "a copy that is to be moved is moved", "core/repair/repair.go", "t.Move = t.Verify || o.Verify, t.Move || o.Move", "t.Move = t.Verify || o.Verify, t.Move", "./core/repair TestQueueAgreesWithModel$")),
		alone("the other test reads to the end", one("a download of S3 that is ended early is an error", "what a client got is used", "adapters/s3/handler.go", "if !errors.Is(err, errLeft) {", "if e.Code != \"\" {", "./adapters/s3 TestClientThatLeavesIsNoError$")),
		alone("one test deletes the source", one("a part of a deleted object may be retried", "who cannot succeed is not told to retry", "adapters/s3/multipart.go", "c.find(source); deleted != nil {", "c.find(source); deleted == nil && false {", "./adapters/s3 TestCopyOfDeletedSource$")),
		alone("one test waits for it", one("an empty body gets no 100 Continue", "a client that waits for it reads the right response", "adapters/s3/handler.go", "r.ContentLength == 0 && strings.EqualFold", "r.ContentLength > 0 && strings.EqualFold", "./adapters/s3 TestEmptyBodyGetsContinue$")),
		alone("one test goes through all problems", one("a forbidden write is an internal error in S3", "who may not is not told to retry", "adapters/s3/errors.go", "\t\tcase http.StatusForbidden:\n\t\t\treturn errAccessDenied.saying(p.Detail())\n", "", "./adapters/s3 TestProblems$")),
		alone("one test starts without its bucket", one("a start needs a provider of objects", "money and routes do not depend on the objects", "cmd/macronode/internal/server/objects.go", "errors.Is(err, objectstore.ErrAbsent) || errors.Is(err, objectstore.ErrNoProvider)", "errors.Is(err, objectstore.ErrAbsent)", "./cmd/macronode/internal/cli TestOnlyBucket$")),
		alone("one test has a segment that is missing", one("the segment before a missing one is named", "the named files are those to put back", "adapters/journalfile/error.go", "case gap != \"\":", "case gap == \"-\":", "./adapters/journalfile TestMissingSegmentIsNamed$")),
		alone("one test has directories that lost their identity", one("files of deleted objects keep a directory out", "a provider that lost its identity is used again", "adapters/objectstore/identity.go", "\tif slices.ContainsFunc(names, s.isKnown) {\n\t\treturn nil\n\t}\n", "", "./adapters/objectstore TestLeftoversAreClaimed$")),
		alone("one test has directories that lost their identity", one("a directory without identity refuses the start", "money and routes do not depend on one of several disks", "adapters/objectstore/identity.go", "if s.owner.hasObjects() && another {", "if false {", "./adapters/objectstore TestLeftoversAreClaimed$")),
		alone("one test has directories of others", one("a directory of another node is used", "no node collects the files of another", "adapters/objectstore/identity.go", "case err == nil && p.isMine(string(got), s.owner.name()):", "case err == nil:", "./adapters/objectstore TestDirectoriesBelongToOneNode$")),
		one("a put to a bucket replaces a file", "a writer never overwrites the file of another", "adapters/bucket/put.go", "return b.publish(draft, name, &condition)", "_ = condition\n\treturn b.publish(draft, name, nil)", "./adapters/bucket TestContract$", "./adapters/bucket TestLostAnswer$"),
		alone("one test loses an answer", one("a put that was done is taken for that of another", "a repeated put has a certain result", "adapters/bucket/put.go", "head.Metadata[putMark] == mark {", "head.Metadata[putMark] != mark {", "./adapters/bucket TestLostAnswer$")),
		alone("the lists of other tests have one page", one("a list of a bucket ends with its first page", "a collector and an inventory know every file", "adapters/bucket/list.go", "if page.IsTruncated == nil || !*page.IsTruncated {", "if page != nil {", "./adapters/bucket TestContract$")),
		one("a server without conditional writes is accepted", "a provider that can lose a file refuses the start", "adapters/objectstore/identity.go", "if errors.Is(unwritable, provider.ErrUnsuitable) {", "if false {", "./adapters/objectstore TestUnsuitableProviderIsRefused$", "./cmd/macronode/internal/cli TestUnsuitableBucketIsRefused$"),
		alone("one test has a far provider", one("far copies are read like near ones", "a bucket is read last", "adapters/objectstore/provider.go", "healthy&^s.far, healthy)", "healthy, healthy)", "./adapters/objectstore TestFarCopyIsReadLast$")),
		alone("one test has a bucket alone", one("a copy that cannot be reached is taken for a bad one", "a read that may be repeated says so", "adapters/objectio/objectio.go", "if errors.Is(err, objectstore.ErrUnavailable) {", "if false && err != nil {", "./cmd/macronode/internal/cli TestOnlyBucket$")),
		alone("one model has the budget", one("a start has a full budget", "restarts do not exceed the rate", budget, "b.full = now + b.span", "b.full = now", rate)),
		alone("one model has the budget", one("what a pause leaves is not bounded", "over any interval the bytes are bounded", budget, "max(b.full, now)", "b.full", rate)),
		alone("one model has a full set", one("a lost object is counted again with each finding", "no object is reported lost twice", "core/repair/lost.go", "\tcase l.Has(o.File):\n", "", "./core/repair TestLostAgreesWithModel$")),
		alone("one model has a full set", one("a lost object that gets room counts twice", "no object is reported lost twice", "core/repair/lost.go", "\t\tl.others.remove(o.File)\n", "", "./core/repair TestLostAgreesWithModel$")),
		alone("one model has a full set", one("a lost object without room is not counted", "the operator sees that there are more", "core/repair/lost.go", "\t\tl.others.add(o.File)\n", "", "./core/repair TestLostAgreesWithModel$")),
		alone("one model has a full set", one("a scrub that begins forgets lost objects", "what is lost is reported until it is known to be well", "core/repair/lost.go", "func (l *Lost) BeginScrub() { l.next = fileBits{} }", "func (l *Lost) BeginScrub() { l.next, l.others = fileBits{}, fileBits{} }", "./core/repair TestLostAgreesWithModel$")),
		alone("the other model looks when all providers can be used", one("an object is given up while a provider has failed", "an object is lost only if every provider has answered", "adapters/objectstore/restore_parts.go", "r.Lost && !r.Unknown", "r.Lost", restore)),
		one("a file that cannot be removed fails its provider", "one file does not take a disk away", "adapters/objectstore/provider.go", "\treturn !errors.Is(err, os.ErrPermission) && isAny(err, syscall.EIO,", "\treturn err != nil || isAny(err, syscall.EIO,", "./adapters/objectstore TestUnremovableFileFailsNoProvider$", "./adapters/objectstore TestRemovalOfPartFailsNoProvider$"),
		alone("one test repairs without a provider", one("a repair without a provider counts a lost object", "an object is lost only if every provider has answered", "adapters/objectstore/restore_parts.go", "return r.Lost && r.Unknown }", "return false }", "./cmd/macronode/internal/server TestRepairWaitsForProvider$")),
		alone("one test cannot open what is left", one("an object is given up because what is left cannot be opened", "an object is lost only if every provider has answered", "adapters/objectstore/restore_parts.go", "r.Unknown = r.Lost && isAny(unread, ErrUnavailable, ErrAbsent)", "_ = isAny", restore)),
		alone("one test believes names", one("the name of a file says that an object can be read", "a lost object is reported until it was read", "adapters/objectstore/restore_parts.go", "r.Readable = verify && good.AreEnough()", "r.Readable = good.AreEnough()", restore)),
		alone("an inventory finds what is missing", one("a read of a lost object is not reported", "an object that cannot be read is reported at once", "adapters/objectstore/object.go", "\tif !isAny(err, ErrUnavailable, ErrAbsent) {\n\t\ts.defect(row)\n\t}\n", "", restore)),
		alone("one test loses the only copy", one("an asked inventory does not read lost objects again", "a file that was put back is found", "cmd/macronode/internal/server/repair_scans.go", "\tif asked {\n\t\tr.verifyLost()\n\t}\n", "\t_ = asked\n", "./cmd/macronode/internal/cli TestLostObjectIsReported$")),
		alone("one test loses the only copy", one("lost objects do not degrade the node", "the operator sees at once that an object is lost", "cmd/macronode/internal/server/object_probe.go", "now.health.Lost = r.lostObjects() > 0", "now.health.Lost = r.lostObjects() < 0", "./cmd/macronode/internal/cli TestLostObjectIsReported$")),
		alone("one model has the queue", one("an urgent object is shed", "the last good copy is repaired first", queue, "if !t.Urgent || len(m.normal) == 0 {", "if true {", tasks)),
		alone("one model has the queue", one("a failed repair is not planned again", "every object gets its copies again", queue, "m.again = m.again || failed", "_ = failed", tasks)),
	}
}

// moves are faults of moves of copies and shards to other providers.
func moves() []Mutant {
	const (
		places   = "core/placement/move.go"
		move     = "adapters/objectstore/move.go"
		few      = "./core/placement TestMoveWritesFewShards$"
		failures = "./adapters/objectstore TestMoveSurvivesFailures$"
		model    = "./adapters/objectstore TestShardsAgreeWithModel$"
	)
	return []Mutant{
		one("a part is removed before its place is confirmed", "a move never costs a copy or a shard", places, "want != 0 && want&^m.good[shard] == 0 {", "want != 0 {", "./core/placement TestMoveLosesNothing$", failures),
		alone("one test writes as few shards as there can be", one("shards are moved to the places of their numbers", "a new provider gets one shard of an object", places, "\t\tp.keep(shard, &seen)\n", "\t\t_ = seen\n", few)),
		alone("one test writes as few shards as there can be", one("a shard that could stay elsewhere takes a place", "as few shards are written as can be", places, "if !p.taken.Has(i) || p.keep(int(p.shards[i]), seen) {", "if !p.taken.Has(i) {", few)),
		alone("one test has fewer domains than shards", one("a shard without a place is removed", "what is needed for a read stays", places, "if want := m.want[shard]; want != 0 && want&^m.good[shard] == 0 {", "if want := m.want[shard]; want&^m.good[shard] == 0 {", "./core/placement TestMoveWithoutPlace$")),
		one("a damaged file in the place confirms a move", "a move never costs a copy or a shard", move, "\t\tcase errors.Is(err, ErrDamaged), errors.Is(err, ErrGone):\n\t\t\tbad = append(bad, part)\n", "\t\tcase errors.Is(err, ErrDamaged), errors.Is(err, ErrGone):\n\t\t\tm.Confirm(part.Shard, part.Provider)\n", model, "./adapters/objectstore TestMoveReadsWhatIsThere$"),
		one("a part that was not written confirms a move", "a move never costs a copy or a shard", move, "\t\t\tr.IsDone = false\n\t\t\tcontinue\n", "\t\t\tr.IsDone = false\n", failures, model),
		alone("one test pins the directories during a move", one("a move removes what a backup needs", "a backup reads the files that it has listed", move, "\theld, err := s.Unpinned()\n\tif err != nil {\n\t\treturn err\n\t}\n\tdefer held.Close() //nolint:errcheck // nothing was written\n", "\tvar err error\n", "./adapters/objectstore TestBackupKeepsWhatMoved$")),
		alone("one test reads during a move", one("a read that meets a move finds nothing", "an object can be read at any time of a move", "adapters/objectstore/object.go", "const maxOpens = 3", "const maxOpens = 1", "./adapters/objectstore TestMoveDuringReads$")),
		alone("one test reads after a provider was added", one("a shard in another directory is a defect", "reads of whole objects cause no repair", "adapters/objectstore/coded.go", "\t\t\tc.openShard(shard, near&all&^c.holders())", "\t\t\tc.openShard(shard, 0)", "./adapters/objectstore TestMoveToNewProviders$")),
		alone("one model has the passes", one("a rebalance ends with the first pass that moved nothing", "a provider that fails for a moment ends no rebalance", "core/repair/passes.go", "p.idle < MaxIdlePasses", "p.idle < 1", "./core/repair TestPassesAgreeWithModel$")),
		alone("one test has a provider that fails meanwhile", one("a rebalance does not look again", "what a failed provider kept from moving is moved", "cmd/macronode/internal/server/rebalance.go", "\t\tif !again {\n", "\t\tif !again || again {\n", "./cmd/macronode/internal/cli TestRebalanceOfShards$")),
		alone("one test has a scrub during a rebalance", one("what was moved counts as damaged", "a scrub beside a rebalance finds no damage where there is none", "cmd/macronode/internal/server/repair_scans.go", "\t\tcase gone && r.files.Moved() != moved: // it may be elsewhere; an inventory finds what is missing\n", "", "./cmd/macronode/internal/cli TestScrubDuringRebalance$")),
		one("a move leaves the other copies", "parts are in their places and nowhere else", move, "err = errors.Join(err, s.RemovePart(o, part))", "_ = part", "./adapters/objectstore TestMoveToNewProviders$", "./cmd/macronode/internal/cli TestRebalance$"),
	}
}

// entries are faults of names, buckets and multipart uploads, and of the prices of writes.
func entries() []Mutant {
	const (
		upload = "core/storage/upload.go"
		listed = "adapters/index/names.go"
		paid   = "core/flow/paid.go"
		lists  = "./adapters/index TestNamesAreListed$"
		sums   = "./core/flow TestPaidWritesAgreeWithSums$"
	)
	return []Mutant{
		alone("one test has such a server", one("another server's response is one of the node", "a response is from a node", "adapters/client/parse.go", "len(always) > 0 &&", "len(always) < 0 &&", "./adapters/client TestOtherServerIsNoNode$")),
		alone("one test has a node that goes on", one("frames after those of a backup count as missing", "a backup of a sound node is complete", "cmd/macronode/internal/offline/backup.go", "if upto > 0 { // a running", "if upto == 0 { // a running", "./cmd/macronode/internal/offline TestBackupOfNodeThatGoesOn$")),
		one("a full bucket leaves the outcome unknown", "a definite rejection is reported as one", "adapters/client/retry.go", "case a.code == QuotaExceeded:", "case false:", "./adapters/client TestJudge$", "./cmd/macronode TestScripts/^price$"),
		alone("names are a rule of one model", one("a name needs no bucket", "an object with a name needs its bucket", decide, "case !p.HasBucket(t, c.Bucket.ID):\n\t\treturn m, event.NotFound\n\tcase c.Match", "case c.Match", names)),
		alone("names are a rule of one model", one("a condition for absence is ignored", "If-None-Match never replaces an object", decide, "case c.Match.Absent && held, ", "case ", names)),
		alone("names are a rule of one model", one("a condition for an entry is ignored", "If-Match replaces the object that was seen", decide, "(!held || old.At != c.Match.At)", "(!held || old.At.LSN == 0)", names)),
		one("a replaced object counts for ever", "usage is the sum of what is held", apply, "case kindNamed:\n\t\td.plus, d.minus, d.entry, d.wantsNew = one, was, true, true", "case kindNamed:\n\t\td.plus, d.entry, d.wantsNew = one, true, true", names, sim),
		one("a replaced object keeps its reference", "an object without a name is garbage", apply, "\t\tif d.held {\n\t\t\tp.release(d.old.Address)\n\t\t}\n", "", names, sim),
		alone("names are a rule of one model", one("a copy needs no source", "a copy refers to an object that exists", decide, "case !known && f == 0:\n\t\treturn event.NotFound\n\t", "", names)),
		alone("buckets are a rule of one model", one("a bucket with objects is deleted", "only an empty bucket is deleted", decide, "case o.Objects > 0 || o.uploads > 0:", "case o.uploads > 0:", names)),
		alone("buckets are a rule of one model", one("a bucket with an upload is deleted", "only an empty bucket is deleted", decide, "case o.Objects > 0 || o.uploads > 0:", "case o.Objects > 0:", names)),
		alone("uploads are a rule of one model", one("a stale list of parts completes an upload", "an upload is completed from the parts that it has", decide, "case u.Revision != c.Revision:", "case u.Revision > c.Revision+9:", names)),
		alone("uploads are a rule of one model", one("an upload belongs to every name", "a part is put into the upload of its name", "core/storage/query.go", "if !ok || u.ended || u.place != (place{owner{t, bucket}, name}) {", "if !ok || u.ended {", names)),
		alone("uploads are a rule of one model", one("an upload that has ended takes parts", "an upload ends once", "core/storage/query.go", "if !ok || u.ended || u.place", "if !ok || u.place", names)),
		alone("uploads are a rule of one model", one("a part is free", "parts count in the quota", apply, "d.plus, d.minus, d.wantsNew = Usage{Bytes: m.size}, Usage{Bytes: d.part.Size}, true", "d.wantsNew = true", names)),
		one("a completed upload keeps counting its parts", "usage is the sum of what is held", apply, "was.plus(Usage{Bytes: d.upload.Bytes})", "was", names, sim),
		alone("uploads are a rule of one model", one("the last part of an upload is never removed", "the parts of an ended upload are removed", upload, "u, u.next <= u.high)", "u, u.next < u.high)", names)),
		alone("uploads are a rule of one model", one("a removed part keeps its object", "an object without a name is garbage", upload, "\t\t\tp.release(part.Address)\n", "\t\t\t_ = part\n", names)),
		alone("uploads are a rule of one model", one("an upload never expires", "an abandoned upload is aborted", upload, "at < u.Begun+ttl", "at < 2*u.Begun+ttl", names)),
		alone("one model appends parts", one("a part is appended at any offset", "of several parts at one offset one is accepted", decide, "case c.Append && (u.Bytes != c.Offset || u.high >= c.Number):", "case c.Append && u.high >= c.Number:", names)),
		one("an upload is completed by any content", "the digest of the whole content is verified", http+"object_upload.go", "return u.keep(u.address, u.join,", "return u.keep(storage.Address{}, u.join,", "./adapters/httpapi TestUploadOfAnotherContentIsRejected$", "./adapters/httpapi TestUploadAgreesWithModel$"),
		one("a resumed upload begins again", "what the node has is not sent again", "adapters/client/uploads.go", "offset: offset, size: size, content", "offset: min(offset, 0), size: size, content", "./adapters/client TestUploadGoesOn$", "./cmd/macronode/internal/cli TestUploadOutlivesKills$"),
		alone("one model lists names", one("a removed name is listed", "a list has the objects that there are", listed, "remove(objectKey(d.arena, c.Tenant, bucket, c.Name))", "_ = bucket", lists)),
		alone("one model lists names", one("an older row hides a newer one", "the newest row of a name counts", listed, "return cmp.Compare(b.order, a.order)", "return cmp.Compare(a.order, b.order)", lists)),
		alone("one model lists names", one("a table lists what a tail removed", "the newest row of a name counts", listed, "if at < len(recent) && bytes.Equal(recent[at].key, key) {", "if false {", lists)),
		alone("one model lists names", one("a full page ends the list", "a list goes on behind each page", listed, "case goes && end != nil:", "case false:", "./adapters/index TestListGoesOnBehindEachPage$")),
		alone("one model lists names", one("a completed upload stays in the list", "a list has the uploads in progress", listed, "if (c.Upload != storage.UploadID{}) {\n\t\t\tremove", "if false {\n\t\t\tremove", lists)),

		one("nothing is reserved for an object", "a write is refused before its body is read", paid, "if available.Less(in.Amount) {", "if available.Less(in.Amount) && in.Amount.Hi > 0 {", sums, sim),
		one("held money is reserved twice", "available is what is not held", paid, "available, _ := has.Sub(held)", "available, _ := has.Sub(types.Amount{})\n\t_ = held", sums, sim),
		one("an object is stored although its hold expired", "an object and its price are one frame", paid, "p.decideMoney(at, f, reply); reply.Problem != event.None {\n\t\tf.Undo()", "p.decideMoney(at, f, reply); reply.Problem != event.None {\n\t\tf.Commit()", sums, sim),
		one("an expired hold is reported as a missing balance", "a client learns whether to pay in or to upload faster", paid, "	case event.HoldNotActive:\n		return event.PaymentExpired\n", "", sums, sim),
		one("a repeated write pays again", "a write that stores nothing new is free", paid, "if in.Op = event.Release; !keeps {", "if in.Op = event.Release; keeps || !keeps {", sums, sim),
		one("a put without a payment is free", "while writes have a price each is paid", paid, "if reply.Problem = event.PaymentRequired; p.Keeps(c) {", "if reply.Problem = event.PaymentRequired; true {", sums, sim),
		one("the last started MiB is free", "each started MiB counts", paid, "(size+1<<20-1)>>20", "size>>20", sums, "./core/flow TestPrice$"),
		alone("one table has the outcomes", one("a failed write keeps its hold", "what a failed write reserved is released", http+"payment.go", "k.payment.used = false\n", "_ = r\n", "./adapters/httpapi TestSettle$")),
		alone("one table has the credentials", one("every key has the same secret", "a secret access key belongs to one API key", "adapters/nodedir/s3_secret.go", "h.Write(binary.BigEndian.AppendUint64(nil, uint64(id)))", "_ = binary.BigEndian", "./adapters/nodedir TestAccessKeysDiffer$")),

		alone("one test completes an upload twice", one("the second of two completions fails", "completions with the same parts have the same answer", "adapters/s3/complete.go", "k.completedMeanwhile(k.run())", "k.run()", "./adapters/s3 TestOverlappingCompletions$")),
	}
}

// shards are faults of objects with a Reed–Solomon code.
func shards() []Mutant {
	const (
		read    = "adapters/objectstore/coded.go"
		listed  = "adapters/objectstore/shards.go"
		file    = "adapters/objectstore/shard_file.go"
		model   = "./adapters/objectstore TestShardsAgreeWithModel$"
		lost    = "./adapters/objectstore TestAnyShardsMayBeLost$"
		bits    = "./adapters/objectstore TestEachBitOfAShardIsVerified$"
		failure = "./adapters/objectstore TestUploadOfShardsSurvivesFailures$"
		twice   = "./adapters/objectstore TestDamagedShardIsReadElsewhere$"
	)
	return []Mutant{
		one("a block of parity is not compared with its checksum", "each shard is verified without the others", file, "block) != [coding.ChecksumLen]byte(sum) {", "block) == [coding.ChecksumLen]byte{} && sum == nil {", bits, "./adapters/objectstore TestDamageInAllShards$"),
		alone("one test has parity that is wrong and has its checksum", one("a restored group is not verified", "no byte is sent that was not verified", read, "\tif !valid(part) {\n\t\treturn nil, ErrDamaged", "\tif false {\n\t\treturn nil, ErrDamaged", "./adapters/objectstore TestForgedParityIsNotSent$")),
		one("a read ends at the first shard that is missing", "any as many shards as there are of data are enough", read, "if err := c.restore(number); err != nil {", "if err := c.failure(); err != nil {", lost, model, inShards),
		one("what a short group lacks is not zero", "the parity of a stripe is a function of its groups", "adapters/objectstore/stripe.go", "\tclear(t.shards[shard][length:])\n", "", "./adapters/objectstore TestFilesOfShards$", inShards),
		one("an upload succeeds with fewer shards than are required", "an acknowledged object can lose a provider", "adapters/objectstore/upload.go", "return u.store.copies.requiredShards()", "return 1", failure, inShards),
		one("a checksum of parity does not say of which upload it is", "a block of another object is not taken for that of this one", "core/coding/coding.go", "binary.LittleEndian.PutUint64(of[n:], file)", "_ = file", "./adapters/objectstore TestFilesOfShards$", inShards),
		alone("a shard in two providers is rare", one("the other file of a damaged shard is not read", "a shard in two providers is as good as both files are together", "adapters/objectstore/restore.go", "ok, err := c.readElsewhere(w, shard)", "ok, err := false, c.paced", twice)),
		alone("a shard in two providers is rare", one("a damaged file of a shard hides the good one from a repair", "a repair restores what can be read", "adapters/objectstore/survey.go", "case f.err == nil && f.Scheme == scheme:", "case f.Scheme == scheme:", twice)),
		alone("a repair looks for no second file of a good shard", one("a shard in two providers takes the place of another one", "every object gets its shards again", "core/placement/placement.go", "other = t.Choose(key, 1, usable, SetOf(at))", "_ = SetOf(at)", "./core/placement TestDuplicatesLeaveRoom$")),
		alone("one test has a full disk during a repair", one("an object that was read and not written is lost", "a report of a loss is true", "adapters/objectstore/restore_parts.go", "errors.As(failed, &unread) && !whole.AreEnough()", "failed != nil && !good.AreEnough() && unread == nil", "./adapters/objectstore TestReadableObjectIsNotLost$")),
		one("a repair leaves out the last shard", "every object gets its shards again", "adapters/objectstore/parts.go", "if i != placement.None && p.in[shard] == 0 && usable.Has(i) {", "if i != placement.None && p.in[shard] == 0 && usable.Has(i) && shard+1 < p.Scheme.Shards() {", model, inShards),
		alone("the model needs minutes of draws for it", one("bad nodes end the read", "each shard has all nodes", read, "if ok && failed == nil {", "if failed == nil || !ok {", bits)),
		alone("one test looks at domains", one("two shards are in one failure domain", "a failure takes one shard at most", "core/placement/placement.go", "usable.Has(i) && !t.domains(taken).Has(t.all[i].domain)", "usable.Has(i)", "./core/placement TestShardsHaveDistinctDomains$")),
		alone("one test changes the scheme", one("shards of an earlier scheme are not found", "objects stay readable when the scheme changes", listed, "if _, scheme, _, ok := cutShard(n); ok {", "if _, scheme, _, ok := cutShard(n); ok && scheme == s.copies.Coding {", "./adapters/objectstore TestShardsStayWhenTheSchemeChanges$")),
	}
}
