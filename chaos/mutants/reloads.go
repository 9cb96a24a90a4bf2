package mutants

// reloads are bugs of reloads, truncated answers, the ring of decisions and the lock of the data
// directory.
func reloads() []Mutant {
	return []Mutant{
		one("the lock is on a file of the directory", "one node a directory", "adapters/fs/lock.go", "f, err := os.OpenFile(string(d), os.O_RDONLY|syscall.O_DIRECTORY, 0)\n\tif err != nil {\n\t\treturn nil, ", "f, err := os.OpenFile(d.path(LockName), os.O_RDWR|os.O_CREATE, 0o600)\n\tif err != nil {\n\t\treturn nil, ", "./adapters/fs TestLockOutlivesItsFile$", "./cmd/macronode TestScripts/^lock$"),
		alone("the script moves the directory and makes another, and a check between the two finds none", one("a directory that was replaced is written on", "one node a directory", "adapters/fs/lock.go", "if !os.SameFile(locked, there) {", "if false && !os.SameFile(locked, there) {", "./adapters/fs TestCheckDetectsReplacedDirectory$")),
		alone("no configuration reaches the limit, so one test lowers it", one("partial check is reported as complete", "a partial check is reported", "core/gateway/policycheck/policycheck.go", "\tp.partial = p.partial || p.steps >= p.limit\n", "", "./core/gateway/policycheck TestPartialIsReported$")),
		alone("one test lowers the limit", one("partial check is not in the outcome", "a partial check is reported", "cmd/macronode/internal/server/reload.go", "a.Partial, err = r.checkPolicy(is, next)", "_, err = r.checkPolicy(is, next)", "./cmd/macronode/internal/server TestPartialCheckIsReported$")),
		alone("one test changes every kind of key", one("reload keeps the memory limit", "a reload has all its effects", "cmd/macronode/internal/server/reload.go", "\tlimitMemory(next.Memory)\n", "", "./cmd/macronode/internal/cli TestReloadUnderTrafficHasItsEffects$")),
		alone("one test renews a certificate with another key", one("reload keeps the certificate", "a reload has all its effects", "cmd/macronode/internal/server/reload.go", "\tr.certificates.show(next.certificate)\n\tr.applyLog", "\tr.applyLog", "./cmd/macronode/internal/cli TestCertificateChangeIsAReload$")),
		alone("one test panics within an answer", one("a problem follows a body that has begun", "an answer that breaks off is not taken for whole", "adapters/adminapi/adminapi.go", "\tif w.began {\n", "\tif false {\n", "./adapters/adminapi TestPanicAnswersProblem$")),
		alone("one test measures the heap", one("a decision keeps its request's buffer", "memory is bounded by what explain memory adds up", "adapters/httpapi/admission.go", "return strings.Clone(m[:min(len(m), 16)])", "return m[:min(len(m), 16)]", "./adapters/httpapi TestDecisionsDoNotPinRequests$")),
		alone("one test makes a proxy and does not apply it", one("a proxy that is made publishes its endpoints", "a reload that is not applied changes no traffic", "adapters/proxy/proxy.go", "if alone {\n\t\tp.PublishEndpoints()", "if true {\n\t\tp.PublishEndpoints()", "./adapters/proxy TestUnusedPlacesKeepNumbers$")),
	}
}
