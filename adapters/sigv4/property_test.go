package sigv4_test

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A sample is one request that the SDK signed, as the server receives it.
type sample struct {
	request   *http.Request
	body      []byte
	presigned bool
	hashed    bool // the signature covers the body
}

var (
	texts = rapid.StringOfN(rapid.RuneFrom([]rune("abZ09-._~!*'();:@&=+$,/?#[]%{}|^<> \"\\äß€")), 1, 8, -1)
	words = rapid.StringMatching(`[a-z0-9]{1,8}`)
)

// drawSample draws a request, signs it with the SDK and receives it.
func drawSample(rt *rapid.T, t *testing.T) sample {
	u := &url.URL{Scheme: "https", Host: rapid.SampledFrom([]string{"s3.example.com", "bucket.s3.example.com:9000", "127.0.0.1:8080"}).Draw(rt, "host")}
	u.Path = "/" + rapid.StringOfN(rapid.RuneFrom([]rune("abZ09-._~!*'();:@&=+$,/?#[]%{}|^<> \"\\äß€")), 0, 12, -1).Draw(rt, "path")
	if rapid.Bool().Draw(rt, "encoding of AWS") { // what every SDK sends; otherwise that of net/url
		u.RawPath = strings.ReplaceAll(strings.ReplaceAll(url.QueryEscape(u.Path), "+", "%20"), "%2F", "/")
	}
	query := url.Values{}
	for range rapid.IntRange(0, 4).Draw(rt, "parameters") {
		query.Add(texts.Draw(rt, "name"), rapid.OneOf(rapid.Just(""), texts).Draw(rt, "value"))
	}
	u.RawQuery = query.Encode()
	body := rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(rt, "body")
	r := newRequest(t, rapid.SampledFrom([]string{"GET", "PUT", "POST", "DELETE", "HEAD"}).Draw(rt, "method"), u.String(), body)
	for range rapid.IntRange(0, 3).Draw(rt, "headers") {
		value := rapid.StringMatching(`[!-~]([ -~]{0,6}[!-~])?`).Draw(rt, "value")
		r.Header.Add("X-Amz-Meta-"+words.Draw(rt, "name"), value)
	}
	s := sample{body: body, presigned: rapid.Bool().Draw(rt, "presigned")}
	if s.presigned {
		s.request = receive(t, presign(t, r, unsigned, time.Hour))
		return s
	}
	hash := unsigned
	if s.hashed = rapid.Bool().Draw(rt, "hashed"); s.hashed {
		hash = hexSum(body)
	}
	signHeader(t, r, hash)
	s.request = receive(t, r)
	return s
}

// TestRequestsOfSDKVerify draws requests. Each verifies as it is. If one part that the signature
// covers changes, it does not.
func TestRequestsOfSDKVerify(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawSample(rt, t)
		changed := s.request.Clone(t.Context())
		if _, err := check(s.request, secret); err != nil {
			rt.Fatalf("%s %s: %v", changed.Method, changed.RequestURI, err)
		}
		names := []string{"secret"}
		for name, change := range changes {
			if change.fits == nil || change.fits(s) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		name, with := rapid.SampledFrom(names).Draw(rt, "change"), secret
		changed.Body = io.NopCloser(bytes.NewReader(s.body)) // Clone shares the body, which was read
		if name == "secret" {
			with += "x"
		} else {
			changes[name].apply(changed, s)
		}
		if _, err := check(changed, with); err == nil {
			rt.Fatalf("%s %s verifies after a change of %s", changed.Method, changed.RequestURI, name)
		}
	})
}

// setURL changes the target as if it had arrived.
func setURL(r *http.Request, target string) {
	u, err := url.ParseRequestURI(target)
	if err != nil {
		panic(err)
	}
	r.URL, r.RequestURI = u, target
}

// A change is one that no request survives. fits limits the samples to which it applies.
type change struct {
	fits  func(s sample) bool
	apply func(r *http.Request, s sample)
}

// lastHeader returns the last signed header by name: one of x-amz-meta-* if there is one.
func lastHeader(s sample) string {
	names := slices.Sorted(maps.Keys(s.request.Header))
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "X-Amz-") })
	if len(names) == 0 {
		return ""
	}
	return names[len(names)-1]
}

var changes = map[string]change{
	"method": {apply: func(r *http.Request, _ sample) { r.Method += "X" }},
	"host":   {apply: func(r *http.Request, _ sample) { r.Host += ".other" }},
	"path": {apply: func(r *http.Request, _ sample) {
		path, query, _ := strings.Cut(r.RequestURI, "?")
		setURL(r, path+"x?"+query)
	}},
	"slash":         {apply: func(r *http.Request, _ sample) { setURL(r, "/"+r.RequestURI) }},
	"escaped slash": {apply: func(r *http.Request, _ sample) { setURL(r, "/%2F"+r.RequestURI[1:]) }},
	"query": {apply: func(r *http.Request, _ sample) {
		path, query, _ := strings.Cut(r.RequestURI, "?")
		setURL(r, path+"?"+query+"&versionId=1")
	}},
	"header added": {apply: func(r *http.Request, _ sample) { r.Header.Set("X-Amz-Acl", "public-read") }},
	"header value": {
		fits:  func(s sample) bool { return lastHeader(s) != "" },
		apply: func(r *http.Request, s sample) { r.Header.Set(lastHeader(s), r.Header.Get(lastHeader(s))+"x") },
	},
	"header removed": {
		fits:  func(s sample) bool { return lastHeader(s) != "" },
		apply: func(r *http.Request, s sample) { r.Header.Del(lastHeader(s)) },
	},
	"date of the header": {
		fits:  func(s sample) bool { return !s.presigned },
		apply: func(r *http.Request, _ sample) { r.Header.Set("X-Amz-Date", "20260504T120001Z") },
	},
	"date of the query": {
		fits: func(s sample) bool { return s.presigned },
		apply: func(r *http.Request, _ sample) {
			setURL(r, strings.Replace(r.RequestURI, stamp, "20260504T115959Z", 1))
		},
	},
	"expiry": {
		fits: func(s sample) bool { return s.presigned },
		apply: func(r *http.Request, _ sample) {
			setURL(r, strings.Replace(r.RequestURI, "X-Amz-Expires=3600", "X-Amz-Expires=3601", 1))
		},
	},
	"payload": {
		fits: func(s sample) bool { return s.hashed && len(s.body) > 0 },
		apply: func(r *http.Request, s sample) {
			other := bytes.Clone(s.body)
			other[len(other)/2] ^= 1
			r.Body = io.NopCloser(bytes.NewReader(other))
		},
	},
}
