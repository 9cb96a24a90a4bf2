package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Exports is where usage and movements are delivered.
type Exports struct {
	Lanes       int `key:"lanes" default:"8192" min:"1" max:"1000000" change:"restart" doc:"Maximum lanes of all tenants: pairs of a sink and a stream. A stream without a lane waits in the journal."`
	TenantLanes int `key:"max_lanes_per_tenant" default:"0" min:"0" max:"1000000" change:"restart" doc:"Maximum lanes of one tenant. 0: it leaves room in exports.lanes."`
	Rows        int `key:"quarantine" default:"4096" min:"1" max:"1000000" change:"restart" doc:"Maximum quarantined items of all tenants: those that a sink rejects. If it is full, the lane waits with its item."`
	TenantRows  int `key:"max_quarantine_per_tenant" default:"0" min:"0" max:"1000000" change:"restart" doc:"Maximum quarantined items of one tenant. 0: it leaves room in exports.quarantine."`

	Budget time.Duration `key:"quarantine_after" default:"10s" min:"0s" max:"1h" change:"hot" doc:"Time for which an item that a sink rejects is repeated before it is quarantined and the stream goes on. An item that fails because the sink is down is repeated without a limit."`

	Sinks []Sink `key:"sinks" default:"[]" most:"16" takes:"sinks" change:"hot" doc:"Systems that get sealed slices of usage, and movements of money, in order and at least once. Without a sink nothing is delivered."`
}

// A Sink is a system that gets items. After Load, Path has the directory of a file sink as this process sees it.
type Sink struct {
	Name       string   `key:"name" form:"sink" need:"yes" doc:"Name of the sink. Its positions in the streams belong to the name: a sink with another name begins at the first item."`
	Kind       string   `key:"kind" one:"file http webhook cloudevents postgres nats kafka" need:"yes" doc:"file: lines of JSON in a directory. http: PUT {url}/slices/{tenant}/{dimension}/{seq} and {url}/movements/{tenant}/{seq}. webhook: POST with a signature of Standard Webhooks. cloudevents: POST of structured CloudEvents 1.0. postgres: rows of the table macronode_items. nats: structured CloudEvents in a stream of NATS JetStream, with the subjects {subject}.{journal}.usage.{tenant}.{dimension}.{seq} and {subject}.{journal}.wallet.{tenant}.{seq}. kafka: structured CloudEvents in a topic of Kafka, with the keys usage/{tenant}/{dimension} and wallet/{tenant}."`
	URL        string   `key:"url" form:"url" either:"receiver" doc:"URL of the receiver, for the kinds http, webhook and cloudevents. Redirects are not followed."`
	Dir        string   `key:"dir" form:"directory" either:"receiver" doc:"Directory of the files, for kind file. A relative path begins in the data directory."`
	Database   string   `key:"database" form:"database" either:"receiver" doc:"Database of PostgreSQL, for kind postgres. Options of the connection, such as sslmode=verify-full, follow a question mark. The files that they name are read for each connection, so they can be replaced while the node runs. password and sslpassword are rejected: use secret_file."`
	Servers    []string `key:"servers" form:"server" most:"8" takes:"servers" either:"receiver" doc:"Servers of one cluster, for the kinds nats (nats://) and kafka (kafka://). With tls:// a connection is used only with TLS."`
	Stream     string   `key:"stream" form:"label" doc:"Stream of JetStream, for kind nats. Its subjects must include {subject}.>, and it must acknowledge messages."`
	Subject    string   `key:"subject" form:"subject" doc:"First tokens of the subjects, for kind nats. Default: macronode."`
	Topic      string   `key:"topic" form:"topic" doc:"Topic, for kind kafka. It must exist, with at most 1024 partitions."`
	SASL       string   `key:"sasl" default:"scram-sha-512" one:"scram-sha-512 scram-sha-256 plain" doc:"How the user of secret_file is authenticated, for kind kafka. plain requires servers with tls://, because it sends the password as it is."`
	CAFile     string   `key:"ca_file" form:"file" doc:"File with the certificates (PEM) of the authorities that sign those of the servers, for the kinds nats and kafka. If it is set, TLS is required. It is read for each connection, so it can be replaced while the node runs. Default: the authorities of the system."`
	SecretFile string   `key:"secret_file" form:"file" doc:"File with the secret. For kind webhook: one or two lines of whsec_ and base64, the new secret first; each request has a signature of each. For kinds http and cloudevents: a bearer token. For kind postgres: the password. For kind nats: one line with a token, two lines with a user and a password, or a file of credentials of NATS. For kind kafka: two lines with a user and a password. It is read for each request or connection, so it can be replaced while the node runs."`
	From       string   `key:"from" default:"start" one:"start now" doc:"Where a sink begins that is seen for the first time: at the first item of each stream, or with the items after this start. The node records this once; another value later has no effect until macronode exports remove."`
	Streams    []string `key:"streams" one:"usage wallet" most:"2" takes:"streams" doc:"What the sink gets: usage for sealed slices, wallet for movements of money. Default: usage."`
	Tenants    []string `key:"tenants" form:"tenant" most:"256" takes:"tenants" doc:"Tenants with items for this sink. Default: all tenants."`
	Weights    []Share  `key:"weights" most:"64" takes:"weights" doc:"Shares of tenants while several have items. Default: each has weight 1."`
	Inflight   int      `key:"inflight" default:"4" min:"1" max:"64" doc:"Items that are delivered at the same time, each of another stream, and connections to the receiver. A tenant leaves room for others: with weight 1 it gets another one only while it has fewer than are left, so half of them alone. If tenants has one tenant, that gets all."`
}

