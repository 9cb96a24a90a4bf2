package httpapi_test

import (
	"testing"

	"macronode/adapters/httpapi/wire"
)

// TestQueryErrorNamesParameter: the response names the parameter that is missing, repeated or unknown. An unknown
// name that could be no parameter is not repeated.
func TestQueryErrorNamesParameter(t *testing.T) {
	s := serve(t, build(t))
	const day, known = "from=2023-11-14T00:00:00Z&to=2023-11-15T00:00:00Z", "; these are: from, to, dimension, as_of, format, group"
	for query, want := range map[string]string{
		"/v1/usage":                                     "from: is missing",
		"/v1/usage?from=2023-11-14T00:00:00Z":           "to: is missing",
		"/v1/usage?" + day + "&to=2023-11-16T00:00:00Z": "to: is given more than once",
		"/v1/usage?" + day + "&group=window&group=":     "group: is given more than once",
		"/v1/usage?" + day + "&z=1&limit=10":            "limit: is no parameter of this resource" + known,
		"/v1/usage?form=2023-11-14T00:00:00Z":           "form: is no parameter of this resource" + known,
		"/v1/usage?" + day + "&%3Cb%3E=1":               "The query has an unknown parameter" + known,
		"/v1/usage?" + day + "&=1":                      "The query has an unknown parameter" + known,
		"/v1/usage?" + day + ";group=window":            "The query has an invalid escape or a semicolon.",
		"/v1/usage?" + day + "&group=%zz":               "The query has an invalid escape or a semicolon.",
		"/v1/balance?account=ann":                       "asset: is missing",
		"/v1/holds/" + theHold + "?limit=1":             "limit: is no parameter of this resource; these are: min_seq",
	} {
		if a := s.send(s.get(query)); a.status != 400 || parse[wire.Problem](t, a).Detail != want {
			t.Errorf("%s: %d %s, want %s", query, a.status, a.body, want)
		}
	}
}
