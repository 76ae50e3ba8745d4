package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func jsonLine(t interface {
	Helper()
	Fatalf(string, ...any)
}, b []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if len(b) > MaxLineBytes || bytes.Count(b, []byte("\n")) != 1 || json.Unmarshal(b, &m) != nil {
		t.Fatalf("not one short line of JSON: %d bytes %q", len(b), b)
	}
	return m
}

func TestAJSONLineCarriesItsIDsAndNoSecret(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(NewJSONHandler(&b, nil)).With("bridge", "bridge-1", "pid", 42)
	log.WithGroup("callback").Warn("callback not delivered", "delivery", "callback-delivery-1", "token", "hunter2", "err", errors.New("Authorization: Bearer abcdefghijklmnopqrstuvwxyz"), "ok", false)
	m := jsonLine(t, b.Bytes())
	for k, want := range map[string]any{"level": "warn", "msg": "callback not delivered", "bridge": "bridge-1", "pid": 42.0, "callback.delivery": "callback-delivery-1", "callback.token": Mask, "callback.ok": false} {
		if m[k] != want {
			t.Errorf("%s is %v, want %v", k, m[k], want)
		}
	}
	if m["time"] == nil || strings.Contains(b.String(), "hunter2") || strings.Contains(b.String(), "abcdefghij") {
		t.Errorf("%s", b.String())
	}
	b.Reset()
	log.Debug("not at this level")
	if b.Len() != 0 {
		t.Errorf("%s", b.String())
	}
}

func TestAnyRecordIsOneShortJSONLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		log := slog.New(NewJSONHandler(&b, nil))
		var args []any
		for range rapid.IntRange(0, 30).Draw(t, "n") {
			args = append(args, rapid.String().Draw(t, "key"), strings.Repeat(rapid.String().Draw(t, "value"), rapid.IntRange(1, 200).Draw(t, "times")))
		}
		log.Info(string(rapid.SliceOf(rapid.Byte()).Draw(t, "message")), args...)
		jsonLine(t, b.Bytes())
	})
}
