package receipt_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/event"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// TestProblemsFollowRFC9457 checks every problem against its table.
func TestProblemsFollowRFC9457(t *testing.T) {
	used := types.NewTxID(0x0123456789abcdef, types.Position{LSN: 17, Index: 2})
	for p := event.Problem(1); p.Known(); p++ {
		for _, f := range []struct {
			facts  receipt.Facts
			fields string
			detail string
			nonce  string
			index  string
			txid   string
		}{
			{receipt.Facts{Decision: []byte("d_1")}, "", p.Detail(), "", "", ""},
			{receipt.Facts{Decision: []byte("d_1"), Nonce: types.MaxNonce}, " expected_nonce", p.Detail(), "9007199254740991", "", ""},
			{receipt.Facts{Decision: []byte("d_1"), Detail: "amount: not canonical"}, "", "amount: not canonical", "", "", ""},
			{receipt.Facts{Decision: []byte("d_1"), Item: true}, " index", p.Detail(), "", "0", ""},
			{receipt.Facts{Decision: []byte("d_1"), Index: 3}, "", p.Detail(), "", "", ""},
			{receipt.Facts{Decision: []byte("d_1"), Used: used}, " txid", p.Detail(), "", "", "tx_0123456789abcdef0000000000110002"},
			{receipt.Facts{Decision: []byte("d_1"), Nonce: 4, Item: true, Index: 999, Used: used, Detail: "no"}, " expected_nonce index txid", "no",
				"4", "999", "tx_0123456789abcdef0000000000110002"},
		} {
			got := string(receipt.Problem([]byte("before"), p, f.facts))
			object, ok := strings.CutPrefix(got, "before")
			if want := "type title status detail code retryable decision_id" + f.fields; !ok || strings.Join(fields(t, object), " ") != want {
				t.Fatalf("%v: fields of %s, want %s", p, got, want)
			}
			var reported struct {
				Type, Title, Detail, Code string
				Status                    int
				Retryable                 bool
				DecisionID                string      `json:"decision_id"`
				ExpectedNonce             json.Number `json:"expected_nonce"`
				Index                     json.Number
				TxID                      string
			}
			if err := json.Unmarshal([]byte(object), &reported); err != nil {
				t.Fatalf("%v: %v in %s", p, err, object)
			}
			if reported.Type != "urn:macronode:problem:"+p.Code() || reported.Title != p.Code() || reported.Code != p.Code() ||
				reported.Status != p.Status() || reported.Retryable != p.Retryable() || reported.Detail != f.detail ||
				reported.DecisionID != "d_1" || reported.ExpectedNonce.String() != f.nonce || reported.Index.String() != f.index || reported.TxID != f.txid {
				t.Errorf("%v is %+v", p, reported)
			}
		}
	}
}

// TestStoredRejectionsHaveRecordID: the decision ID of a stored rejection is that of its record.
func TestStoredRejectionsHaveRecordID(t *testing.T) {
	s := scenes()[8]
	id := receipt.RecordID(s.journal, types.Position{LSN: s.lsn, Index: s.index})
	tx := receipt.TxID(types.NewTxID(s.journal, types.Position{LSN: s.lsn, Index: s.index}))
	if string(id[:]) != "d_00000000000000100000000001000001" || string(id[2:]) != string(tx[3:]) {
		t.Errorf("the decision is %s, the transaction would be %s", id, tx)
	}
	if answer := s.vector(t).Answer; !strings.Contains(answer, `"decision_id":"`+string(id[:])+`"`) {
		t.Errorf("no %s in %s", id, answer)
	}
}

// TestIDsRoundTrip parses the texts of transaction and hold IDs.
func TestIDsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		journal := types.JournalID(rapid.Uint64().Draw(t, "journal"))
		p := types.Position{LSN: types.LSN(rapid.Uint64Range(1, types.MaxLSN).Draw(t, "lsn")), Index: rapid.Uint16().Draw(t, "index")}
		id := types.NewTxID(journal, p)
		tx, hold := receipt.TxID(id), receipt.HoldID(id)
		if got, err := receipt.ParseTxID(string(tx[:])); err != nil || got != id || got.Journal() != journal || got.Position() != p {
			t.Fatalf("%s is read as %x, %v", tx, got, err)
		}
		if got, err := receipt.ParseHoldID(string(hold[:])); err != nil || got != id {
			t.Fatalf("%s is read as %x, %v", hold, got, err)
		}
	})
	id := types.NewTxID(0x0123456789abcdef, types.Position{LSN: 0xfedcba987654, Index: 0x3210})
	if tx := receipt.TxID(id); string(tx[:]) != "tx_0123456789abcdeffedcba9876543210" {
		t.Errorf("the journal, the LSN and the index make %s", tx)
	}
	if hold := receipt.HoldID(id); string(hold[:]) != "hold_0123456789abcdeffedcba9876543210" {
		t.Errorf("the journal, the LSN and the index make %s", hold)
	}
}

func TestParseRejectsInvalidIDs(t *testing.T) {
	const digits = "0123456789abcdef0000000000010002"
	for prefix, c := range map[string]struct {
		other string
		parse func(string) (types.TxID, error)
		not   error
	}{
		"tx_":   {"hold_", receipt.ParseTxID, receipt.ErrTxID},
		"hold_": {"tx_", receipt.ParseHoldID, receipt.ErrHoldID},
	} {
		good := prefix + digits
		if _, err := c.parse(good); err != nil {
			t.Fatal(err)
		}
		for what, s := range map[string]string{
			"empty":              "",
			"the prefix":         prefix,
			"no prefix":          digits,
			"another prefix":     strings.ToUpper(prefix) + digits,
			"the other prefix":   c.other + digits,
			"a decision":         "d_" + digits,
			"a digit too few":    good[:len(good)-1],
			"a digit too many":   good + "0",
			"a letter too far":   good[:len(good)-1] + "g",
			"another spelling":   strings.Replace(good, "abcdef", "ABCDEF", 1),
			"the first letter":   strings.Replace(good, "abcdef", "Abcdef", 1),
			"one great letter":   strings.Replace(good, "abcdef", "abcdeF", 1),
			"a space":            " " + good[:len(good)-1],
			"the frame before 1": prefix + "0123456789abcdef0000000000000002",
		} {
			if id, err := c.parse(s); !errors.Is(err, c.not) || id != (types.TxID{}) {
				t.Errorf("%s: %q is read as %x, %v", what, s, id, err)
			}
		}
	}
}

// TestStampsHaveOneLength: UTC with milliseconds.
func TestStampsHaveOneLength(t *testing.T) {
	for at, want := range map[types.Time]string{
		0:                 "1970-01-01T00:00:00.000Z",
		1:                 "1970-01-01T00:00:00.001Z",
		951_782_400_000:   "2000-02-29T00:00:00.000Z",
		1_700_000_000_120: "2023-11-14T22:13:20.120Z",
		253402300799999:   "9999-12-31T23:59:59.999Z",
	} {
		if got := string(receipt.Stamp([]byte("ts "), at)); got != "ts "+want {
			t.Errorf("%s is %s, want %s", strconv.Itoa(int(at)), got, want)
		}
	}
}
