package cli

import "time"

// The commands of a client.
type (
	walletCmd struct {
		Issue     issueCmd     `cmd:"" help:"Issue money."`
		Transfer  transferCmd  `cmd:"" help:"Transfer money between two accounts."`
		Burn      burnCmd      `cmd:"" help:"Burn money."`
		Hold      holdCmd      `cmd:"" help:"Create a hold."`
		Capture   captureCmd   `cmd:"" help:"Capture part of a hold and release the remainder."`
		Release   releaseCmd   `cmd:"" help:"Release a hold."`
		Batch     batchCmd     `cmd:"" help:"Apply the operations in a file."`
		Freeze    freezeCmd    `cmd:"" help:"Freeze an account: debits are rejected."`
		Unfreeze  unfreezeCmd  `cmd:"" help:"Unfreeze an account."`
		Balance   balanceCmd   `cmd:"" help:"Show the balance of an account."`
		BalanceAt balanceAtCmd `cmd:"" name:"balance-at" help:"Show a past balance of an account."`
		Statement statementCmd `cmd:"" help:"List the movements of an account."`
		Holds     holdsCmd     `cmd:"" help:"List the holds of an account, or show one."`
		Accounts  accountsCmd  `cmd:"" help:"List accounts and their balances."`
		Assets    assetsCmd    `cmd:"" help:"List assets and their amounts."`
		Changes   changesCmd   `cmd:"" help:"List all movements in order, and optionally follow them."`
		Tx        txCmd        `cmd:"" help:"Show the receipt of an operation."`
	}
	objectCmd struct {
		Put  putObjectCmd    `cmd:"" help:"Store a file and print its address."`
		Get  getObjectCmd    `cmd:"" help:"Read an object into a file."`
		Stat statObjectCmd   `cmd:"" help:"Show the size of an object."`
		Ls   listObjectsCmd  `cmd:"" help:"List the objects of a bucket."`
		Rm   removeObjectCmd `cmd:"" help:"Delete objects from a bucket."`
	}
	keysCmd struct {
		Create  createKeyCmd  `cmd:"" help:"Create an API key and print it."`
		S3      s3KeysCmd     `cmd:"" name:"s3" help:"Print the S3 credentials of an API key."`
		List    listKeysCmd   `cmd:"" help:"List API keys, without their secrets."`
		Revoke  revokeKeyCmd  `cmd:"" help:"Revoke an API key."`
		Recover recoverKeyCmd `cmd:"" help:"Create a new bootstrap key for a stopped node."`
	}
)

