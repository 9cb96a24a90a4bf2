package receipt_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"macronode/core/event"
	"macronode/core/receipt"
	"macronode/core/words"
)

// TestProblems: each is a problem of RFC 9457, and says what its table says.
func TestProblems(t *testing.T) {
	for p := event.Problem(1); p.Known(); p++ {
		for _, f := range []struct {
			facts  receipt.Facts
			fields string
			detail string
			nonce  string
		}{
			{receipt.Facts{Decision: []byte("d_1")}, "", p.Detail(), ""},
			{receipt.Facts{Decision: []byte("d_1"), Nonce: words.MaxNonce}, " expected_nonce", p.Detail(), "9007199254740991"},
			{receipt.Facts{Decision: []byte("d_1"), Detail: "amount: not canonical"}, "", "amount: not canonical", ""},
		} {
			got := string(receipt.Problem([]byte("before"), p, f.facts))
			object, ok := strings.CutPrefix(got, "before")
			if want := "type title status detail code retryable decision_id" + f.fields; !ok || strings.Join(fields(t, object), " ") != want {
				t.Fatalf("%v: fields of %s, want %s", p, got, want)
			}
			var said struct {
				Type, Title, Detail, Code string
				Status                    int
				Retryable                 bool
				DecisionID                string      `json:"decision_id"`
				ExpectedNonce             json.Number `json:"expected_nonce"`
			}
			if err := json.Unmarshal([]byte(object), &said); err != nil {
				t.Fatalf("%v: %v in %s", p, err, object)
			}
			if said.Type != "urn:macronode:problem:"+p.Code() || said.Title != p.Code() || said.Code != p.Code() ||
				said.Status != p.Status() || said.Retryable != p.Retryable() || said.Detail != f.detail ||
				said.DecisionID != "d_1" || said.ExpectedNonce.String() != f.nonce {
				t.Errorf("%v says %+v", p, said)
			}
		}
	}
}

// TestRefusalsNameTheirRecord: the decision id of a stored refusal is its record's.
func TestRefusalsNameTheirRecord(t *testing.T) {
	s := scenes()[8]
	id := receipt.RecordID(s.journal, words.Place{LSN: s.lsn, Index: s.index})
	tx := receipt.TxID(s.journal, words.Place{LSN: s.lsn, Index: s.index})
	if string(id[:]) != "d_00000000000000100000000001000001" || string(id[2:]) != string(tx[3:]) {
		t.Errorf("the decision is %s, the transaction would be %s", id, tx)
	}
	if answer := s.vector(t).Answer; !strings.Contains(answer, `"decision_id":"`+string(id[:])+`"`) {
		t.Errorf("no %s in %s", id, answer)
	}
}

// TestTxIDs: a txid is read back, and no two places share one.
func TestTxIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		journal := words.JournalID(rapid.Uint64().Draw(t, "journal"))
		p := words.Place{LSN: words.LSN(rapid.Uint64Range(1, words.MaxLSN).Draw(t, "lsn")), Index: rapid.Uint16().Draw(t, "index")}
		id := receipt.TxID(journal, p)
		j, q, err := receipt.ParseTxID(string(id[:]))
		if err != nil || j != journal || q != p {
			t.Fatalf("%s is read as %x %v, %v", id, j, q, err)
		}
	})
	id := receipt.TxID(0x0123456789abcdef, words.Place{LSN: 0xfedcba987654, Index: 0x3210})
	if string(id[:]) != "tx_0123456789abcdeffedcba9876543210" {
		t.Errorf("the journal, the LSN and the index make %s", id)
	}
}

func TestTxIDsRefused(t *testing.T) {
	good := "tx_0123456789abcdef0000000000010002"
	if _, _, err := receipt.ParseTxID(good); err != nil {
		t.Fatal(err)
	}
	for what, s := range map[string]string{
		"nothing":            "",
		"the prefix":         "tx_",
		"no prefix":          good[3:],
		"another prefix":     "TX_" + good[3:],
		"a decision":         "d_" + good[3:],
		"a digit too few":    good[:len(good)-1],
		"a digit too many":   good + "0",
		"a letter too far":   good[:len(good)-1] + "g",
		"another spelling":   strings.Replace(good, "abcdef", "ABCDEF", 1),
		"a space":            " " + good[:len(good)-1],
		"the frame before 1": "tx_0123456789abcdef0000000000000002",
	} {
		if j, p, err := receipt.ParseTxID(s); !errors.Is(err, receipt.ErrTxID) {
			t.Errorf("%s: %q is read as %x %v, %v", what, s, j, p, err)
		}
	}
}

// TestStamps: UTC, milliseconds, always of one length.
func TestStamps(t *testing.T) {
	for at, want := range map[words.Time]string{
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
