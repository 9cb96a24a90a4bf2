package config

import (
	"strings"
	"testing"
)

// TestSinksOfExports checks what each kind of sink needs.
func TestSinksOfExports(t *testing.T) {
	load := func(sinks string) (*Config, error) {
		return Load(Sources{Flags: []Flag{{Key: "data", Text: "/data"}, {Key: "exports.sinks", Text: "[" + sinks + "]"}}})
	}
	const file, hook = `{"name":"a","kind":"file","dir":"out"}`, `{"name":"b","kind":"webhook","url":"https://shop.example/in","secret_file":"/s"}`
	is, err := load(file + "," + hook + `,{"name":"c","kind":"http","url":"http://127.0.0.1:9","streams":["wallet"],"tenants":["default","7"],"weights":[{"tenant":"7","weight":8}],"inflight":64}`)
	if err != nil {
		t.Fatal(err)
	}
	sinks := is.Exports.Sinks
	if got := is.SinkDir(&sinks[0]); got != "/data/out" || sinks[0].Inflight != 4 || len(sinks[1].Streams) != 1 || sinks[1].Streams[0] != "usage" || sinks[2].Streams[0] != "wallet" {
		t.Fatalf("%s: %+v", got, sinks)
	}
	for want, text := range map[string]string{
		"exports.sinks[0] (flag) has kind file and no dir":                                       `{"name":"a","kind":"file","url":"http://127.0.0.1:9"}`,
		"exports.sinks[0] (flag) has kind http and no url":                                       `{"name":"a","kind":"http","dir":"out"}`,
		"exports.sinks[0].secret_file (flag) is set, but a file needs no secret":                 `{"name":"a","kind":"file","dir":"out","secret_file":"/s"}`,
		"exports.sinks[0] (flag) has kind webhook and no secret_file":                            `{"name":"a","kind":"webhook","url":"http://127.0.0.1:9"}`,
		"exports.sinks[1].name (flag) is a again: exports.sinks[0] has it":                       file + `,{"name":"a","kind":"file","dir":"x"}`,
		"exports.sinks[1].dir (flag) is /data/out, which is the directory of sink a":             file + `,{"name":"x","kind":"file","dir":"/data/out"}`,
		"exports.sinks[0] (flag) has 2 of url, dir, database, servers: set exactly one":          `{"name":"a","kind":"file","dir":"out","url":"http://127.0.0.1:9"}`,
		"exports.sinks[0] (flag) has kind postgres and no database":                              `{"name":"a","kind":"postgres","dir":"out"}`,
		"exports.sinks[0].database (flag) is \"postgres://u:***@h/d\": must be a URL":            `{"name":"a","kind":"postgres","database":"postgres://u:hid/den:hidden@hidden@h/d"}`,
		"exports.sinks[0].database (flag) has the option password: a secret must not be":         `{"name":"a","kind":"postgres","database":"postgres://u@h/d?sslmode=require&password=hidden"}`,
		"exports.sinks[0].database (flag) has the option sslpassword: a secret must not be":      `{"name":"a","kind":"postgres","database":"postgres://u@h/d?sslpassword=hidden"}`,
		"exports.sinks[0] (flag) has kind nats and no servers":                                   `{"name":"a","kind":"nats","url":"http://127.0.0.1:9"}`,
		"exports.sinks[0] (flag) has kind nats and no stream":                                    `{"name":"a","kind":"nats","servers":["nats://127.0.0.1:9"]}`,
		"exports.sinks[0] (flag) has kind http, and stream or subject":                           `{"name":"a","kind":"http","url":"http://127.0.0.1:9","subject":"x"}`,
		"exports.sinks[0].servers[0] (flag) is \"nats://user:***@h\": must be a URL":             `{"name":"a","kind":"nats","servers":["nats://user:hidden@h"],"stream":"x"}`,
		"exports.sinks[0].subject (flag) is \"a..b\": must be at most 64":                        `{"name":"a","kind":"nats","servers":["nats://h"],"stream":"x","subject":"a..b"}`,
		"exports.sinks[1].subject (flag) is macronode, which sink a has in the same stream":      `{"name":"a","kind":"nats","servers":["nats://h"],"stream":"x"},{"name":"b","kind":"nats","servers":["nats://h"],"stream":"x","subject":"macronode"}`,
		"exports.sinks[0].kind (flag) is \"rabbit\": must be":                                    `{"name":"a","kind":"rabbit","url":"http://127.0.0.1:9"}`,
		"exports.sinks[0] (flag) has kind kafka and no servers":                                  `{"name":"a","kind":"kafka","url":"http://127.0.0.1:9"}`,
		"exports.sinks[0] (flag) has kind kafka and no topic":                                    `{"name":"a","kind":"kafka","servers":["kafka://h"]}`,
		"exports.sinks[0] (flag) has kind nats, and topic":                                       `{"name":"a","kind":"nats","servers":["nats://h"],"stream":"x","topic":"x"}`,
		"exports.sinks[0] (flag) has kind http, and ca_file":                                     `{"name":"a","kind":"http","url":"http://127.0.0.1:9","ca_file":"/x"}`,
		"exports.sinks[0].topic (flag) is \"a/b\": must be at most 249":                          `{"name":"a","kind":"kafka","servers":["kafka://h"],"topic":"a/b"}`,
		"exports.sinks[0].servers[1] (flag) is nats://h: must begin with kafka:// or tls://":     `{"name":"a","kind":"kafka","servers":["kafka://h","nats://h"],"topic":"x"}`,
		"exports.sinks[0].servers[0] (flag) is kafka://h: must begin with nats:// or tls://":     `{"name":"a","kind":"nats","servers":["kafka://h"],"stream":"x"}`,
		"exports.sinks[0].servers (flag) has servers with and without tls://":                    `{"name":"a","kind":"kafka","servers":["kafka://h","tls://h"],"topic":"x"}`,
		"exports.sinks[0].ca_file (flag) is set: the servers must begin with tls://":             `{"name":"a","kind":"kafka","servers":["kafka://h"],"topic":"x","ca_file":"/x"}`,
		"exports.sinks[0].sasl (flag) is plain: the servers must begin with tls://":              `{"name":"a","kind":"kafka","servers":["kafka://h"],"topic":"x","sasl":"plain","secret_file":"/x"}`,
		"exports.sinks[1].topic (flag) is x, which is the topic of sink a":                       `{"name":"a","kind":"kafka","servers":["kafka://h"],"topic":"x"},{"name":"b","kind":"kafka","servers":["kafka://h"],"topic":"x"}`,
		"exports.sinks[0].name (flag) is \"A B\": must be a name of at most 32":                  `{"name":"A B","kind":"file","dir":"out"}`,
		"exports.sinks[0].tenants[0] (flag) is \"1\": must be a tenant":                          `{"name":"a","kind":"file","dir":"out","tenants":["1"]}`,
		"exports.sinks[0].tenants[1] (flag) is \"2\" again":                                      `{"name":"a","kind":"file","dir":"out","tenants":["2","2"]}`,
		"exports.sinks[0].streams[0] (flag) is \"money\": must be":                               `{"name":"a","kind":"file","dir":"out","streams":["money"]}`,
		"exports.sinks[0].weights[0].weight (flag) is 9: must be":                                `{"name":"a","kind":"file","dir":"out","weights":[{"tenant":"2","weight":9}]}`,
		"exports.sinks[0].weights (flag) has the tenant 2 twice":                                 `{"name":"a","kind":"file","dir":"out","weights":[{"tenant":"2","weight":1},{"tenant":"2","weight":2}]}`,
		"exports.sinks[0].weights (flag) has the tenant 2, which is not one of tenants: default": `{"name":"a","kind":"file","dir":"out","tenants":["default"],"weights":[{"tenant":"2","weight":1}]}`,
		"exports.sinks[0].inflight (flag) is 0: must be":                                         `{"name":"a","kind":"file","dir":"out","inflight":0}`,
		"exports.sinks[0].url (flag) is \"http://user@host/\": must be a URL":                    `{"name":"a","kind":"http","url":"http://user@host/"}`,
	} {
		if _, err := load(text); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "(flag )", "(flag)"), want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