// A Share is the weight of a tenant.
type Share struct {
	Tenant string `key:"tenant" form:"tenant" need:"yes" doc:"Tenant: default, or its number."`
	Weight int    `key:"weight" min:"1" max:"8" need:"yes" doc:"Items that are delivered in a round, compared with other tenants."`
}

// SinkDir returns the directory of a file sink as this process sees it.
func (c *Config) SinkDir(s *Sink) string { return c.providerPath(s.Dir) }

// complete sets the defaults of s.
func (s *Sink) complete() {
	if len(s.Streams) == 0 {
		s.Streams = []string{"usage"}
	}
	if s.Kind == "nats" && s.Subject == "" {
		s.Subject = "macronode"
	}
}

// hasServers reports whether the kind of s has servers instead of a URL.
func (s *Sink) hasServers() bool { return s.Kind == "nats" || s.Kind == "kafka" }

// secretOption returns the option of the database that is a secret, if there is one.
func (s *Sink) secretOption() (name string, has bool) {
	_, query, _ := strings.Cut(s.Database, "?")
	for option := range strings.SplitSeq(query, "&") {
		if name, _, _ = strings.Cut(option, "="); name == "password" || name == "sslpassword" {
			return name, true
		}
	}
	return "", false
}

// schemes checks the servers of s. All connections of kind kafka use TLS, or none does: the brokers of a cluster name each other
// without a scheme.
func (s *Sink) schemes(refuse refuser) {
	secure := 0
	for i, server := range s.Servers {
		scheme, _, _ := strings.Cut(server, "://")
		if scheme == "tls" {
			secure++
		} else if scheme != s.Kind {
			refuse(fmt.Sprintf(".servers[%d]", i), "is %s: must begin with %s:// or tls://", server, s.Kind)
		}
	}
	switch {
	case s.Kind != "kafka":
	case secure > 0 && secure < len(s.Servers):
		refuse(".servers", "has servers with and without tls://: kind kafka uses TLS for all brokers or for none")
	case secure == 0 && s.CAFile != "":
		refuse(".ca_file", "is set: the servers must begin with tls://")
	case secure == 0 && s.SASL == "plain" && s.SecretFile != "":
		refuse(".sasl", "is plain: the servers must begin with tls://, because it sends the password as it is")
	}
}

// sink checks what the kind of a sink needs, and that no other sink has its name, its directory or its subjects.
func (c *Config) sink(at int, refuse refuser) {
	s := &c.Exports.Sinks[at]
	switch {
	case s.Kind == "file" && s.Dir == "":
		refuse("", "has kind file and no dir: set dir instead of url, database or servers")
	case s.Kind == "postgres" && s.Database == "":
		refuse("", "has kind postgres and no database: set database instead of url, dir or servers")
	case s.hasServers() && len(s.Servers) == 0:
		refuse("", "has kind %s and no servers: set servers instead of url, dir or database", s.Kind)
	case s.Kind == "nats" && s.Stream == "":
		refuse("", "has kind nats and no stream: set the name of a stream of JetStream")
	case s.Kind == "kafka" && s.Topic == "":
		refuse("", "has kind kafka and no topic: set the name of a topic")
	case s.Kind != "nats" && (s.Stream != "" || s.Subject != ""):
		refuse("", "has kind %s, and stream or subject: they are of kind nats", s.Kind)
	case s.Kind != "kafka" && s.Topic != "":
		refuse("", "has kind %s, and topic: it is of kind kafka", s.Kind)
	case !s.hasServers() && s.CAFile != "":
		refuse("", "has kind %s, and ca_file: it is of the kinds nats and kafka", s.Kind)
	case s.Kind != "file" && s.Kind != "postgres" && !s.hasServers() && s.URL == "":
		refuse("", "has kind %s and no url: set url instead of dir, database or servers", s.Kind)
	case s.Kind == "file" && s.SecretFile != "":
		refuse(".secret_file", "is set, but a file needs no secret")
	case s.Kind == "webhook" && s.SecretFile == "":
		refuse("", "has kind webhook and no secret_file: set a file with a secret, so that the receiver can verify signatures")
	}
	if s.hasServers() {
		s.schemes(refuse)
	}
	if name, has := s.secretOption(); has {
		refuse(".database", "has the option %s: a secret must not be in the configuration. Put a password into secret_file; a key of sslkey must not be encrypted", name)
	}
	for i := range at {
		other := &c.Exports.Sinks[i]
		if other.Name == s.Name {
			refuse(".name", "is %s again: exports.sinks[%d] has it", s.Name, i)
		}
		if s.Dir != "" && other.Dir != "" && c.SinkDir(other) == c.SinkDir(s) {
			refuse(".dir", "is %s, which is the directory of sink %s: each sink needs its own", s.Dir, other.Name)
		}
		if s.Kind == "nats" && other.Kind == "nats" && other.Stream == s.Stream && other.Subject == s.Subject && slices.Equal(other.Servers, s.Servers) {
			refuse(".subject", "is %s, which sink %s has in the same stream: each sink needs its own", s.Subject, other.Name)
		}
	}
	for i := range at {
		if other := &c.Exports.Sinks[i]; s.Kind == "kafka" && other.Kind == "kafka" && other.Topic == s.Topic && slices.Equal(other.Servers, s.Servers) {
			refuse(".topic", "is %s, which is the topic of sink %s: each sink needs its own", s.Topic, other.Name)
		}
	}
	for i, w := range s.Weights {
		switch {
		case slices.ContainsFunc(s.Weights[:i], func(o Share) bool { return o.Tenant == w.Tenant }):
			refuse(".weights", "has the tenant %s twice", w.Tenant)
		case len(s.Tenants) > 0 && !slices.Contains(s.Tenants, w.Tenant):
			refuse(".weights", "has the tenant %s, which is not one of tenants: %s", w.Tenant, strings.Join(s.Tenants, ", "))
		}
	}
}
