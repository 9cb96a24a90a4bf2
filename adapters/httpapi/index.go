package httpapi

import (
	"net/http"
	"strings"
)

// The index is what a person or a program finds that calls the node without knowing its API:
// a link to the document. It stands at / and /docs, unless a route takes these.

var (
	htmlType  = []string{"text/html; charset=utf-8"}
	indexHTML = []byte(`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>macronode</title></head>` +
		`<body><h1>macronode</h1><p>The API of this node is described by <a href="/openapi.json">/openapi.json</a> (OpenAPI 3.1).</p></body></html>` + "\n")
	indexJSON = []byte(`{"service":"macronode","openapi":"/openapi.json"}` + "\n")
)

// isIndex reports a request for the index.
func isIndex(r *http.Request) bool {
	return (r.URL.Path == "/" || r.URL.Path == "/docs") && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// index answers with the index: HTML where the client asks for it, else JSON.
func (k *call) index() {
	k.lacks = ""
	k.identify()
	if strings.Contains(strings.Join(k.r.Header["Accept"], ","), "text/html") {
		k.answer(http.StatusOK, htmlType, indexHTML)
		return
	}
	k.answer(http.StatusOK, jsonType, indexJSON)
}
