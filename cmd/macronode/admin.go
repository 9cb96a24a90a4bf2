package main

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"macronode/adapters/adminapi"
	"macronode/adapters/nodedir"
	"macronode/core/event"
	"macronode/core/types"
)

// adminHandler is the node as its operators see it.
func (l *life) adminHandler() http.Handler {
	ends := l.settings().core.Drain
	return adminapi.New(adminapi.Config{
		Status: l.ear.status, Want: l.want, Metrics: l.metrics.Handler(), Queues: l.queues, Effective: func() string { return l.edition.Load().config.Effective() }, Applied: l.changes.applied, Reload: l.reload, Decision: l.decision, Upstreams: l.upstreamNames, Proof: l.proof,
		Hosts: func() []string { return l.edition.Load().admin.hosts }, OpenMetrics: func() bool { return l.edition.Load().admin.openMetrics }, Authorize: l.authorizeAdmin,
		Longest:  ends.LameDuck + ends.Drain + ends.Abort,
		Insecure: l.settings().listeners.insecureAdmin, Token: l.run.Token, Boot: random64(), Log: l.log,
	})
}

// want carries an operator's wish to the node.
func (l *life) want(what event.SignalKind) { l.ear.say(context.Background(), event.Signal{Kind: what}) }

// authorizeAdmin checks a credential of the admin listener other than the token of run.json,
// and returns its holder for the log.
func (l *life) authorizeAdmin(credential string) (holder string, ok bool) {
	if k, err := nodedir.ParseKey(credential); err == nil {
		return "key " + k.String(), l.isAdminKey(k)
	}
	token, err := l.edition.Load().admin.readToken()
	if err != nil {
		l.log.Error("admin.token_file is not accepted", "err", err)
		return "", false
	}
	return "admin.token_file", token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(credential)) == 1
}

// isAdminKey reports whether a key may operate the node: a valid key of the default tenant
// with scope admin, not limited to some accounts or assets. Until the journal is read, no
// key is.
func (l *life) isAdminKey(k nodedir.Key) bool {
	at := l.ear.status().At
	known, found := l.follower.Find(k.ID)
	hash := k.Hash()
	return at > 0 && found && subtle.ConstantTimeCompare(hash[:], known.Hash[:]) == 1 &&
		!known.Revoked && (known.Expires == 0 || at < known.Expires) &&
		known.Tenant == types.DefaultTenant && known.Scopes&event.ScopeAdmin != 0 && known.Accounts.CoversAll() && known.Assets.CoversAll()
}

const (
	minAdminToken = 16  // characters
	maxAdminToken = 512 // characters
)

var errAdminToken = errors.New("it must hold one token of 16 to 512 characters, without spaces")

// readToken reads the file that admin.token_file names; empty: it names none.
func (s *adminSettings) readToken() (string, error) {
	if s.tokenFile == "" {
		return "", nil
	}
	f, err := os.Open(s.tokenFile)
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
