package ask_test

import (
	"bytes"
	"slices"
	"testing"

	"macronode/ci/bench/ask"
)

// TestAsksRoundTrip: written asks are read back exactly, and a truncated file is an error.
func TestAsksRoundTrip(t *testing.T) {
	all := []ask.Ask{{"/v1/issue", "k1", "{\"to\":\"ann\"}\n", `{"memo":"<&> é"}`}, {Path: "/v1/transfer", Key: "k2"}}
	var file bytes.Buffer
	for _, a := range all {
		if err := ask.Write(&file, a); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := ask.Read(bytes.NewReader(file.Bytes())); err != nil || !slices.Equal(got, all) {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, short := range [][]byte{nil, file.Bytes()[:file.Len()/2]} {
		if got, err := ask.Read(bytes.NewReader(short)); err == nil {
			t.Errorf("%q is %+v", short, got)
		}
	}
}
