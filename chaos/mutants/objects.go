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
		reads     = "adapters/objectstore/object.go"
		tree      = "core/digest/tree.go"
		model     = "./core/storage TestPlaneAgreesWithModel$"
		tenants   = "./core/storage TestTenantsShareTables$"
		collector = "./adapters/objectstore TestCollectorAgreesWithModel$"
		power     = "./adapters/objectstore TestPowerLoss$"
	)
	return []Mutant{
		one("a tenant has no quota", "a tenant's quota is exact", decide, "!(total.within(p.limits.TenantQuota) && used", "!(total.Bytes|1 > 0 && used", model, names),
		one("a bucket has no quota", "a bucket's quota is exact", decide, "total.within(p.limits.TenantQuota) && used.within(p.limits.BucketQuota)", "total.within(p.limits.TenantQuota)", model, names),
		one("a quota can be reached but for one byte", "a quota of n bytes admits n bytes", rows, "return u.Bytes <= quota.Bytes &&", "return u.Bytes < quota.Bytes &&", model, names),
		one("buckets have no limit", "no table grows beyond its limit", "core/storage/counts.go", "p.limits.Buckets - p.buckets}", "1}", model, names),
		one("a tenant may take all buckets", "a tenant leaves room for others", "core/storage/counts.go", "p.limits.TenantBuckets - int(has.buckets)}", "1}", names, tenants),
		one("an upload that has ended leaves room at once", "the rows of a tenant are counted until they are removed", "core/storage/counts.go", "if n := difference(had, has); n != 0 {\n\t\tp.count(t, func(c *counts) { c.uploads", "if n := difference(had, has && !u.ended); n != 0 {\n\t\tp.count(t, func(c *counts) { c.uploads", names, tenants),
		one("an object counts one reference", "an object exists while an entry names it", apply, "\to.refs++\n", "\to.refs = 1\n", model, names),
		one("every upload replaces the file of an object", "a put names the file that is there", decide, "if known && (!replace || f == 0) {", "if known && f == 0 {", model, "./core/storage TestFileOfKnownObject$"),
		one("a damaged file is kept", "an upload replaces a damaged file", http+"objects.go", "c.replace = !o.intact(c.address, row)", "_ = !o.intact(c.address, row)", "./adapters/httpapi TestDamagedObjects$", "./cmd/macronode/internal/cli TestObjectsSurvive$"),
		one("a record is not undone", "an undone savepoint leaves no trace", undo, "p.undo = append(p.undo, c)", "_ = c", names, "./core/storage TestUndo$"),
		alone("one test has this", one("every key may store", "a put needs the scope store", plane, "return keys.Allows(at, c.Head().Caller, c.Head().Tenant, event.ScopeStore)", "return true", "./core/storage TestAuthorization$")),
		alone("one test has this", one("a record with any usage fits", "a journal proves the quotas", apply, "return m.tenantUsage == d.apply(total) && m.bucketUsage == d.apply(used) &&\n\t\t", "return total.Bytes|1 > 0 && ", "./core/storage TestFitsRejectsWhatDoesNotContinue$")),
		alone("the index is asked for no key by one test", one("a put without a key waits for the index", "a command without a key needs no index", "core/node/request.go", "if len(in.Key.Text) == 0 {", "if false {", "./core/storage TestCommandsWithoutKeyNeedNoIndex$")),

		one("objects take the permits of streams", "uploads and downloads have permits of their own", http+"httpapi.go", "e.facet, e.meanBytes = types.FacetStorage, 64<<10", "e.facet, e.meanBytes = types.Streams, 64<<10", "./adapters/httpapi TestWaitingRequestsUseStreamPermits$", "./cmd/macronode/internal/cli TestEachEndpointIsCounted$"),
		one("an empty directory gets the identity of a lost one", "objects are not stored on the wrong disk", "adapters/objectstore/identity.go", "if !s.owner.hasObjects() ||", "if len(names) == 0 || !s.owner.hasObjects() ||", "./adapters/objectstore TestOnlyDirectory$", "./adapters/objectstore TestNoDirectoryIsThere$", "./cmd/macronode/internal/cli TestUnmountedObjectDirectoryDegrades$"),
		alone("one test has files of another node", one("the files of another node are removed", "the collector removes only files of its node", "adapters/objectstore/store.go", "if err := s.checkClaimed(p); err != nil {", "if err := error(nil); err != nil {", "./adapters/objectstore TestOnlyDirectory$")),
		one("a copy is not compared with its address", "a backup verifies what it copies", reads, "if !valid(part) {", "if valid(nil) {", "./adapters/objectstore TestCopyReportsWhichSideFailed$", "./cmd/macronode TestScripts/^backup_objects$"),
		alone("one test cuts the power at each operation", one("the names of copies are not made durable", "a finished backup is durable", "adapters/objectstore/copy.go", "err = errors.Join(err, p.Port.Flush())", "_ = p", "./adapters/objectstore TestCopySurvivesPowerLoss$")),
		alone("one test uses a number again", one("a copy leaves its number free", "a restored node never uses a number again", "adapters/objectstore/copy.go", "\ts.Reserve(o.File)\n", "", "./adapters/objectstore TestCopySurvivesPowerLoss$")),
		alone("under load the race is seldom", one("a backup takes a deleted object for lost", "a backup is of one frame", "cmd/macronode/internal/offline/objects.go", "deleted = deleted || !before[o.File]", "_ = before", "./cmd/macronode/internal/offline TestBackupFollowsDeletes$")),
		alone("one script looks at the files of a backup", one("a backup keeps deleted objects for ever", "a backup has the objects of its last frame", "cmd/macronode/internal/offline/objects.go", "return ok && o.File == file", "_, _ = o, ok\n\t\treturn true", "./cmd/macronode TestScripts/^backup_objects$")),
		alone("one script deletes the last object", one("a backup keeps the last deleted objects", "a backup has the objects of its last frame", "cmd/macronode/internal/offline/backup.go", "hasObjects(objects) || hasObjects(copied)", "hasObjects(objects)", "./cmd/macronode TestScripts/^backup_objects$")),
		alone("one script damages objects", one("a backup keeps a damaged copy", "a backup replaces a damaged copy", "cmd/macronode/internal/offline/objects.go", "if !have.Has(o) || k.sound[o.File] {", "if true {", "./cmd/macronode TestScripts/^backup_objects$")),
		alone("one script damages objects", one("verify does not read contents", "verify finds a damaged object", "cmd/macronode/internal/offline/objects.go", "check = func(o storage.Stored, i int) error { return store.VerifyCopy(o, i, nil) }", "", "./cmd/macronode TestScripts/^backup_objects$")),

		one("the root is hashed as an inner node", "an address is the BLAKE3 digest", tree, "\tlast.Flags |= guts.FlagRoot\n", "", "./core/digest TestTreeIsBLAKE3$", "./core/digest TestRangesAreVerified$"),
		one("nodes are not verified", "every node on the way is verified", tree, "if chainingValue(n) != s.value {", "if false {", "./core/digest TestNodesAreVerified$", "./adapters/objectstore TestDamageIsNeverSent$"),
		one("content is not verified", "no byte is sent that was not verified", reads, "if !valid(part) {", "if false {", "./adapters/objectstore TestDamageIsNeverSent$", "./adapters/httpapi TestDamagedObjects$"),
		one("the name of a file is not durable", "an acknowledged object survives", writes, "return t.Port.Flush()", "return nil", power, collector),
		one("the content of a file is not durable", "an acknowledged object survives", writes, "err := f.Sync(); err != nil", "err := error(nil); err != nil", power, collector),
		one("appended nodes are read from the begin of the file", "a range is verified by the nodes behind the content", reads, "x.nodes, x.nodesAt = data, o.Size", "x.nodes, x.nodesAt = data, 0", "./adapters/objectstore TestRanges$", power),
		alone("one test damages files", one("a file with appended nodes may have any length", "a file that is cut or grown is damaged", reads, "|| uint64(size) != want {", "|| uint64(size) < o.Size {", "./adapters/objectstore TestDamageIsNeverSent$")),
		one("objects of older versions are not found", "a file that was written once stays readable", store, "severalGroups = []layout{appendedNodes, separateNodes}", "severalGroups = []layout{appendedNodes}", "./adapters/objectstore TestRanges$", power),
		one("the file of an upload is collected", "the collector removes no file that is being written", store, "f.file > newest || s.writes(f.file) ||", "f.file > newest ||", collector, "./adapters/objectstore TestCollectorAsksInOrder$"),
		alone("one test ends an upload between the two questions", one("the collector asks for the row first", "an upload that ended has its row", store, "!ok || f.file > newest || s.writes(f.file) || !f.part && live(f.address, f.file)", "!ok || !f.part && live(f.address, f.file) || f.file > newest || s.writes(f.file)", "./adapters/objectstore TestCollectorAsksInOrder$")),
		alone("a file that is lost is not in the list that a start reads", one("the number of a lost file is used again", "no number is used twice", store, "\ts.next = max(s.next, file)\n", "", "./adapters/objectstore TestNumbersAreNeverUsedAgain$")),
		alone("one model starts again and again", one("numbers begin again at a start", "no number is used twice", store, "s.Reserve(f.file)", "_ = f", collector)),
		alone("one test has an upload whose outcome is unknown", one("an unknown outcome ends the upload", "a file whose row may come is kept", http+"objects.go", "return err == nil || ok && r.problem != event.OutcomeUnknown", "return err == nil || ok || r.problem == event.OutcomeUnknown", "./adapters/httpapi TestUnknownOutcomeKeepsTheFile$")),
		alone("one test has this", one("a full disk waits for the interval", "files of deleted objects do not use up the disk", store, "s.written.Load() < spare/4", "spare > 0", "./adapters/objectstore TestFullAsksForCollection$")),
		alone("one test has this", one("uploads take the reserve of the disk", "uploads never stop the journal", writes, "min(free, s.limits.Reserve+freeCheck)", "min(free, freeCheck)", "./adapters/objectstore TestRefusals$")),
		alone("a script that has it waits for a node that serves", one("a lost journal begins anew beside objects", "no file is removed because its journal is lost", "cmd/macronode/internal/server/recover.go", "datadir.Index, datadir.Objects}", "datadir.Index}", "./cmd/macronode/internal/server TestObjectsNeedTheirJournal$")),
		alone("one table has the conditions", one("a weak tag selects a range", "a range needs the very object", http+"object_read.go", "if tag == \"*\" || tag == etag(a) {", "if tag == \"*\" || strings.TrimPrefix(tag, \"W/\") == etag(a) {", "./adapters/httpapi TestConditionsOfObjects$")),
		one("another content is stored", "the address decides what is stored", http+"objects.go", "want != (storage.Address{}) && want != a {", "false {", "./adapters/httpapi TestRefusedUploads$", "./adapters/httpapi TestWireGolden$"),
	}
}

