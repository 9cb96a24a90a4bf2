package export

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// databaseFiles are the options of the URL of a database that name files.
var databaseFiles = []string{"sslrootcert", "sslcert", "sslkey", "passfile", "servicefile"}

// databaseFile is the limit of such a file, in bytes. A connection keeps the certificates of its files.
const databaseFile = 512 << 10

// withoutFiles are options with which the client reads no files, whatever the environment of the process names.
const withoutFiles = "sslrootcert=&sslcert=&sslkey=&passfile="

// databaseValues are the values of options, for messages.
var databaseValues = map[string]string{
	"channel_binding":            "disable, prefer or require",
	"connect_timeout":            "a number of seconds, without a unit",
	"default_query_exec_mode":    "cache_statement, cache_describe, describe_exec, exec or simple_protocol",
	"description_cache_capacity": "a number",
	"max_protocol_version":       "3.0, 3.2 or latest",
	"min_protocol_version":       "3.0, 3.2 or latest",
	"sslcertmode":                "disable, allow or require",
	"sslmode":                    "disable, allow, prefer, require, verify-ca or verify-full",
	"statement_cache_capacity":   "a number",
	"target_session_attrs":       "any, read-write, read-only, primary, standby or prefer-standby",
}

// A databaseOption is an option of the URL of a database.
type databaseOption struct {
	name, value string
	text        string // of both, in the URL
}

// databaseOptions returns the URL of a database without its options, and the options.
func databaseOptions(of string) (base string, all []databaseOption) {
	base, query, _ := strings.Cut(of, "?")
	for text := range strings.SplitSeq(query, "&") {
		name, value, ok := strings.Cut(text, "=")
		if is, err := url.PathUnescape(value); ok && err == nil {
			all = append(all, databaseOption{name, is, text})
		}
	}
	return base, all
}

// CheckDatabase returns what is wrong with the URL of a database. It reads no file that the URL names: a sink reads them for each
// connection.
func CheckDatabase(of string) error {
	if _, err := pgxpool.ParseConfig("postgres://a@/a?" + withoutFiles); err != nil {
		return nil // the environment of the process is at fault, and each attempt reports that
	}
	base, all := databaseOptions(of)
	parses := func(options ...databaseOption) bool {
		to := base + "?" + withoutFiles
		for _, o := range options {
			to += "&" + o.text
		}
		_, err := pgxpool.ParseConfig(to)
		return err == nil
	}
	var hosts, others []databaseOption
	for _, o := range all {
		switch {
		case o.name == "host" || o.name == "port":
			hosts = append(hosts, o)
		case o.name != "service" && !o.namesFile():
			others = append(others, o)
		}
	}
	switch {
	case parses(append(others, hosts...)...):
		return nil
	case !parses(hosts...):
		return errors.New("must have a port from 1 to 65535 for each host, or one for all")
	}
	for _, o := range others {
		if !parses(append(hosts[:len(hosts):len(hosts)], o)...) {
			return fmt.Errorf("has the option %s with the value %q: must be %s", o.name, o.value, cmp.Or(databaseValues[o.name], "a value that the client of PostgreSQL accepts"))
		}
	}
	return errors.New("has options that contradict each other")
}

// A databaseError is the reason for which no connection can be opened with the configuration of a sink. It has no secret.
type databaseError string

func (e databaseError) Error() string { return string(e) }

// readConfig returns how to connect to the database. It reads the files that the URL names.
func (p *postgres) readConfig() (*pgxpool.Config, error) {
	_, options := databaseOptions(p.config.URL)
	for _, o := range options {
		if err := o.checkFile(); err != nil {
			return nil, err
		}
	}
	of, err := pgxpool.ParseConfig(p.config.URL)
	if err != nil {
		cause := errors.Unwrap(err) // err repeats the URL
		if cause == nil {
			cause = errors.New("an option of the environment or of the service is invalid")
		}
		return nil, databaseError("the database cannot be used: " + cause.Error())
	}
	secret := secretFile(p.config.SecretFile)
	if secret != "" {
		if of.ConnConfig.Password, err = secret.password(); err != nil {
			return nil, err
		}
	}
	of.ConnConfig.ConnectTimeout, of.ConnConfig.DialFunc, of.ConnConfig.BuildFrontend = connectTimeout, p.conns.dial, limitedFrontend
	of.ConnConfig.RuntimeParams["application_name"] = "macronode"
	return of, nil
}

// namesFile reports whether the value of an option is the path of a file.
func (o databaseOption) namesFile() bool { return slices.Contains(databaseFiles, o.name) }

// checkFile returns why the file of an option cannot be used, if the option names one.
func (o databaseOption) checkFile() error {
	if !o.namesFile() || o.name == "sslrootcert" && o.value == "system" {
		return nil
	}
	text, err := readFile(o.value, databaseFile)
	if err != nil {
		return databaseError("the file of " + o.name + " " + err.Error())
	}
	if strings.HasSuffix(o.name, "cert") && !x509.NewCertPool().AppendCertsFromPEM(text) {
		return databaseError("the file of " + o.name + " has no certificate")
	}
	return nil
}

// open returns the pool of connections. It makes the pool if there is none, which fails while a file cannot be used.
func (p *postgres) open() (*pgxpool.Pool, error) {
	p.opening.Lock()
	defer p.opening.Unlock()
	if p.pool != nil {
		return p.pool, nil
	}
	of, err := p.readConfig()
	if err != nil {
		return nil, err
	}
	of.MaxConns, of.MinConns, of.MaxConnIdleTime, of.AfterRelease = int32(p.config.Inflight), 0, idleTimeout, lasts
	of.BeforeConnect = func(_ context.Context, to *pgx.ConnConfig) error { // so that files can be replaced
		is, err := p.readConfig()
		if err == nil {
			*to = *is.ConnConfig
		}
		return err
	}
	p.pool, err = pgxpool.NewWithConfig(context.Background(), of) // it connects when it is used
	return p.pool, err
}
