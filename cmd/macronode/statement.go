package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"macronode/adapters/client"
)

// Run lists the movements of an account, as they come.
func (v *statementCmd) Run(c *console) error {
	if c.tree.JSON && v.Format == "table" {
		v.Format = "json"
	}
	print := map[string]func(client.Entry, int) error{"table": c.entryRow, "json": c.entryItem, "ndjson": c.entryLine, "csv": c.entryCSV}[v.Format]
	return c.asked(v.reach, func(ctx context.Context, k *client.Client) error {
		n := 0
		for e, err := range k.Entries(ctx, v.Account, v.After, upTo(v.Limit)) {
			if err == nil {
				err = print(e, n)
			}
			if err != nil {
				return err
			}
			n++
		}
		switch {
		case v.Format == "json" && n == 0:
			return c.say("[]")
		case v.Format == "json":
			return c.say("\n]")
		case v.Format == "csv" && n == 0:
			return c.raw(csvHead)
		}
		return nil
	})
}

var entryColumns = []column{{"seq", 8}, {"time", 24}, {"op", 8}, {"amount", 13}, {"asset", 8}, {"balance", 13}, {"held", 12}, {"other", 20}, {"memo", 0}}

// entryRow is an entry for a person: what left has a sign.
func (c *console) entryRow(e client.Entry, n int) error {
	if n == 0 {
		if err := c.heads(entryColumns); err != nil {
			return err
		}
	}
	sign := map[string]string{"credit": "+", "debit": "-"}[string(e.Direction)]
	return c.row(entryColumns, fmt.Sprint(e.Seq), e.TS.Format(stampLayout), string(e.Op), sign+e.AmountMinor, e.Asset, e.BalanceMinor, e.HeldMinor, e.Counterparty, e.Memo)
}

// entryItem is one of an array, entryLine one of NDJSON: as the node said it.
func (c *console) entryItem(e client.Entry, n int) error {
	return c.raw(map[bool]string{true: "[\n", false: ",\n"}[n == 0] + string(e.Raw))
}

func (c *console) entryLine(e client.Entry, _ int) error { return c.say("%s", e.Raw) }

const csvHead = "seq,txid,ts,op,direction,asset,amount_minor,balance_minor,held_minor,other,hold_id,nonce,ref,memo\r\n"

// entryCSV is a row of CSV (RFC 4180), as the node itself writes them.
func (c *console) entryCSV(e client.Entry, n int) error {
	var b strings.Builder
	if n == 0 {
		b.WriteString(csvHead)
	}
	nonce := ""
	if e.Nonce > 0 {
		nonce = strconv.FormatInt(e.Nonce, 10)
	}
	b.WriteString(strings.Join([]string{strconv.FormatInt(e.Seq, 10), e.Txid, e.TS.UTC().Format(stampLayout), string(e.Op), string(e.Direction),
		cell(e.Asset), e.AmountMinor, e.BalanceMinor, e.HeldMinor, cell(e.Counterparty), e.HoldID, nonce, cell(e.Ref), cell(e.Memo)}, ","))
	return c.raw(b.String() + "\r\n")
}

// cell is a text of a caller's own, in quotes. What a spreadsheet would take for a
// formula gets an apostrophe before it, and so does what begins with one.
func cell(s string) string {
	quoted := `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	if r, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(s, unicode.IsSpace)); strings.ContainsRune("=+-@'＝＋－＠\u2212", r) {
		return `"'` + quoted[1:]
	}
	return quoted
}

// raw prints a text as it is.
func (c *console) raw(text string) error {
	_, err := c.out.Write([]byte(text))
	return err
}
