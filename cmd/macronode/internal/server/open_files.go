package server

import (
	"fmt"
	"log/slog"

	"macronode/adapters/config"
	"macronode/adapters/fs"
	"macronode/cmd/macronode/internal/settings"
)

// startWithFiles returns the settings of a start whose connections leave the files that the node itself needs within the limit of open files
// of this process. warn logs what is lower than configured.
func startWithFiles(cfg *config.Config) (start settings.Start, warn func(*slog.Logger), err error) {
	limit, err := fs.OpenFiles()
	if err != nil {
		return start, nil, err
	}
	files := settings.FilesOf(cfg)
	shares, err := files.Share(limit)
	if err != nil {
		return start, nil, err
	}
	start = settings.NewStart(cfg)
	configured := start.Listeners.Public.MaxConns
	start.LimitFiles(shares)
	needed := files.Needed()
	if limit >= needed {
		return start, func(*slog.Logger) {}, nil
	}
	return start, func(log *slog.Logger) {
		log.Warn("the limit of open files is too low for the configuration: there are fewer connections", "listen.max_conns", shares.Public, "configured", configured,
			"admin_connections", shares.Admin, "upstream_connections", shares.Proxy, "limit", limit, "needed", needed, "remedy", fmt.Sprintf("raise LimitNOFILE (ulimit -n) to %d", needed))
	}, nil
}
