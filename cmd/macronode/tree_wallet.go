package main

import "time"

// The verbs that speak to a node as its callers do.
type (
	walletCmd struct {
		Issue     issueCmd     `cmd:"" help:"Let money come into being."`
		Transfer  transferCmd  `cmd:"" help:"Move money between two accounts."`
		Burn      burnCmd      `cmd:"" help:"Let money go out of being."`
		Hold      holdCmd      `cmd:"" help:"Keep money for somebody."`
		Capture   captureCmd   `cmd:"" help:"Pay of a hold, and let go of the rest."`
		Release   releaseCmd   `cmd:"" help:"Let go of a hold."`
		Batch     batchCmd     `cmd:"" help:"Do what the lines of a file say."`
		Freeze    freezeCmd    `cmd:"" help:"Let nothing leave an account."`
		Unfreeze  unfreezeCmd  `cmd:"" help:"End a freeze."`
		Balance   balanceCmd   `cmd:"" help:"Say what an account has of an asset."`
		BalanceAt balanceAtCmd `cmd:"" name:"balance-at" help:"Say what an account had of an asset."`
		Statement statementCmd `cmd:"" help:"List the movements of an account."`
		Holds     holdsCmd     `cmd:"" help:"List the holds of an account, or show one."`
		Accounts  accountsCmd  `cmd:"" help:"List accounts, and what they have."`
		Assets    assetsCmd    `cmd:"" help:"List assets, and how much there is of them."`
		Changes   changesCmd   `cmd:"" help:"List all movements in order, and follow them."`
		Tx        txCmd        `cmd:"" help:"Show again what an operation was answered with."`
	}
	keysCmd struct {
		Create  createKeyCmd  `cmd:"" help:"Make an API key, and print it."`
		List    listKeysCmd   `cmd:"" help:"List API keys, without their secrets."`
		Revoke  revokeKeyCmd  `cmd:"" help:"End an API key."`
		Recover recoverKeyCmd `cmd:"" help:"Make a new bootstrap key for a directory on which no node runs."`
	}
)

