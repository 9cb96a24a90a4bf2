// Package wire is the types of the API's document and the requests that it knows,
// generated: what a client says and hears, and no rule about it.
package wire

//go:generate go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config oapi.yaml ../../httpapi/openapi.json
