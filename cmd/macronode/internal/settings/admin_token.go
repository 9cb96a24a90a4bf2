package settings

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"macronode/adapters/fs"
)

const (
	minAdminToken = 16  // characters
	maxAdminToken = 512 // characters
)

var errAdminToken = errors.New("it must hold one token of 16 to 512 characters, without spaces")

// ReadToken reads the file that admin.token_file names; empty: it names none.
func (s *Admin) ReadToken() (string, error) {
	if s.tokenFile == "" {
		return "", nil
	}
	f, err := fs.OpenRegular(s.tokenFile)
	if err != nil {
		return "", fmt.Errorf("admin.token_file: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, 2*maxAdminToken))
	if err != nil {
		return "", fmt.Errorf("admin.token_file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < minAdminToken || len(token) > maxAdminToken || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("admin.token_file: %s: %w", s.tokenFile, errAdminToken)
	}
	return token, nil
}