type (
	// reach is how a client finds its node and is let in.
	reach struct {
		URL        string        `placeholder:"URL" env:"MACRONODE_URL" help:"Where the node is: http://host:port, https://host:port or unix:path; else the one that runs on the directory."`
		APIKey     string        `name:"api-key" placeholder:"KEY" help:"API key; else the bootstrap key of the directory."`
		APIKeyFile string        `name:"api-key-file" placeholder:"FILE" env:"MACRONODE_API_KEY_FILE" help:"File that holds the API key."`
		Timeout    time.Duration `default:"30s" help:"How long to try; what is busy or not ready is asked again."`
	}
	// once is what names an intention.
	once struct {
		Key string `placeholder:"KEY" help:"Idempotency key: the same key is done once. Random where absent."`
	}
	// sum is how much of what.
	sum struct {
		Asset  string `required:"" placeholder:"ASSET" help:"What is moved, for example EUR/2."`
		Amount string `required:"" placeholder:"MINOR" help:"How much, in minor units."`
		Memo   string `placeholder:"TEXT" help:"Kept with it."`
	}
	// numbered is what one who pays says.
	numbered struct {
		From  string `required:"" placeholder:"ACCOUNT" help:"Who gives it."`
		Nonce int64  `placeholder:"N" help:"The number that the giver must use next; asked of the node where absent."`
		Wait  bool   `help:"Ask again while the nonce is ahead of the next, for another is on its way that uses that one."`
	}
	// named is the caller's own name.
	named struct {
		Ref string `placeholder:"REF" help:"Your own name for the payment: used once for ever, whatever the key."`
	}

	issueCmd struct {
		To string `required:"" placeholder:"ACCOUNT" help:"Who gets it."`
		sum
		named
		once
		reach
	}
	transferCmd struct {
		numbered
		To string `required:"" placeholder:"ACCOUNT" help:"Who gets it."`
		sum
		named
		once
		reach
	}
	burnCmd struct {
		numbered
		sum
		named
		once
		reach
	}
	holdCmd struct {
		numbered
		For string `placeholder:"ACCOUNT" help:"To whom alone it may be paid; else to anybody."`
		sum
		Expires string `required:"" placeholder:"TIME" help:"Until when: RFC 3339, or how long from now, such as 48h. At most 31 days ahead."`
		once
		reach
	}
	captureCmd struct {
		Hold   string `arg:"" help:"Of which hold, hold_…."`
		To     string `required:"" placeholder:"ACCOUNT" help:"Who gets it."`
		Amount string `required:"" placeholder:"MINOR" help:"How much of it, in minor units."`
		once
		reach
	}
	releaseCmd struct {
		Hold string `arg:"" help:"Which hold, hold_…."`
		once
		reach
	}
	freezeCmd struct {
		Account string `arg:"" help:"Whose."`
		Reason  string `required:"" placeholder:"TEXT" help:"Kept with it."`
		once
		reach
	}
	unfreezeCmd struct{ freezeCmd }

	batchCmd struct {
		File    string `arg:"" placeholder:"FILE" help:"The lines, NDJSON or CSV; - is the standard input."`
		Key     string `required:"" placeholder:"PREFIX" help:"What the idempotency keys begin with; the same file under the same prefix is done once."`
		Atomic  bool   `help:"Do each batch as a whole or not at all, and stop at the first that is not done."`
		Size    int    `default:"500" placeholder:"N" help:"Lines of one batch, at most 1000. Not to be changed between two runs of one file."`
		Format  string `default:"auto" enum:"auto,ndjson,csv" help:"Of the file: ndjson, csv, or what it looks like (auto)."`
		Results string `placeholder:"FILE" help:"Where to write the receipt or the problem of each line, as NDJSON."`
		reach
	}

	balanceCmd struct {
		Account string `arg:"" help:"Whose."`
		Asset   string `arg:"" help:"Of what, for example EUR/2."`
		AtLeast int64  `placeholder:"SEQ" help:"Wait until the movement with this seq is counted."`
		reach
	}
	balanceAtCmd struct {
		Account string `arg:"" help:"Whose."`
		Asset   string `arg:"" help:"Of what, for example EUR/2."`
		Seq     *int64 `placeholder:"SEQ" xor:"at" required:"" help:"After the movement with this seq."`
		Time    string `placeholder:"TIME" xor:"at" required:"" help:"At a time, RFC 3339."`
		reach
	}
	statementCmd struct {
		Account string `arg:"" help:"Whose."`
		After   int64  `placeholder:"SEQ" help:"Movements after this seq; else from the first."`
		Limit   int    `placeholder:"N" help:"So many at most; else all."`
		Format  string `default:"table" enum:"table,json,ndjson,csv" help:"How: table, json (one array), ndjson (a line each) or csv."`
		reach
	}
	holdsCmd struct {
		Account string `arg:"" optional:"" help:"Whose."`
		ID      string `placeholder:"HOLD" help:"Which one, hold_…, in the place of an account."`
		State   string `default:"" enum:",active,captured,released,expired" help:"Those in this state alone: active, captured, released or expired."`
		Limit   int    `placeholder:"N" help:"So many at most; else all."`
		reach
	}
	accountsCmd struct {
		Prefix string `arg:"" optional:"" help:"Those whose names begin so."`
		Limit  int    `placeholder:"N" help:"So many at most; else all."`
		reach
	}
	assetsCmd struct {
		Prefix string `arg:"" optional:"" help:"Those whose names begin so."`
		Limit  int    `placeholder:"N" help:"So many at most; else all."`
		reach
	}
	changesCmd struct {
		After  int64 `placeholder:"SEQ" help:"Those after this seq; else from the first."`
		Limit  int   `placeholder:"N" help:"So many at most."`
		Follow bool  `help:"Go on with what comes, until an interrupt."`
		reach
	}
	txCmd struct {
		TxID   string `arg:"" optional:"" name:"txid" help:"The receipt's txid."`
		Ref    string `placeholder:"REF" help:"Your own name for the payment, in the place of a txid."`
		Key    string `placeholder:"KEY" help:"The idempotency key, in the place of a txid: what became of a request."`
		Verify bool   `help:"Compute the hash of the receipt anew, and fail where it is another."`
		reach
	}

	createKeyCmd struct {
		Name    string   `arg:"" help:"What to call it."`
		Scope   []string `required:"" placeholder:"SCOPE" enum:"read,issue,transfer,burn,hold,capture,admin" help:"What it may do: read, issue, transfer, burn, hold, capture, admin; several with commas, or repeated."`
		Account []string `placeholder:"PATTERN" help:"Whose accounts: a name, or with a * at the end all that begin so; may be repeated. All where absent."`
		Asset   []string `placeholder:"PATTERN" help:"Which assets, the same way."`
		Expires string   `placeholder:"TIME" help:"Until when: RFC 3339, or how long from now, such as 720h. For ever where absent."`
		Tenant  string   `placeholder:"N" help:"Of another tenant, which a key of the tenant default may."`
		Out     string   `placeholder:"FILE" help:"Write the key to a new file that only you may read, and do not print it."`
		reach
	}
	listKeysCmd struct {
		Tenant string `placeholder:"N" help:"Of another tenant, which a key of the tenant default may."`
		reach
	}
	revokeKeyCmd struct {
		ID string `arg:"" help:"Its id, the 16 digits behind mk_."`
		reach
	}
	recoverKeyCmd struct{}
)
