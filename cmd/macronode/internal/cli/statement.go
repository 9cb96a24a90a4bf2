package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"macronode/adapters/client"
)

// entryPrinter prints the entries of a statement. Each method prints the n-th entry, from 0, in one format.
type entryPrinter struct{ *Console }

// Run lists the movements of an account as they arrive.
func (v *statementCmd) Run(c *Console) error {
	if c.tree.JSON && v.Format == "table" {
		v.Format = "json"
	}
	p := entryPrinter{c}
	print := map[string]func(client.Entry, int) error{"table": p.printEntryRow, "json": p.printEntryJSON, "ndjson": p.printEntryLine, "csv": p.printEntryCSV}[v.Format]
	return c.node().withClient(v.clientFlags, func(ctx context.Context, k *client.Client) error {
		n := 0
		for e, err := range k.Entries(ctx, v.Account, v.After, listOptions(v.Limit)) {
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
			return c.printLine("[]")
		case v.Format == "json":
			return c.printLine("\n]")
		case v.Format == "csv" && n == 0:
			return c.printRaw(csvHead)
		}
		return nil
	})
}

var entryColumns = []column{{"seq", 8}, {"time", 24}, {"op", 8}, {"amount", 13}, {"asset", 8}, {"balance", 13}, {"held", 12}, {"other", 20}, {"memo", 0}}

// printEntryRow prints a row. Debits and credits have a sign.
func (c entryPrinter) printEntryRow(e client.Entry, n int) error {
	if n == 0 {
		if err := c.printHeads(entryColumns); err != nil {
			return err
		}
	}
	sign := map[string]string{"credit": "+", "debit": "-"}[string(e.Direction)]
	return c.printRow(entryColumns, fmt.Sprint(e.Seq), e.TS.Format(stampLayout), string(e.Op), sign+e.AmountMinor, e.Asset, e.BalanceMinor, e.HeldMinor, e.Counterparty, e.Memo)
}

// printEntryJSON prints an element of a JSON array, and printEntryLine a line of NDJSON, as the node sent them.
func (c entryPrinter) printEntryJSON(e client.Entry, n int) error {
	return c.printRaw(map[bool]string{true: "[\n", false: ",\n"}[n == 0] + string(e.Raw))
}

func (c entryPrinter) printEntryLine(e client.Entry, _ int) error { return c.printLine("%s", e.Raw) }

const csvHead = "seq,txid,ts,op,direction,asset,amount_minor,balance_minor,held_minor,other,hold_id,nonce,ref,memo\r\n"

// printEntryCSV prints a row of CSV (RFC 4180) as the node writes it.
func (c entryPrinter) printEntryCSV(e client.Entry, n int) error {
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
	return c.printRaw(b.String() + "\r\n")
}

// cell quotes a text of a caller. If a spreadsheet could read it as a formula, an apostrophe is put before it, and
// also if it begins with one.
func cell(s string) string {
	quoted := `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	if r, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(s, unicode.IsSpace)); strings.ContainsRune("=+-@'＝＋－＠\u2212", r) {
		return `"'` + quoted[1:]
	}
	return quoted
}

// printRaw prints a text as it is.
func (c *Console) printRaw(text string) error {
	_, err := c.out.Write([]byte(text))
	return err
}
