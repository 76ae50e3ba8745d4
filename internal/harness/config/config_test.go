package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/config"

	"github.com/agent-knock-knock/akk/internal/fault"
)

func TestAFileChangesWhatItNamesAndNothingElse(t *testing.T) {
	c, err := config.Parse([]byte("listen: '[::1]:9000'\nstate_dir: ~/x\nsessions: {max_concurrency: 3, idle_timeout_seconds: 0.5}\nbuffers:\n  max_read_bytes: 2MiB\n"), "/home/me")
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default("/home/me")
	want.Listen, want.StateDir = "[::1]:9000", "/home/me/x"
	want.Sessions.MaxConcurrency, want.Sessions.IdleTimeoutSeconds = 3, 0.5
	want.Buffers.MaxReadBytes = 2 << 20
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v", c)
	}
	if empty, err := config.Parse(nil, "/home/me"); err != nil || !reflect.DeepEqual(empty, config.Default("/home/me")) {
		t.Errorf("an empty file: %v %+v", err, empty)
	}
}

func TestWhatCannotWorkIsRefusedInOneLine(t *testing.T) {
	for text, says := range map[string]string{
		"harnesses: {}":                         "obsolete",
		"lisen: x":                              "lisen",
		"listen: 0.0.0.0:1":                     "loopback",
		"listen: example.com:1":                 "loopback",
		"state_dir: x":                          "absolute",
		"sessions: {max_concurrency: 0}":        "max_concurrency",
		"sessions: {max_concurrency: many}":     "line 1",
		"transport: {turn_timeout_seconds: 0}":  "turn_timeout_seconds",
		"transport: {turn_timeout_seconds: -1}": "turn_timeout_seconds",
		"buffers: {max_read_bytes: 1TB}":        "size",
		"buffers: {max_read_bytes: 1}":          "max_read_bytes",
		"a: 1\n---\nb: 2":                       "known",
		"{}\n---\n{}":                           "one YAML document",
		"- x":                                   "line 1",
	} {
		_, err := config.Parse([]byte(text), "/h")
		_, msg, hint := fault.Public(err)
		if !fault.Is(err, harness.InvalidConfig) || !strings.Contains(msg+hint, says) || strings.ContainsAny(msg, "\n") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSizesHaveUnits(t *testing.T) {
	for text, want := range map[string]config.Size{"0": 0, "7": 7, "7B": 7, "1KB": 1024, "1KiB": 1024, "2 MB": 2 << 20, "3MiB": 3 << 20, "1gib": 1 << 30} {
		if got, err := config.ParseSize(text); err != nil || got != want {
			t.Errorf("%q: %d %v", text, got, err)
		}
	}
	for _, text := range []string{"", "B", "-1", "1.5MB", "1TB", "9999999999999GB", "MiB1"} {
		if got, err := config.ParseSize(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

func TestTheFirstFileThatIsNamedCounts(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "agent-knock-knock", "harness.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("default_harness: claude"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"XDG_CONFIG_HOME": dir}
	s := config.Source{Home: dir, LookupEnv: func(n string) (string, bool) { v, ok := env[n]; return v, ok }}
	c, path, err := config.Load(s)
	if err != nil || path != file || c.DefaultHarness != "claude" {
		t.Fatalf("%v %q %q", err, path, c.DefaultHarness)
	}
	env[config.EnvFilePeer] = "/peer"
	if got := s.Path(); got != "/peer" {
		t.Error(got)
	}
	env[config.EnvFile] = "/ours"
	if got := s.Path(); got != "/ours" {
		t.Error(got)
	}
	s.Flag = "/flag"
	if _, path, err := config.Load(s); path != "/flag" || !fault.Is(err, harness.InvalidConfig) {
		t.Errorf("a file that is named must be there: %q %v", path, err)
	}
}

// The published schema names exactly the keys that are read.
func TestTheSchemaNamesEveryKey(t *testing.T) {
	raw, err := os.ReadFile("../../../schemas/harness-config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	compare(t, "", schema, reflect.TypeFor[config.Config]())
}

func compare(t *testing.T, at string, schema map[string]any, typ reflect.Type) {
	t.Helper()
	if schema["additionalProperties"] != false {
		t.Errorf("%s is open", at)
	}
	properties, _ := schema["properties"].(map[string]any)
	var names []string
	for i := range typ.NumField() {
		name := typ.Field(i).Tag.Get("yaml")
		names = append(names, name)
		inner, ok := properties[name].(map[string]any)
		if !ok {
			t.Errorf("the schema lacks %s.%s", at, name)
		} else if f := typ.Field(i).Type; f.Kind() == reflect.Struct {
			compare(t, at+"."+name, inner, f)
		}
	}
	for name := range properties {
		if !slices.Contains(names, name) {
			t.Errorf("the schema has %s.%s, which is not read", at, name)
		}
	}
}
