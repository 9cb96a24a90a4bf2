package server

import (
	"log/slog"
	"time"

	"macronode/adapters/adminapi"
	"macronode/adapters/httpserver"
	"macronode/adapters/nodedir"
	"macronode/cmd/macronode/internal/settings"
)

// certificates presents the TLS certificate of the listeners, and logs when it expires.
type certificates struct {
	tls      *httpserver.TLS // nil: no listener uses TLS
	settings settings.TLS
	runFile  *runFile
	log      *slog.Logger

	loggedAge settings.CertificateAge // used by logExpiry only, as the next one
	logged    *httpserver.Certificate // nil: none yet
}

// show presents a certificate to new connections. If it is nil, the node has none.
func (c *certificates) show(read *httpserver.Certificate) {
	if read == nil {
		return
	}
	was := c.tls.Certificate()
	c.tls.SetCertificate(read)
	if !read.Equal(was) {
		c.runFile.update(func(r *nodedir.Run) { r.Listen.TLS.Certificate = read.Fingerprint() })
		c.log.Info("TLS certificate reloaded", "ends", read.NotAfter(), "before", was.NotAfter())
	}
}

// ofRunFile returns what run.json contains about TLS.
func (c *certificates) ofRunFile() (t nodedir.TLS) {
	if c.tls != nil {
		t = nodedir.TLS{HTTP: true, Admin: c.settings.Admin, Certificate: c.tls.Certificate().Fingerprint()}
	}
	return t
}

// logExpiry logs once for each certificate that it expires soon, and once that it has expired.
func (c *certificates) logExpiry(now time.Time) {
	if c.tls == nil {
		return
	}
	shown := c.tls.Certificate()
	if c.logged == nil || !shown.Equal(c.logged) {
		c.loggedAge = settings.CertificateYoung
	}
	c.logged = shown
	ends := shown.NotAfter()
	age := settings.CertificateAgeOf(ends, now)
	if age == c.loggedAge {
		return
	}
	c.loggedAge = age
	switch age {
	case settings.CertificateOver:
		c.log.Error("TLS certificate expired: clients reject it", "ended", ends, "file", c.settings.Cert)
	case settings.CertificateOld:
		c.log.Warn("TLS certificate expires soon", "ends", ends, "left", ends.Sub(now).Round(time.Second), "file", c.settings.Cert)
	case settings.CertificateYoung:
	}
}

// status returns when the certificate ends. It returns false if the node has none.
func (c *certificates) status() (is adminapi.Proof, ok bool) {
	if c.tls == nil {
		return is, false
	}
	ends := c.tls.Certificate().NotAfter()
	return adminapi.Proof{Ends: ends.UTC(), Age: settings.CertificateAgeOf(ends, time.Now()).String()}, true
}

// notAfter returns the end of the certificate in seconds since 1970, for a metric. It is 0 if the node has none.
func (c *certificates) notAfter() float64 {
	if c.tls == nil {
		return 0
	}
	return float64(c.tls.Certificate().NotAfter().Unix())
}
