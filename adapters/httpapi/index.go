package httpapi

import (
	"net/http"
	"strings"
)

// The index is for people and programs that call the node without knowing its API. It links to the document. It is
// served at / and /docs, unless a proxy route matches them.

var (
	htmlType  = []string{"text/html; charset=utf-8"}
	indexHTML = []byte(`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>macronode</title></head>` +
		`<body><h1>macronode</h1><p>The API of this node is described by <a href="/openapi.json">/openapi.json</a> (OpenAPI 3.1).</p></body></html>` + "\n")
	indexJSON = []byte(`{"service":"macronode","openapi":"/openapi.json"}` + "\n")
)

// isIndex reports whether a request is for the index.
func isIndex(r *http.Request) bool {
	return (r.URL.Path == "/" || r.URL.Path == "/docs") && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// index answers with the index, as HTML if the client accepts it, else as JSON.
func (k *call) index() {
	k.detail = ""
	k.identify()
	if strings.Contains(strings.Join(k.r.Header["Accept"], ","), "text/html") {
		k.answer(http.StatusOK, htmlType, indexHTML)
		return
	}
	k.answer(http.StatusOK, jsonType, indexJSON)
}
