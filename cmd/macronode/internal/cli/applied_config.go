package cli

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"macronode/adapters/adminapi"
	"macronode/adapters/config"
	"macronode/cmd/macronode/internal/settings"
)

// Run shows what would change in the running node.
func (v *diffCmd) Run(c *Console) error {
	here, err := c.load(v.flags()...)
	if err != nil {
		return err
	}
	there, err := c.node().runningConfig()
	if err != nil {
		return err
	}
	all, _ := settings.Compare(there, here) // keys that need a restart are listed with the others
	read, wrong := settings.ReadCertificate(here)
	if _, is, err := c.node().findNode(); err == nil && read != nil && is.Listen.TLS.HTTP && read.Fingerprint() != is.Listen.TLS.Certificate {
		all = append(all, adminapi.Changed{Key: settings.CertificateKey, Old: settings.ShortFingerprint(is.Listen.TLS.Certificate), New: settings.DescribeCertificate(read), Hot: true})
	}
	switch {
	case c.tree.JSON:
		err = c.printJSON(all)
	case len(all) > 0 || wrong == nil:
		err = nodeReport{c}.printChanges(all)
	}
	switch {
	case err != nil:
	case wrong != nil:
		err = fmt.Errorf("it cannot be applied: %w", wrong)
	case len(all) > 0:
		err = errors.New("the running node has a different configuration")
	}
	return err
}

// runningConfig returns the configuration that the running node has applied.
func (c nodeAccess) runningConfig() (*config.Config, error) {
	got, err := c.getAdmin(http.MethodGet, "/config/effective", attemptTimeout)
	if err != nil {
		return nil, err
	}
	if !got.ok() {
		return nil, got.problem()
	}
	f, err := os.CreateTemp("", "macronode-*.yaml")
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // a temporary file of ours
	_, err = f.Write(got.body)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	return config.Load(config.Sources{File: f.Name(), Sections: settings.Planes().Sections()})
}

// getAdmin sends a request to the admin listener of the running node.
func (c nodeAccess) getAdmin(method, path string, within time.Duration) (adminResponse, error) {
	_, is, err := c.findNode()
	if err != nil {
		return adminResponse{}, err
	}
	ctx, stop := interruptible()
	defer stop()
	return c.callAdmin(ctx, is, method, path, within)
}

// Run makes the running node reload its configuration.
func (v *reloadCmd) Run(c *Console) error {
	return nodeReport{c}.reportApplied(http.MethodPost, "/config/reload", reloadTimeout)
}

// Run shows the applied configuration.
func (v *appliedCmd) Run(c *Console) error {
	return nodeReport{c}.reportApplied(http.MethodGet, "/config/status", attemptTimeout)
}

// reportApplied prints the configuration status of the node. It fails if the configuration that was read last is
// not applied.
func (c nodeReport) reportApplied(method, path string, within time.Duration) error {
	got, err := c.node().getAdmin(method, path, within)
	if err != nil {
		return err
	}
	var is adminapi.Applied
	if err := json.Unmarshal(got.body, &is); err != nil || is.Version == "" {
		return got.problem()
	}
	if c.tree.JSON {
		err = c.printJSON(is)
	} else {
		err = c.printApplied(&is)
	}
	if err == nil && is.Last != nil && !is.Last.Applied {
		err = errors.New("the last configuration was rejected: the previous one remains active")
	}
	return err
}

func (c nodeReport) printApplied(is *adminapi.Applied) error {
	const clock = "2006-01-02T15:04:05Z"
	if err := c.printLine("configuration %s since %s, %d changes applied, %d rejected", is.Version, is.Since.Format(clock), is.Changes, is.Refused); err != nil {
		return err
	}
	last := is.Last
	if last == nil {
		return nil
	}
	verdict := "applied"
	if !last.Applied {
		verdict = "rejected: " + strings.Join(last.Why, "; ")
	}
	if last.Partial {
		verdict += " (its rehearsal is partial: it ended at its limit of steps)"
	}
	if err := c.printLine("read again at %s, %s", last.At.Format(clock), verdict); err != nil || len(last.Changed) == 0 {
		return err
	}
	return c.printChanges(last.Changed)
}
