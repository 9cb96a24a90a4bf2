package cli

import (
	"context"
	"strings"

	"github.com/go-json-experiment/json"

	"macronode/adapters/client"
)

// s3Credentials are what an S3 client needs.
type s3Credentials struct {
	AccessKeyID     string `json:"access_key_id"`
	SecretAccessKey string `json:"secret_access_key"`
	Region          string `json:"region"`
	Endpoint        string `json:"endpoint_url,omitzero"`
}

// Run prints the S3 credentials of an API key.
func (v *s3KeysCmd) Run(c *Console) error {
	return c.node().withClient(v.clientFlags, func(ctx context.Context, k *client.Client) error {
		text, err := keyCommands{c.node()}.credentialsText(ctx, v.clientFlags, k)
		if err != nil {
			return err
		}
		return c.printLine("%s", strings.TrimSuffix(text, "\n"))
	})
}

// credentialsText returns the credentials as shell commands or as JSON. The endpoint is known only for a node of
// this machine.
func (c keyCommands) credentialsText(ctx context.Context, r clientFlags, k *client.Client) (string, error) {
	got, err := k.S3Credentials(ctx)
	if err != nil {
		return "", err
	}
	s := s3Credentials{AccessKeyID: got.AccessKeyID, SecretAccessKey: got.SecretAccessKey, Region: got.Region}
	if r.URL == "" {
		if _, is, err := c.findNode(); err == nil && is.Listen.S3 != "" {
			s.Endpoint = scheme(is.Listen.TLS.HTTP) + is.Listen.S3
		}
	}
	if c.tree.JSON {
		text, err := json.Marshal(s)
		return string(text) + "\n", err
	}
	var b strings.Builder
	for _, line := range [...]struct{ name, value string }{{"AWS_ACCESS_KEY_ID", s.AccessKeyID}, {"AWS_SECRET_ACCESS_KEY", s.SecretAccessKey},
		{"AWS_REGION", s.Region}, {"AWS_DEFAULT_REGION", s.Region}, {"AWS_ENDPOINT_URL", s.Endpoint}} {
		if line.value != "" {
			b.WriteString("export " + line.name + "=" + quote(line.value) + "\n")
		}
	}
	return b.String(), nil
}
