package settings

import (
	"log/slog"

	"macronode/adapters/config"
)

// LogsJSON reports whether log lines are JSON.
func LogsJSON(l config.Log) bool { return l.Format == "json" }

// LogLevel returns the lowest level that is logged.
func LogLevel(l config.Log) (level slog.Level) {
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		return slog.LevelInfo // the configuration allows no other text
	}
	return level
}