type (
	// clientFlags say how a client reaches its node and authenticates.
	clientFlags struct {
		URL        string        `placeholder:"URL" env:"MACRONODE_URL" help:"URL of the node: http://host:port, https://host:port or unix:path. Default: the node that runs on the data directory."`
		APIKey     string        `name:"api-key" placeholder:"KEY" help:"API key. Default: the bootstrap key of the data directory."`
		APIKeyFile string        `name:"api-key-file" placeholder:"FILE" env:"MACRONODE_API_KEY_FILE" help:"File with the API key."`
		Timeout    time.Duration `default:"30s" help:"Time limit for retries of busy or unready responses."`
	}
	// idempotencyFlag names a request.
	idempotencyFlag struct {
		Key string `placeholder:"KEY" help:"Idempotency key: a request with the same key takes effect once. Default: random."`
	}
	// amountFlags are an amount of an asset.
	amountFlags struct {
		Asset  string `required:"" placeholder:"ASSET" help:"Asset, for example EUR/2."`
		Amount string `required:"" placeholder:"MINOR" help:"Amount in minor units."`
		Memo   string `placeholder:"TEXT" help:"Text stored with it."`
	}
	// payerFlags name the debited account.
	payerFlags struct {
		From  string `required:"" placeholder:"ACCOUNT" help:"Account to debit."`
		Nonce int64  `placeholder:"N" help:"Next nonce of the debited account. Default: read from the node."`
		Wait  bool   `help:"Retry while the nonce is ahead, because another request uses the one before."`
	}
	// refFlag is the business reference.
	refFlag struct {
		Ref string `placeholder:"REF" help:"Business reference; it can be used only once."`
	}

	issueCmd struct {
		To string `required:"" placeholder:"ACCOUNT" help:"Account to credit."`
		amountFlags
		refFlag
		idempotencyFlag
		clientFlags
	}
	transferCmd struct {
		payerFlags
		To string `required:"" placeholder:"ACCOUNT" help:"Account to credit."`
		amountFlags
		refFlag
		idempotencyFlag
		clientFlags
	}
	burnCmd struct {
		payerFlags
		amountFlags
		refFlag
		idempotencyFlag
		clientFlags
	}
	holdCmd struct {
		payerFlags
		For string `placeholder:"ACCOUNT" help:"Beneficiary: the only account that a capture may credit. Default: any."`
		amountFlags
		Expires string `required:"" placeholder:"TIME" help:"Expiry: RFC 3339, or a duration from now such as 48h. At most 31 days ahead."`
		idempotencyFlag
		clientFlags
	}
	captureCmd struct {
		Hold   string `arg:"" help:"Id of the hold, hold_…."`
		To     string `required:"" placeholder:"ACCOUNT" help:"Account to credit."`
		Amount string `required:"" placeholder:"MINOR" help:"Amount in minor units."`
		idempotencyFlag
		clientFlags
	}
	releaseCmd struct {
		Hold string `arg:"" help:"Id of the hold, hold_…."`
		idempotencyFlag
		clientFlags
	}
	freezeCmd struct {
		Account string `arg:"" help:"Account."`
		Reason  string `required:"" placeholder:"TEXT" help:"Text stored with it."`
		idempotencyFlag
		clientFlags
	}
	unfreezeCmd struct{ freezeCmd }

	batchCmd struct {
		File    string `arg:"" placeholder:"FILE" help:"File with the operations, NDJSON or CSV; - is standard input."`
		Key     string `required:"" placeholder:"PREFIX" help:"Prefix of the idempotency keys. The same file with the same prefix takes effect once; within wallet.idempotency.ttl, a repeated run returns the first results."`
		Atomic  bool   `help:"Apply each batch as a whole or not at all, and stop at the first that fails."`
		Size    int    `default:"500" placeholder:"N" help:"Lines in a batch, at most 1000. Keep it the same for every run of one file."`
		Format  string `default:"auto" enum:"auto,ndjson,csv" help:"Format of the file: ndjson, csv, or auto to detect it."`
		Results string `placeholder:"FILE" help:"New file for the receipt or problem of each line, as NDJSON, or the one of an earlier run with the same prefix."`
		clientFlags
	}

	balanceCmd struct {
		Account string `arg:"" help:"Account."`
		Asset   string `arg:"" help:"Asset, for example EUR/2."`
		AtLeast int64  `name:"min-seq" placeholder:"SEQ" help:"Wait until the balance includes the movement with this seq."`
		clientFlags
	}
	balanceAtCmd struct {
		Account string `arg:"" help:"Account."`
		Asset   string `arg:"" help:"Asset, for example EUR/2."`
		Seq     *int64 `placeholder:"SEQ" xor:"at" required:"" help:"Balance after the movement with this seq."`
		Time    string `placeholder:"TIME" xor:"at" required:"" help:"Balance at this time, RFC 3339."`
		clientFlags
	}
	statementCmd struct {
		Account string `arg:"" help:"Account."`
		After   int64  `placeholder:"SEQ" help:"List movements after this seq. Default: from the first."`
		Limit   int    `placeholder:"N" help:"Maximum number. Default: all."`
		Format  string `default:"table" enum:"table,json,ndjson,csv" help:"Output format: table, json (one array), ndjson (a line each) or csv."`
		clientFlags
	}
	holdsCmd struct {
		Account string `arg:"" optional:"" help:"Account."`
		ID      string `placeholder:"HOLD" help:"Id of one hold, instead of an account."`
		State   string `default:"" enum:",active,captured,released,expired" help:"List only holds in this state: active, captured, released or expired."`
		Limit   int    `placeholder:"N" help:"Maximum number. Default: all."`
		clientFlags
	}
	accountsCmd struct {
		Prefix string `arg:"" optional:"" help:"List only names with this prefix."`
		Limit  int    `placeholder:"N" help:"Maximum number. Default: all."`
		clientFlags
	}
	assetsCmd struct {
		Prefix string `arg:"" optional:"" help:"List only names with this prefix."`
		Limit  int    `placeholder:"N" help:"Maximum number. Default: all."`
		clientFlags
	}
	changesCmd struct {
		After  int64 `placeholder:"SEQ" help:"List movements after this seq. Default: from the first."`
		Limit  int   `placeholder:"N" help:"Maximum number."`
		Follow bool  `help:"Follow new movements until interrupted."`
		clientFlags
	}
	txCmd struct {
		TxID   string `arg:"" optional:"" name:"txid" help:"The txid of the receipt."`
		Ref    string `placeholder:"REF" help:"Business reference, instead of a txid."`
		Key    string `placeholder:"KEY" help:"Idempotency key, instead of a txid: look up the outcome of a request."`
		Verify bool   `help:"Recompute the hash of the receipt and fail if it differs."`
		clientFlags
	}

	inBucket struct {
		Bucket string `default:"default" placeholder:"NAME" help:"Bucket: 3 to 63 of a-z, 0-9, . and -."`
	}
	putObjectCmd struct {
		File  string `arg:"" placeholder:"FILE" help:"File; - is standard input."`
		Again bool   `help:"Send the file even if the bucket holds it. This replaces a damaged copy."`

		StateHome string `name:"state-home" placeholder:"DIR" env:"XDG_STATE_HOME" help:"Directory of state: DIR/macronode/uploads has the IDs of unfinished uploads. Default: ~/.local/state."`
		inBucket
		clientFlags
	}
	getObjectCmd struct {
		Address string `arg:"" help:"Address of the object, b3:…."`
		File    string `arg:"" optional:"" placeholder:"FILE" help:"File. An interrupted download continues from FILE.part. Default: standard output."`
		inBucket
		clientFlags
	}
	statObjectCmd struct {
		Address string `arg:"" help:"Address of the object, b3:…."`
		inBucket
		clientFlags
	}
	listObjectsCmd struct {
		Limit int `placeholder:"N" help:"Maximum number. Default: all."`
		inBucket
		clientFlags
	}
	removeObjectCmd struct {
		Address []string `arg:"" help:"Addresses of the objects, b3:…."`
		inBucket
		clientFlags
	}

	createKeyCmd struct {
		Name    string   `arg:"" help:"Name of the key."`
		Scope   []string `required:"" placeholder:"SCOPE" enum:"read,issue,transfer,burn,hold,capture,admin,store,meter" help:"Permissions: read, issue, transfer, burn, hold, capture, admin, store, meter; separated by commas, or repeated."`
		Account []string `placeholder:"PATTERN" help:"Accounts: a name, or a prefix with * at the end; may be repeated. Default: all."`
		Asset   []string `placeholder:"PATTERN" help:"Assets, in the same form."`
		Expires string   `placeholder:"TIME" help:"Expiry: RFC 3339, or a duration from now such as 720h. Default: never."`
		Tenant  string   `placeholder:"N" help:"Tenant. Only keys of the default tenant may name another one."`
		S3      bool     `name:"s3" help:"Print credentials for S3 clients instead of the key."`
		Out     string   `placeholder:"FILE" help:"Write the key to a new file readable only by you, and do not print it."`
		clientFlags
	}
	s3KeysCmd   struct{ clientFlags }
	listKeysCmd struct {
		Tenant string `placeholder:"N" help:"Tenant. Only keys of the default tenant may name another one."`
		clientFlags
	}
	revokeKeyCmd struct {
		ID string `arg:"" help:"Id of the key: the 16 digits after mk_."`
		clientFlags
	}
	recoverKeyCmd struct{}
)
