// Package wire is the types of the API's document, generated: what a request and an
// answer are on the wire, and no rule about them.
package wire

//go:generate go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config oapi.yaml ../openapi.json
