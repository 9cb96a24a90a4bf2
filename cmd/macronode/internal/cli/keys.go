package cli

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
	"macronode/cmd/macronode/internal/exit"
)

// keyCommands are the verbs of API keys.
type keyCommands struct{ nodeAccess }

// Run creates an API key, and prints it or writes it to a file.
func (v *createKeyCmd) Run(c *Console) error {
	o := client.KeyRequest{Name: v.Name, Accounts: v.Account, Assets: v.Asset, Tenant: v.Tenant}
	for _, s := range v.Scope {
		o.Scopes = append(o.Scopes, client.Scope(s))
	}
	if v.Expires != "" {
		var err error
		if o.ExpiresAt, err = c.parseMoment("--expires", v.Expires); err != nil {
			return err
		}
	}
	return c.node().withClient(v.clientFlags, func(ctx context.Context, k *client.Client) (err error) {
		keep := func(string) error { return nil }
		if v.Out != "" { // before the key is created, because it is shown only once
			f, err := os.OpenFile(v.Out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return exit.Unable(fmt.Errorf("--out: %w", err))
			}
			keep = func(text string) error {
				_, err := f.WriteString(text)
				return errors.Join(err, f.Sync(), f.Close())
			}
		}
		made, err := k.CreateKey(ctx, o)
		if err != nil {
			err = askAgain(err, "macronode keys list shows a key of this name if it was created; its secret is lost: revoke it")
			if v.Out != "" {
				err = errors.Join(err, keep(""), os.Remove(v.Out))
			}
			return err
		}
		text := made.Key + "\n"
		if v.S3 {
			text, err = keyCommands{c.node()}.credentialsText(ctx, v.clientFlags, k.WithKey(made.Key))
		}
		if err = errors.Join(err, keep(text)); err != nil {
			if v.Out != "" {
				err = errors.Join(err, os.Remove(v.Out))
			}
			return exit.New(exit.CodeUnknown, fmt.Errorf("the key %s was created but could not be saved: revoke it: %w", made.ID, err))
		}
		if v.S3 && v.Out == "" {
			err = c.printLine("%s", strings.TrimSuffix(text, "\n"))
		} else {
			err = keyCommands{c.node()}.printNewKey(made, v.Out)
		}
		if err != nil && v.Out == "" {
			err = fmt.Errorf("the key %s was created but could not be printed: revoke it: %w", made.ID, err)
		}
		return err
	})
}

// printNewKey prints a new key. Its secret is in a file, or is printed here and never again.
func (c keyCommands) printNewKey(k *client.NewKey, file string) error {
	switch {
	case c.tree.JSON && file == "":
		return c.printLine("%s", k.Raw)
	case c.tree.JSON:
		return c.printJSON(struct {
			ID   string `json:"id"`
			File string `json:"file"`
		}{k.ID, file})
	case file != "":
		return c.printLine("the key %s, named %s, is in %s", k.ID, k.Name, file)
	}
	return c.printLine("%s", k.Key)
}

var keyColumns = []column{{"id", 16}, {"name", 16}, {"tenant", 8}, {"state", 8}, {"expires", 24}, {"scopes", 24}, {"accounts", 16}, {"assets", 0}}

// Run lists API keys.
func (v *listKeysCmd) Run(c *Console) error {
	return c.node().withClient(v.clientFlags, func(ctx context.Context, k *client.Client) error {
		return list(c, k.Keys(ctx, v.Tenant, listOptions(0)), keyColumns, func(k client.Key) [][]string {
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

// Run revokes an API key.
func (v *revokeKeyCmd) Run(c *Console) error {
	return c.node().withClient(v.clientFlags, func(ctx context.Context, k *client.Client) error {
		ended, err := k.RevokeKey(ctx, v.ID)
		if err != nil {
			return askAgain(err, "retry the revocation")
		}
		if c.tree.JSON {
			return c.printLine("%s", ended.Raw)
		}
		if ended.Name == "" { // the bootstrap key
			return c.printLine("the key %s is revoked", ended.ID)
		}
		return c.printLine("the key %s, named %s, is revoked", ended.ID, ended.Name)
	})
}

// Run creates a new bootstrap key offline. It needs no key, because write access to the directory is enough.
func (v *recoverKeyCmd) Run(c *Console) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	if is, err := os.Stat(cfg.Data); err != nil || !is.IsDir() {
		return exit.Unable(fmt.Errorf("there is no directory %s", cfg.Data))
	}
	lock, err := fs.Lock(fs.Dir(cfg.Data), thisBuild().Version)
	if err != nil {
		return exit.Unable(err)
	}
	defer lock.Close() //nolint:errcheck // the lock ends with the process at the latest
	k, err := nodedir.Recover(cfg.Data, rand.Reader)
	if err != nil {
		return err
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(k.String(), "mk_"), "_")
	if c.tree.JSON {
		return c.printJSON(struct {
			ID   string `json:"id"`
			File string `json:"file"`
		}{id, cfg.Data + "/bootstrap.key"})
	}
	return c.printLine("a new key, %s, is in %s/bootstrap.key; it replaces the bootstrap key at the next start", id, cfg.Data)
}

// patterns returns the patterns of a key as text.
func patterns(all []string) string {
	if len(all) == 0 {
		return "all"
	}
	return strings.Join(all, ",")
}
