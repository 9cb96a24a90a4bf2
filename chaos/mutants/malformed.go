package mutants

// malformed are bugs in the rejection of malformed requests.
func malformed() []Mutant {
	const check, outcome = "adapters/httpcheck/httpcheck.go", "adapters/proxy/outcome.go"
	const unit, alike, fuzz = "./adapters/httpcheck TestRequest$", "./cmd/macronode/internal/cli TestMalformedRequestsAreRefusedAlike$", "./fuzz FuzzRequestCheck$"
	return []Mutant{
		one("invalid method is forwarded", "only what an endpoint did counts against it", check, "case !isToken(r.Method):", "case r.Method == \"\":", unit, alike, fuzz),
		one("space in a target is forwarded", "a request line cannot be injected", check, "c <= ' ' || c >= 0x7f || c == '#'", "c < ' ' || c >= 0x7f || c == '#'", unit, alike),
		one("empty trailer name is sent on", "only what an endpoint did counts against it", check, "for name := range r.Trailer {\n\t\tif !isToken(name) {", "for name := range r.Trailer {\n\t\tif name != \"\" && !isToken(name) {", unit, alike),
		alone("all known malformed requests are rejected before", one("unsendable request counts as a failure", "only what an endpoint did counts against it", outcome, "case errors.Is(err, errUnsendable):", "case false:", "./adapters/proxy TestUnsendableRequestIsNoEndpointFault$")),
		alone("one test has an endpoint with a limit and a client that exceeds it", one("oversized header counts as a failure", "only what an endpoint did counts against it", "adapters/proxy/parts.go", "if problem, reason, ok := faultElsewhere(err); ok {", "if problem, reason, ok := faultElsewhere(err); ok && false {", "./adapters/proxy TestTooLargeHeaderIsNoEndpointFault$")),
		alone("one test asks the node's own API", one("malformed request reaches the node's own API", "one rule for every path", "adapters/httpapi/httpapi.go", "if err := httpcheck.Request(r); err != nil {", "if err := httpcheck.Request(r); err != nil && false {", alike)),
		alone("without the guard, Go's server resets such a stream eventually", one("length of 0 before data is served", "a request has one length", "adapters/httpserver/guard.go", "case n == 0 && !isEmptyBody(r.Body):", "case false && !isEmptyBody(r.Body):", "./adapters/httpserver TestHTTP2FramingAgreesWithFields$")),
		one("LF in a response ends a line", "a response has the fields that its service has set", "adapters/proxy/header_lines.go", "case h.isLF != isLF:", "case false:", "./adapters/proxy TestHeaderLinesAgreeWithModel$", "./adapters/proxy TestHeaderWithBareLFIsRejected$"),
		alone("one test has a kept connection", one("only the first header of a connection is checked", "a response has the fields that its service has set", "adapters/proxy/header_lines.go", "\tc.lines = headerLines{}\n", "", "./adapters/proxy TestHeaderWithBareLFIsRejected$")),
		alone("one test announces a body and sends none", one("a read waits for a body that nothing reads", "a response does not wait for what is not needed", "adapters/httpapi/call.go", "(k.needsNoBody() || status", "(status", "./adapters/httpapi TestReadIsAnsweredBeforeItsBody$")),
		alone("one test has every spelling", one("underscore hides a hop-by-hop field", "fields of one connection end there", "adapters/proxy/header.go", "overridesRequest(name) || isDisguised(name)", "overridesRequest(name) || isDisguised(\"\")", "./adapters/proxy TestFieldsWithUnderscoresAreDropped$")),
		one("parameter of a segment is sent on", "a path that wants a key has one spelling", "adapters/proxy/path.go", "case c == ';':", "case c == 0:", "./adapters/proxy TestStrictPathRejectsAmbiguousPaths$", "./cmd/macronode/internal/cli TestProtectedPathHasOneSpelling$", "./fuzz FuzzStrictPath$"),
		one("a method leads around a route with key", "a path that wants a key has one spelling", "adapters/proxy/route.go", "if keyed == nil && candidate.NeedsKey {", "if keyed != nil && candidate.NeedsKey {", "./adapters/proxy TestMethodIsNoWayAroundAKey$", "./cmd/macronode/internal/cli TestProtectedPathHasOneSpelling$"),
		one("case hides a path that wants a key", "a path that wants a key has one spelling", "adapters/proxy/path.go", "return (folded != path || p.upperCase) && p.isKeyed(", "return folded == \"\" && p.isKeyed(", "./adapters/proxy TestStrictPathRejectsAmbiguousPaths$", "./cmd/macronode/internal/cli TestProtectedPathHasOneSpelling$", "./fuzz FuzzStrictPath$"),
		one("open route beside a key takes any path", "a path that wants a key has one spelling", "adapters/config/gateway.go", "return other.WantsKey() && hostsMeet(", "return r.WantsKey() && other.WantsKey() && hostsMeet(", "./adapters/config TestPathNormalizationIsStrictWithKeys$", "./cmd/macronode/internal/cli TestProtectedPathHasOneSpelling$"),
	}
}
