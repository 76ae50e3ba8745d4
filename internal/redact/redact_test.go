package redact

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"
)

// canary is the part of each sample that must not come out.
const canary = "c4n4ryc4n4ryc4n4ry"

func TestEveryKnownShapeOfASecretIsMasked(t *testing.T) {
	upper := strings.ToUpper(canary)
	cases := map[string]string{ // sample → exact result
		"GET /x Authorization: Bearer " + canary:                                               "GET /x Authorization: [redacted]",
		"sent bearer " + canary + ".x-y_z, then":                                               "sent bearer [redacted], then",
		"run --token " + canary + " --verbose":                                                 "run --token [redacted] --verbose",
		"run --api-key=" + canary:                                                              "run --api-key=[redacted]",
		"run --my-token '" + canary + " two' x":                                                "run --my-token [redacted] x",
		"MY_AGENT_TOKEN=" + canary + " cmd":                                                    "MY_AGENT_TOKEN=[redacted] cmd",
		`{"api_key": "` + canary + ` \" more", "x": 1}`:                                        `{"api_key": [redacted], "x": 1}`,
		`{"gatewayToken":"` + canary + `"}`:                                                    `{"gatewayToken":[redacted]}`,
		"password: " + canary + "; done":                                                       "password: [redacted] done",
		"DB_PASSWD=" + canary:                                                                  "DB_PASSWD=[redacted]",
		"https_proxy=http://u:" + canary + "@proxy:8080":                                       "https_proxy=[redacted]",
		"key sk-proj-" + canary + " used":                                                      "key [redacted] used",
		"ghp_" + canary + " gho_" + canary:                                                     "[redacted] [redacted]",
		"github_pat_11" + canary + "_x":                                                        "[redacted]",
		"AKIA" + upper + "!":                                                                   "[redacted]!",
		"jwt eyJ" + canary + "." + canary + "." + canary:                                       "jwt [redacted]",
		"postgres://user:" + canary + "@db.example/x?y":                                        "postgres://user:[redacted]@db.example/x?y",
		"https://user:p@" + canary + "@host/":                                                  "https://user:[redacted]@host/",
		"a\n-----BEGIN RSA PRIVATE KEY-----\n" + canary + "\n-----END RSA PRIVATE KEY-----\nb": "a\n[redacted]\nb",
		"-----BEGIN OPENSSH PRIVATE KEY-----\n" + canary + " cut":                              "[redacted]",
	}
	for sample, want := range cases {
		got := String(sample)
		if got != want {
			t.Errorf("%q\n gives %q\n  want %q", sample, got, want)
		}
		if strings.Contains(strings.ToLower(got), canary) {
			t.Errorf("%q shows the secret", got)
		}
		if again := String(got); again != got {
			t.Errorf("not stable: %q then %q", got, again)
		}
	}
}

