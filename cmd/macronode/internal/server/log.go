package server

import (
	"io"
	"log/slog"

	"macronode/adapters/config"
	"macronode/cmd/macronode/internal/settings"
)

// NewLog returns the log for operators, and its level.
func NewLog(l config.Log, to io.Writer) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.Set(settings.LogLevel(l))
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: inMilliseconds}
	if settings.LogsJSON(l) {
		return slog.New(slog.NewJSONHandler(to, o)), level
	}
	return slog.New(slog.NewTextHandler(to, o)), level
}

// inMilliseconds gives all durations one unit: took becomes took_ms, with three decimals.
func inMilliseconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindDuration {
		return a
	}
	return slog.Float64(a.Key+"_ms", float64(a.Value.Duration().Microseconds())/1000)
}
