package cli

import "time"

// The verbs of usage.
type (
	usageCmd struct {
		Record  recordUsageCmd  `cmd:"" help:"Record usage events from a file, or one event."`
		Query   queryUsageCmd   `cmd:"" help:"Sum usage."`
		Export  exportUsageCmd  `cmd:"" help:"Print the sealed slices, one a line."`
		Verify  verifyUsageCmd  `cmd:"" help:"Verify exported slices. This needs no node."`
		Invoice invoiceUsageCmd `cmd:"" help:"Print what the sealed usage of a period costs."`
		Bundle  bundleUsageCmd  `cmd:"" help:"Write slices, prices and invoice to a file that verify-usage verifies."`
		Charge  chargeUsageCmd  `cmd:"" help:"Transfer what the usage of a period costs, once for each slice."`
	}

	recordUsageCmd struct {
		File      string            `arg:"" optional:"" placeholder:"FILE" help:"File with CloudEvents, as NDJSON or as a JSON array; - is standard input."`
		Dimension string            `placeholder:"NAME" help:"Dimension of one event, instead of a file."`
		Value     *uint64           `placeholder:"N" help:"Value of the event, in units of the dimension."`
		Label     map[string]string `placeholder:"NAME=VALUE" mapsep:"none" help:"Label of the event: service, region, method, route or subject; may be repeated."`
		Source    string            `default:"cli" placeholder:"SOURCE" help:"Source of the event. Default: cli."`
		ID        string            `placeholder:"ID" help:"Id of the event, unique within its source. Default: random."`
		Time      string            `placeholder:"TIME" help:"When the usage occurred: RFC 3339, or a date. Default: when the event arrives."`
		clientFlags
	}
	usageRange struct {
		From      string `placeholder:"TIME" help:"First begin of a window: RFC 3339, or a date such as 2026-01-31 (00:00 UTC)."`
		To        string `placeholder:"TIME" help:"End of the time, in the same form: windows that begin before it."`
		Dimension string `placeholder:"NAME" help:"Only this dimension. Default: all."`
	}
	queryUsageCmd struct {
		usageRange
		Last   time.Duration `placeholder:"DURATION" help:"The time up to now, or up to --as-of, such as 24h, instead of --from and --to."`
		AsOf   string        `placeholder:"TIME" help:"Sum only what was due to be sealed by then, with the same answer for ever; in the same form as --from."`
		Group  []string      `placeholder:"NAME" enum:"window,service,region,method,route,subject" help:"Sum for each window, service, region, method, route, subject; separated by commas, or repeated."`
		CSV    bool          `name:"csv" xor:"format" help:"Print CSV."`
		NDJSON bool          `name:"ndjson" xor:"format" help:"Print an object a line."`
		clientFlags
	}
	exportUsageCmd struct {
		usageRange
		clientFlags
	}
	// billedPeriod is the usage of an invoice.
	billedPeriod struct {
		Tenant string `arg:"" placeholder:"TENANT" help:"Tenant of the API key: default, or a number."`
		From   string `required:"" xor:"from" placeholder:"TIME" help:"First begin of a window: RFC 3339, or a date such as 2026-01-01 (00:00 UTC)."`
		To     string `required:"" xor:"to" placeholder:"TIME" help:"End of the period, in the same form: windows that begin before it."`
		Month  string `required:"" xor:"from,to" placeholder:"MONTH" help:"A month (UTC) such as 2026-01, instead of --from and --to."`
		clientFlags
	}
	invoiceUsageCmd struct {
		billedPeriod
	}
	bundleUsageCmd struct {
		billedPeriod
		Out string `required:"" placeholder:"FILE" help:"File to write. It must not exist."`
	}
	chargeUsageCmd struct {
		billedPeriod
		AccountFrom string `required:"" placeholder:"ACCOUNT" help:"Account that pays."`
		AccountTo   string `required:"" placeholder:"ACCOUNT" help:"Account that is credited."`
		Preview     bool   `help:"Print what would be charged, and transfer nothing."`
	}
	verifyUsageCmd struct {
		File    string `arg:"" placeholder:"FILE" help:"File that usage export has written; - is standard input."`
		Partial bool   `help:"Accept gaps, as in an export of a part of the time."`
	}
)
