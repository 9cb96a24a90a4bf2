package mutants

// malformed are bugs in the refusal of malformed requests, and in whom they are blamed on.
func malformed() []Mutant {
	const check, outcome = "adapters/httpcheck/httpcheck.go", "adapters/proxy/outcome.go"
	const unit, alike, fuzz = "./adapters/httpcheck TestRequest$", "./cmd/macronode TestMalformedRequestsAreRefusedAlike$", "./fuzz FuzzRequestCheck$"
	return []Mutant{
		one("method that is no token is sent on", "only what an endpoint did counts against it", check, "case !isToken(r.Method):", "case r.Method == \"\":", unit, alike, fuzz),
		one("blank in a target is sent on", "a request line cannot be injected", check, "c <= ' ' || c >= 0x7f || c == '#'", "c < ' ' || c >= 0x7f || c == '#'", unit, alike),
		one("empty trailer name is sent on", "only what an endpoint did counts against it", check, "for name := range r.Trailer {\n\t\tif !isToken(name) {", "for name := range r.Trailer {\n\t\tif name != \"\" && !isToken(name) {", unit, alike),
		alone("every malformed request that is known is refused before", one("request that cannot be written counts as a failure", "only what an endpoint did counts against it", outcome, "case errors.Is(err, errUnsendable):", "case false:", "./adapters/proxy TestARequestThatCannotBeWrittenBlamesNoEndpoint$")),
		alone("only one test has an endpoint with a limit and a client beyond it", one("header of a part that is too large counts as a failure", "only what an endpoint did counts against it", "adapters/proxy/gather.go", "if problem, symptom, ok := blameless(err); ok {", "if problem, symptom, ok := blameless(err); ok && false {", "./adapters/proxy TestAHeaderThatIsTooLargeBlamesNoEndpoint$")),
		alone("one test asks the node's own API", one("malformed request reaches the node's own API", "one rule for every path", "adapters/httpapi/httpapi.go", "if err := httpcheck.Request(r); err != nil {", "if err := httpcheck.Request(r); err != nil && false {", alike)),
		alone("beside the guard, Go's server resets such a stream, sooner or later", one("length of 0 before data is served", "a request has one length", "adapters/httpserver/guard.go", "case n == 0 && !endsEmpty(r.Body):", "case false && !endsEmpty(r.Body):", "./adapters/httpserver TestOneEndBySecond$")),
		alone("one test has every spelling", one("underscore hides a hop-by-hop field", "fields of one connection end there", "adapters/proxy/header.go", "return ours(name) || disguised(name)", "return ours(name) || disguised(\"\")", "./adapters/proxy TestUnderscoresHideNothing$")),
		one("parameter of a segment is sent on", "a path that wants a key has one spelling", "adapters/proxy/path.go", "case c == ';':", "case c == 0:", "./adapters/proxy TestStrictPaths$", "./cmd/macronode TestASecretHasOneSpelling$", "./fuzz FuzzStrictPath$"),
		one("case hides a path that wants a key", "a path that wants a key has one spelling", "adapters/proxy/path.go", "if lower == path && !p.upperCase {", "if true || lower == path && !p.upperCase {", "./adapters/proxy TestStrictPaths$", "./cmd/macronode TestASecretHasOneSpelling$", "./fuzz FuzzStrictPath$"),
		one("open route beside a key takes any path", "a path that wants a key has one spelling", "adapters/config/gateway.go", "return other.WantsKey() && hostsMeet(", "return r.WantsKey() && other.WantsKey() && hostsMeet(", "./adapters/config TestPathNormalizationIsStrictBesideKeys$", "./cmd/macronode TestASecretHasOneSpelling$"),
	}
}