// copies are faults of placement, of copies and of their repair.
func copies() []Mutant {
	const (
		places  = "core/placement/placement.go"
		upload  = "adapters/objectstore/upload.go"
		object  = "adapters/objectstore/object.go"
		copied  = "adapters/objectstore/copy.go"
		queue   = "core/repair/repair.go"
		budget  = "core/repair/budget.go"
		domains = "./core/placement TestCopiesHaveDistinctDomains$"
		mirror  = "./adapters/objectstore TestCopiesAgreeWithModel$"
		failure = "./adapters/objectstore TestUploadSurvivesFailures$"
		tasks   = "./core/repair TestQueueAgreesWithModel$"
		rate    = "./core/repair TestBudgetHoldsOverEveryInterval$"
	)
	return []Mutant{
		alone("one test looks at domains", one("two copies are in one failure domain", "a failure takes one copy at most", places, "if usable.Has(i) && !domains.Has(t.all[i].domain) {", "if usable.Has(i) {", domains)),
		alone("one test counts", one("weights are ignored", "a disk gets its share", places, "a, b := costs[i]*t.all[j].weight, costs[j]*t.all[i].weight", "a, b := costs[i], costs[j]", "./core/placement TestWeightsAreRespected$")),
		alone("one test requires two copies", one("an upload succeeds with one of two required copies", "as many copies as are required are durable", upload, "good < min(u.store.copies.Required, len(u.targets))", "good < 1", failure)),
		one("an upload that lacks a copy is not repaired", "a missing copy is restored", upload, "good < s.copies.Count {", "good < 0 {", failure, mirror),
		one("a read ends at the first bad copy", "a read falls over to another copy", object, "if !o.next(off, err) {", "if true {", "./adapters/objectstore TestReadFallsOver$", mirror),
		one("another copy is read from the beginning of the range", "a read that falls over repeats no byte", object, "off, length = off+uint64(len(part)), length-uint64(len(part))", "length -= uint64(len(part)) * 0", "./adapters/objectstore TestReadFallsOver$", mirror),
		alone("one test collects meanwhile", one("the collector removes the file of a repair", "the collector removes no file that is being written", "adapters/objectstore/store.go", "s.uploads[f] || s.repairs[f]", "s.uploads[f]", "./adapters/objectstore TestCollectorSparesRepair$")),
		one("a repair reads the copy that it replaces", "a copy is made of a good copy", copied, "order: order.Without(i)", "order: order", "./adapters/objectstore TestRepairIsPaced$", mirror),
		alone("one test has directories of others", one("a directory of another node is used", "no node collects the files of another", "adapters/objectstore/identity.go", "case err == nil && p.isMine(string(got), s.owner.Journal):", "case err == nil:", "./adapters/objectstore TestDirectoriesBelongToOneNode$")),
		one("a put to a bucket replaces a file", "a writer never overwrites the file of another", "adapters/bucket/put.go", "return b.publish(draft, name, &condition)", "_ = condition\n\treturn b.publish(draft, name, nil)", "./adapters/bucket TestContract$", "./adapters/bucket TestLostAnswer$"),
		alone("one test loses an answer", one("a put that was done is taken for that of another", "a repeated put has a certain result", "adapters/bucket/put.go", "head.Metadata[putMark] == mark {", "head.Metadata[putMark] != mark {", "./adapters/bucket TestLostAnswer$")),
		alone("the lists of other tests have one page", one("a list of a bucket ends with its first page", "a collector and an inventory know every file", "adapters/bucket/list.go", "if page.IsTruncated == nil || !*page.IsTruncated {", "if page != nil {", "./adapters/bucket TestContract$")),
		one("a server without conditional writes is accepted", "a provider that can lose a file refuses the start", "adapters/objectstore/identity.go", "if errors.Is(unwritable, provider.ErrUnsuitable) {", "if false {", "./adapters/objectstore TestUnsuitableProviderIsRefused$", "./cmd/macronode/internal/cli TestUnsuitableBucketIsRefused$"),
		alone("one test has a far provider", one("far copies are read like near ones", "a bucket is read last", "adapters/objectstore/provider.go", "healthy&^s.far, healthy)", "healthy, healthy)", "./adapters/objectstore TestFarCopyIsReadLast$")),
		alone("one test has a bucket alone", one("a copy that cannot be reached is taken for a bad one", "a read that may be repeated says so", "adapters/objectio/objectio.go", "if errors.Is(err, objectstore.ErrUnavailable) {", "if false && err != nil {", "./cmd/macronode/internal/cli TestOnlyBucket$")),
		alone("one model has the budget", one("a start has a full budget", "restarts do not exceed the rate", budget, "b.full = now + b.span", "b.full = now", rate)),
		alone("one model has the budget", one("what a pause leaves is not bounded", "over any interval the bytes are bounded", budget, "max(b.full, now)", "b.full", rate)),
		alone("one model has the queue", one("an urgent object is shed", "the last good copy is repaired first", queue, "if !t.Urgent || len(m.normal) == 0 {", "if true {", tasks)),
		alone("one model has the queue", one("a failed repair is not planned again", "every object gets its copies again", queue, "m.again = m.again || failed", "_ = failed", tasks)),
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
		one("a repeated write pays again", "a write that stores nothing new is free", paid, "if in.Op = event.Release; !keeps {", "if in.Op = event.Release; keeps || !keeps {", sums, sim),
		one("a put without a payment is free", "while writes have a price each is paid", paid, "if reply.Problem = event.PaymentRequired; p.Keeps(c) {", "if reply.Problem = event.PaymentRequired; true {", sums, sim),
		one("the last started MiB is free", "each started MiB counts", paid, "(size+1<<20-1)>>20", "size>>20", sums, "./core/flow TestPrice$"),
		alone("one table has the outcomes", one("a failed write keeps its hold", "what a failed write reserved is released", http+"payment.go", "k.payment.used = false\n", "_ = r\n", "./adapters/httpapi TestSettle$")),
		alone("one table has the credentials", one("every key has the same secret", "a secret access key belongs to one API key", "adapters/nodedir/s3_secret.go", "h.Write(binary.BigEndian.AppendUint64(nil, uint64(id)))", "_ = binary.BigEndian", "./adapters/nodedir TestAccessKeysDiffer$")),

		alone("one test completes an upload twice", one("the second of two completions fails", "completions with the same parts have the same answer", "adapters/s3/complete.go", "k.completedMeanwhile(k.run())", "k.run()", "./adapters/s3 TestOverlappingCompletions$")),
	}
}
