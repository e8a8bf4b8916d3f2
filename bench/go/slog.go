//go:build go1.21

package main

import (
	"context"
	"io"
	"log/slog"
)

// Structured logs of the same fields.
func init() {
	attributes := func(i int) []slog.Attr {
		return []slog.Attr{
			slog.Int("kind", i), slog.Int("who", i>>1), slog.Int("a", i), slog.Int("b", i),
		}
	}
	background := context.Background()
	row := func(name string, handler slog.Handler) loop {
		logger := slog.New(handler)
		return loop{name, func(calls int) {
			for i := 0; i < calls; i++ {
				if logger.Enabled(background, slog.LevelInfo) {
					logger.LogAttrs(background, slog.LevelInfo, "handled", attributes(i)...)
				}
			}
		}}
	}
	loops = append(loops,
		row("slog, level disabled", slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError})),
		row("slog, JSON to io.Discard", slog.NewJSONHandler(io.Discard, nil)))
}
