package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"

	"macronode/adapters/client"
	"macronode/adapters/fs"
	"macronode/adapters/nodedir"
)

// Run makes an API key, and prints it or keeps it in a file.
func (v *createKeyCmd) Run(c *console) error {
	o := client.KeyRequest{Name: v.Name, Accounts: v.Account, Assets: v.Asset, Tenant: v.Tenant}
	for _, s := range v.Scope {
		o.Scopes = append(o.Scopes, client.Scope(s))
	}
	if v.Expires != "" {
		var err error
		if o.ExpiresAt, err = c.moment("--expires", v.Expires); err != nil {
			return err
		}
	}
	return c.asked(v.reach, func(ctx context.Context, k *client.Client) (err error) {
		keep := func(string) error { return nil }
		if v.Out != "" { // before the key is made: it is shown once
			f, err := os.OpenFile(v.Out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return cannot(fmt.Errorf("--out: %w", err))
			}
			keep = func(text string) error {
				_, err := f.WriteString(text)
				return errors.Join(err, f.Sync(), f.Close())
			}
		}
		made, err := k.CreateKey(ctx, o)
		if errors.Is(err, client.ErrUnknown) {
			err = &ending{unknown, fmt.Errorf("outcome unknown (%w): macronode keys list shows a key of this name if it was created; "+
				"its secret is lost: revoke it", errors.Unwrap(err))}
		}
		if err != nil {
			if v.Out != "" {
				err = errors.Join(err, keep(""), os.Remove(v.Out))
			}
			return err
		}
		if err := keep(made.Key + "\n"); err != nil {
			return fmt.Errorf("the key %s was created but could not be saved: revoke it: %w", made.ID, err)
		}
		return c.made(made, v.Out)
	})
}

// made tells of a new key; its secret stands in a file, or is told here and never again.
func (c *console) made(k *client.NewKey, file string) error {
	switch {
	case c.tree.JSON && file == "":
		return c.say("%s", k.Raw)
	case c.tree.JSON:
		return c.print(struct {
			ID   string `json:"id"`
			File string `json:"file"`
		}{k.ID, file})
	case file != "":
		return c.say("the key %s, named %s, is in %s", k.ID, k.Name, file)
	}
	return c.say("%s", k.Key)
}

var keyColumns = []column{{"id", 16}, {"name", 16}, {"tenant", 8}, {"state", 8}, {"expires", 24}, {"scopes", 24}, {"accounts", 16}, {"assets", 0}}

// Run lists API keys.
func (v *listKeysCmd) Run(c *console) error {
	return c.asked(v.reach, func(ctx context.Context, k *client.Client) error {
		return list(c, k.Keys(ctx, v.Tenant, upTo(0)), keyColumns, func(k client.Key) [][]string {
			ends := ""
			if !k.ExpiresAt.IsZero() {
				ends = k.ExpiresAt.Format(stampLayout)
			}
			var scopes []string
			for _, s := range k.Scopes {
				scopes = append(scopes, string(s))
			}
			return [][]string{{k.ID, k.Name, k.Tenant, string(k.State), ends, strings.Join(scopes, ","), patterns(k.Accounts), patterns(k.Assets)}}
		})
	})
}

// Run ends an API key.
func (v *revokeKeyCmd) Run(c *console) error {
	return c.asked(v.reach, func(ctx context.Context, k *client.Client) error {
		ended, err := k.RevokeKey(ctx, v.ID)
		if errors.Is(err, client.ErrUnknown) {
			return &ending{unknown, fmt.Errorf("outcome unknown (%w): retry the revocation", errors.Unwrap(err))}
		}
		if err != nil {
			return err
		}
		if c.tree.JSON {
			return c.say("%s", ended.Raw)
		}
		if ended.Name == "" { // the first one
			return c.say("the key %s is revoked", ended.ID)
		}
		return c.say("the key %s, named %s, is revoked", ended.ID, ended.Name)
	})
}

// Run makes a new bootstrap key, offline: whoever may write to the directory may do
// that anyway.
func (v *recoverKeyCmd) Run(c *console) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	if is, err := os.Stat(cfg.Data); err != nil || !is.IsDir() {
		return cannot(fmt.Errorf("there is no directory %s", cfg.Data))
	}
	lock, err := fs.Lock(fs.Dir(cfg.Data), thisBuild().Version)
	if err != nil {
		return cannot(err)
	}
	defer lock.Close() //nolint:errcheck // the lock ends with the process at the latest
	k, err := nodedir.Recover(cfg.Data, rand.Reader)
	if err != nil {
		return err
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(k.String(), "mk_"), "_")
	if c.tree.JSON {
		return c.print(struct {
			ID   string `json:"id"`
			File string `json:"file"`
		}{id, cfg.Data + "/bootstrap.key"})
	}
	return c.say("a new key, %s, is in %s/bootstrap.key; it replaces the bootstrap key at the next start", id, cfg.Data)
}

// patterns are those of a key, for a person.
func patterns(all []string) string {
	if len(all) == 0 {
		return "all"
	}
	return strings.Join(all, ",")
}
