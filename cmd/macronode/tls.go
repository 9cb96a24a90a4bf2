package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"macronode/adapters/adminapi"
	"macronode/adapters/config"
	"macronode/adapters/httpserver"
	"macronode/adapters/nodedir"
)

// soon is how long before its end a certificate is warned of.
const soon = 7 * 24 * time.Hour

// readCertificate reads what the configuration names; nil: it names none.
func readCertificate(c *config.Config) (*httpserver.Certificate, error) {
	t := newTLSSettings(c)
	if t.cert == "" {
		return nil, nil
	}
	read, err := httpserver.ReadCertificate(t.cert, t.key, time.Now())
	if err != nil {
		return nil, fmt.Errorf("listen.tls: %w", err)
	}
	return read, nil
}

// newTLS is how the listeners prove who they are; nil: they do not.
func newTLS(c *config.Config, read *httpserver.Certificate) *httpserver.TLS {
	if read == nil {
		return nil
	}
	return httpserver.NewTLS(read, newTLSSettings(c).postQuantum)
}

// present has whoever connects from now on see a certificate; nil: the node has none.
func (l *life) present(read *httpserver.Certificate) {
	if read == nil {
		return
	}
	was := l.tls.Shown()
	l.tls.Show(read)
	if !read.Same(was) {
		l.told(func(r *nodedir.Run) { r.Listen.TLS.Certificate = read.Print() })
		l.log.Info("TLS certificate reloaded", "ends", read.Ends(), "before", was.Ends())
	}
}

// described is a certificate in what changed: which one, and until when.
func described(c *httpserver.Certificate) string {
	return short(c.Print()) + " until " + c.Ends().UTC().Format(time.RFC3339)
}

// short is enough of a certificate's SHA-256 to know it again.
func short(print string) string { return print[:min(16, len(print))] }

// proves is what run.json says of it.
func (l *life) proves() (t nodedir.TLS) {
	if l.tls != nil {
		t = nodedir.TLS{HTTP: true, Admin: l.settings().listeners.tls.admin, Certificate: l.tls.Shown().Print()}
	}
	return t
}

// age is how near a certificate is to its end.
type age int

const (
	young age = iota
	old
	over
)

func (a age) String() string { return [...]string{"young", "old", "over"}[a] }

func ageOf(ends, now time.Time) age {
	switch {
	case !now.Before(ends):
		return over
	case now.Add(soon).After(ends):
		return old
	}
	return young
}

// watchCertificate says of each certificate once that it ends soon, and once that it is over.
func (l *life) watchCertificate(now time.Time) {
	if l.tls == nil {
		return
	}
	shown := l.tls.Shown()
	if l.watched == nil || !shown.Same(l.watched) {
		l.aged = young
	}
	l.watched = shown
	ends := shown.Ends()
	is := ageOf(ends, now)
	if is == l.aged {
		return
	}
	l.aged = is
	switch is {
	case over:
		l.log.Error("TLS certificate expired: clients reject it", "ended", ends, "file", l.settings().listeners.tls.cert)
	case old:
		l.log.Warn("TLS certificate expires soon", "ends", ends, "left", ends.Sub(now).Round(time.Second), "file", l.settings().listeners.tls.cert)
	case young:
	}
}

// proof is how long the certificate that is shown is good for.
func (l *life) proof() (is adminapi.Proof, ok bool) {
	if l.tls == nil {
		return is, false
	}
	ends := l.tls.Shown().Ends()
	return adminapi.Proof{Ends: ends.UTC(), Age: ageOf(ends, time.Now()).String()}, true
}

var errStranger = errors.New("the listener presents another certificate than the node's: if it was just renewed, try again")

// only speaks to who shows a certificate, whoever signed it: a node of this machine says
// in its directory which one it has.
func only(print string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, //nolint:gosec // it is compared below
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || httpserver.Print(s.PeerCertificates[0].Raw) != print {
				return errStranger
			}
			return nil
		}}
}
