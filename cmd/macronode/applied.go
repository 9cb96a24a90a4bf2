package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/go-json-experiment/json"

	"macronode/adapters/adminapi"
	"macronode/adapters/config"
)

// Run says what would change in the node that runs.
func (v *diffCmd) Run(c *console) error {
	here, err := c.load(v.flags()...)
	if err != nil {
		return err
	}
	there, err := c.running()
	if err != nil {
		return err
	}
	all, _ := compared(there, here) // what takes a start is told with the rest
	read, wrong := readCertificate(here)
	if _, is, err := c.found(); err == nil && read != nil && is.Listen.TLS.HTTP && read.Print() != is.Listen.TLS.Certificate {
		all = append(all, adminapi.Changed{Key: certificate, Old: short(is.Listen.TLS.Certificate), New: described(read), Hot: true})
	}
	switch {
	case c.tree.JSON:
		err = c.print(all)
	case len(all) > 0 || wrong == nil:
		err = c.sayChanged(all)
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

// running is the configuration that the node on the directory has applied.
func (c *console) running() (*config.Config, error) {
	got, err := c.atAdmin(http.MethodGet, "/config/effective")
	if err != nil {
		return nil, err
	}
	if !got.ok() {
		return nil, got.why()
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
	return config.Load(config.Sources{File: f.Name()})
}

// atAdmin asks the admin listener of the node that runs on the directory.
func (c *console) atAdmin(method, path string) (told, error) {
	_, is, err := c.found()
	if err != nil {
		return told{}, err
	}
	ctx, stop := interruptible()
	defer stop()
	return c.admin(ctx, is, method, path, oneAttempt)
}

// Run has the node read its configuration again.
func (v *reloadCmd) Run(c *console) error { return c.tellApplied(http.MethodPost, "/config/reload") }

// Run says which configuration is applied.
func (v *appliedCmd) Run(c *console) error { return c.tellApplied(http.MethodGet, "/config/status") }

// tellApplied says what the node says of its configuration; it fails where the last that it
// read is not applied.
func (c *console) tellApplied(method, path string) error {
	got, err := c.atAdmin(method, path)
	if err != nil {
		return err
	}
	var is adminapi.Applied
	if err := json.Unmarshal(got.body, &is); err != nil || is.Version == "" {
		return got.why()
	}
	if c.tree.JSON {
		err = c.print(is)
	} else {
		err = c.sayApplied(&is)
	}
	if err == nil && is.Last != nil && !is.Last.Applied {
		err = errors.New("the last configuration was rejected: the previous one remains active")
	}
	return err
}

func (c *console) sayApplied(is *adminapi.Applied) error {
	const clock = "2006-01-02T15:04:05Z"
	if err := c.say("configuration %s since %s, %d changes applied, %d rejected", is.Version, is.Since.Format(clock), is.Changes, is.Refused); err != nil {
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
	if err := c.say("read again at %s, %s", last.At.Format(clock), verdict); err != nil || len(last.Changed) == 0 {
		return err
	}
	return c.sayChanged(last.Changed)
}