func TestOrdinaryTextIsKept(t *testing.T) {
	for _, s := range []string{
		"", "plain words", "/home/user/.agent-knock-knock/store/akk.db", "https://example.com:8080/a/b?c=d", "http://localhost:1/x@y",
		"$.callback.environment.allow[1]: must not be a variable", "a task-force and risk-averse desk-top-publishing", "turn-20260102T030405-0a1b2c3d",
		"sha256:d9601391c8129be6941929b050dda810ea4108df02c3f356a03f7d47e26c4576", "the tokens were counted", "git@github.com:owner/repo.git", "line one\nline two\ttab",
		"--store-dir /x --host my-agent",
	} {
		if got := String(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func TestALineIsOneLineAndCutOnACharacter(t *testing.T) {
	cases := []struct {
		in   string
		max  int
		want string
	}{
		{"short", 100, "short"},
		{"a\r\nb\tc\x1b[31md\x00\u0085\u202ee\u2028f", 100, "a  b c[31mde f"},
		{" blanks around \n", 100, "blanks around"},
		{"123456", 6, "123456"},
		{"1234567", 6, "123..."},
		{"ééééé", 8, "éé..."},
		{"a\xffb", 100, "a\ufffdb"},
		{"abcdef", 2, ""},
		{"MY_TOKEN=" + canary, 100, "MY_TOKEN=[redacted]"},
		{"x MY_TOKEN=" + strings.Repeat(canary, 10), 16, "x MY_TOKEN=[r..."}, // redacted before the cut
	}
	for _, c := range cases {
		if got := Line(c.in, c.max); got != c.want {
			t.Errorf("Line(%q, %d) = %q, want %q", c.in, c.max, got, c.want)
		}
	}
}

type leaky struct{ Token string }

type panicky struct{}

func (panicky) String() string { panic("no") }

func TestALogRecordIsOneRedactedLine(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(NewHandler(&out, slog.LevelDebug))
	log.Debug("hello\nworld", "a", 1, "b", "two words", "c", "", "d", `q"t`)
	log.With("turn", "turn-1").WithGroup("g").With("x", true).Info("m", "y", 2, slog.Group("h", "z", 3), slog.Group("", "w", 4))
	log.WithGroup("").Warn("secrets", "token", canary, "gatewayToken", canary, "API_KEY", canary, "session_token", canary, "proxy", canary, "err", errors.New("call with Bearer "+canary),
		"any", leaky{canary}, slog.Group("http", "Authorization", canary), "split", "--token", "rest", canary+"x")
	log.Error("odd", "k\ney", "v\x1b[2J\nw", "", "dropped", "p", panicky{}, "nil", nil)
	want := `[agent-knock-knock:debug] hello world a=1 b="two words" c="" d="q\"t"
[agent-knock-knock:info] m turn=turn-1 g.x=true g.y=2 g.h.z=3 g.w=4
[agent-knock-knock:warn] secrets token=[redacted] gatewayToken=[redacted] API_KEY=[redacted] session_token=[redacted] proxy=[redacted] err="call with Bearer [redacted]" any={Token:[redacted] http.Authorization=[redacted] split=--token [redacted]
[agent-knock-knock:error] odd k ey="v[2J w" p="%!v(PANIC=String method: no)" nil=<nil>
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestALogLineIsBoundedAndTheLevelHolds(t *testing.T) {
	var out bytes.Buffer
	level := new(slog.LevelVar)
	log := slog.New(NewHandler(&out, level))
	log.Debug("hidden")
	if out.Len() != 0 {
		t.Errorf("a debug line came out at level info: %q", out.String())
	}
	log.Info(strings.Repeat("é", 5000), "k", strings.Repeat("v", 5000))
	line := out.String()
	if len(line) > MaxLineBytes || !strings.HasSuffix(line, "...\n") || !utf8.ValidString(line) {
		t.Errorf("line of %d bytes ends with %q", len(line), line[len(line)-10:])
	}
	level.Set(slog.LevelError)
	out.Reset()
	log.Warn("hidden")
	if out.Len() != 0 {
		t.Errorf("the level was not followed: %q", out.String())
	}
	if slog.New(NewHandler(&out, nil)).Enabled(t.Context(), slog.LevelDebug) {
		t.Error("a nil level must mean info")
	}
}

func TestConcurrentRecordsDoNotMix(t *testing.T) {
	var out bytes.Buffer // written under the handler's lock
	log := slog.New(NewHandler(&out, nil))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				log.With("i", i).Info("message of one record")
			}
		})
	}
	wg.Wait()
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 400 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, line := range lines {
		var i int
		if _, err := fmt.Sscanf(line, "[agent-knock-knock:info] message of one record i=%d", &i); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("Authorization: Bearer abc\n", 20)
	f.Add("https://u:p@h/ --token x \"api_key\":\"y\"", 4096)
	f.Add("-----BEGIN PRIVATE KEY-----", 5)
	f.Fuzz(func(t *testing.T, s string, max int) {
		max = min(max, 1<<20)
		got := Line(s, max)
		if len(got) > max && got != "" {
			t.Fatalf("%d bytes, limit %d", len(got), max)
		}
		if !utf8.ValidString(got) || strings.ContainsFunc(got, unicode.IsControl) {
			t.Fatalf("not a clean line: %q", got)
		}
	})
}
