package redact

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA" + canary + "\nabcd\n-----END RSA PRIVATE KEY-----"

// shapesOfSecrets is every shape of a credential → exact result.
var shapesOfSecrets = map[string]string{
	"API_KEY=sk-abc123456789 max_tokens: 4096 中文":              "API_KEY=[redacted] max_tokens: 4096 中文",
	"Authorization: Bearer " + canary:                          "Authorization: [redacted]",
	"sent bearer " + canary + ".x-y_z, then":                   "sent bearer [redacted], then",
	"use token " + canary + " now":                             "use token [redacted] now",
	"basic dXNlcjpwYXNz== x":                                   "basic [redacted] x",
	"run --token " + canary + " --verbose":                     "run --token [redacted] --verbose",
	"run --api-key=" + canary + " x":                           "run --api-key=[redacted] x",
	"run --my-secret '" + canary + " two' x":                   "run --my-secret '[redacted]' x",
	"MY_AGENT_TOKEN=" + canary + " cmd":                        "MY_AGENT_TOKEN=[redacted] cmd",
	"MY_TOKEN=\"" + canary + " two\" cmd":                      "MY_TOKEN=\"[redacted]\" cmd",
	`{"api_key": "` + canary + ` \" more", "x": 1}`:            `{"api_key": "[redacted]", "x": 1}`,
	`{"gatewayToken":"` + canary + `","max_tokens":5}`:         `{"gatewayToken":"[redacted]","max_tokens":5}`,
	`{"t":"{\"token\":\"` + canary + `\",\"a\":1}"}`:           `{"t":"{\"token\":\"[redacted]\",\"a\":1}"}`,
	`{"token":1234567890}`:                                     `{"token":[redacted]}`,
	`{"secrets":["` + canary + `","b"],"c":1}`:                 `{"secrets":[redacted],"c":1}`,
	`{"credentials":{"user":"u","password":"` + canary + `"}}`: `{"credentials":{"user":"u","password":"[redacted]"}}`,
	"password: my " + canary + " phrase, next":                 "password: [redacted], next",
	"passphrase = " + canary + "\nnext":                        "passphrase = [redacted]\nnext",
	"Set-Cookie: sid=" + canary + "; Path=/":                   "Set-Cookie: [redacted]",
	"session_key=" + canary + "\n":                             "session_key=[redacted]\n",
	"privateKey: '" + canary + "'":                             "privateKey: '[redacted]'",
	"DB_PASSWD=" + canary:                                      "DB_PASSWD=[redacted]",
	"\x1b[31mtoken=" + canary + "\x1b[0m":                      "\x1b[31mtoken=[redacted]",
	"https://h/cb?code=1&access_token=" + canary + "&x=1":      "https://h/cb?code=1&access_token=[redacted]&x=1",
	"key sk-proj-" + canary + ". Next":                         "key [redacted]. Next",
	"key=sk-ant-" + canary + ")":                               "key=[redacted])",
	"x--sk-" + canary:                                          "x--[redacted]",
	"ghp_" + canary + " gho_" + canary:                         "[redacted] [redacted]",
	"github_pat_11" + canary + "_x":                            "[redacted]",
	"xoxb-" + canary + " xoxp-" + canary:                       "[redacted] [redacted]",
	"AKIA" + strings.ToUpper(canary) + "!":                     "[redacted]!",
	"AIzaSy" + canary + canary + "!":                           "[redacted]!",
	"jwt eyJ" + canary + "." + canary + "." + canary + " x":    "jwt [redacted] x",
	"postgres://user:" + canary + "@db.example/x?y":            "postgres://user:[redacted]@db.example/x?y",
	"https://user:p@" + canary + "@host/":                      "https://user:[redacted]@host/",
	"https://" + canary + "@host/x":                            "https://[redacted]@host/x",
	"a\n" + pem + "\nb":                                        "a\n[redacted]\nb",
	`"key":"` + strings.ReplaceAll(pem, "\n", `\n`) + `",1`:    `"key":"[redacted]",1`,
	"-----BEGIN OPENSSH PRIVATE KEY-----\n" + canary + " cut":  "[redacted]",
	"token: " + strings.Repeat(canary, 3000) + "\nend":         "token: [redacted]\nend",
	"sk-" + strings.Repeat(canary, 3000) + " end":              "[redacted] end",
	strings.Repeat("x", 20000) + " sk-" + canary:               strings.Repeat("x", 20000) + " [redacted]",
}

var keptBytes = []string{
	"", "plain words", "max_tokens: 4096", `{"inputTokens":12,"outputTokens":7,"total_tokens":19,"token_count":3,"max_output_tokens":8}`,
	"中文 token 日本語 🙂 end", "https://example.com:8080/a/b?c=d", "http://localhost:1/x@y", "ssh://git@host/x", "a task-force and risk-averse desk-top-publishing",
	"sha256:d9601391c8129be6941929b050dda810ea4108df02c3f356a03f7d47e26c4576", "the tokens were counted", "git@github.com:owner/repo.git",
	"bytes \x00\xff\xfe\x80 kept\r\n\tx", "tokenizer: fast", "token_type: x", "basic authentication", "a token expired", "password:\n", `{"token":""}`,
	strings.Repeat("A", 100000), "{\n  \"password\": \n}",
}

func TestAStreamMasksEveryShape(t *testing.T) {
	for sample, want := range shapesOfSecrets {
		got := string(Bytes([]byte(sample)))
		if got != want {
			t.Errorf("%.200q\n gives %.200q\n  want %.200q", sample, got, want)
		}
		if strings.Contains(strings.ToLower(got), canary) {
			t.Errorf("%.200q shows the secret", got)
		}
		if again := string(Bytes([]byte(got))); again != got {
			t.Errorf("not stable: %.200q then %.200q", got, again)
		}
	}
	for _, s := range keptBytes {
		if got := string(Bytes([]byte(s))); got != s {
			t.Errorf("%.200q became %.200q", s, got)
		}
	}
}

// TestEveryCutOfEveryShapeGivesTheSame is the rule of the log: what is masked does not
// depend on how the program wrote it.
func TestEveryCutOfEveryShapeGivesTheSame(t *testing.T) {
	samples := append([]string{}, keptBytes...)
	for s := range shapesOfSecrets {
		samples = append(samples, s, s+"\n", "x="+s+"\nnext line")
	}
	for _, s := range samples {
		want := string(Bytes([]byte(s)))
		step := 1
		if len(s) > 2000 {
			step = 331
		}
		for cut := 0; cut <= len(s); cut += step {
			var st Stream
			got := st.Append(nil, []byte(s[:cut]))
			held(t, &st)
			got = st.Append(got, []byte(s[cut:]))
			held(t, &st)
			if got = st.Flush(got); string(got) != want {
				t.Fatalf("%.300q cut at %d gives\n%.300q, whole\n%.300q", s, cut, got, want)
			}
		}
		if len(s) > 2000 {
			continue
		}
		var st Stream
		var got []byte
		for i := range len(s) {
			got = st.Append(got, []byte{s[i]})
		}
		if got = st.Flush(got); string(got) != want {
			t.Fatalf("%q byte by byte gives %q, whole %q", s, got, want)
		}
	}
}

func held(t interface{ Fatalf(string, ...any) }, s *Stream) {
	if len(s.held) > MaxHeld {
		t.Fatalf("%d bytes are held", len(s.held))
	}
	if bytes.IndexByte(s.held, '\n') >= 0 {
		t.Fatalf("a whole line is held: %q", s.held)
	}
}

func TestAnyMixInAnyChunksGivesTheSame(t *testing.T) {
	parts := []string{" ", "\n", ",", "=", ": ", "\"", "'", "\\", "token", "password", "Bearer ", "sk-", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----",
		"https://", "user:", "@", "eyJabcdefghijk.", "eyJ", ".", "-", "--token ", "中", "{", "}", "[", "]", "&", "\xff", "max_tokens", "123", canary, strings.Repeat("q", 300), strings.Repeat("w ", 3000)}
	for s := range shapesOfSecrets {
		if len(s) < 300 {
			parts = append(parts, s)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 30).Draw(t, "parts"), ""))
		want := Bytes(text)
		var s Stream
		var got []byte
		for rest := text; len(rest) > 0; {
			n := min(len(rest), rapid.SampledFrom([]int{1, 2, 3, 7, 50, 500, 4095, 4096, 4097, 9000}).Draw(t, "n"))
			got = s.Append(got, rest[:n])
			rest = rest[n:]
			held(t, &s)
		}
		if got = s.Flush(got); !bytes.Equal(got, want) {
			t.Fatalf("%q\nchunked %q\nwhole   %q", text, got, want)
		}
		if again := Bytes(want); bytes.Count(again, []byte(canary)) > 0 && bytes.Count(want, []byte(canary)) == 0 {
			t.Fatalf("a second pass shows what the first hid: %q", again)
		}
	})
}

func FuzzStream(f *testing.F) {
	for s := range shapesOfSecrets {
		f.Add([]byte(s), uint16(7))
	}
	f.Fuzz(func(t *testing.T, text []byte, at uint16) {
		cut := min(int(at), len(text))
		var s Stream
		got := s.Append(nil, text[:cut])
		got = s.Flush(s.Append(got, text[cut:]))
		if want := Bytes(text); !bytes.Equal(got, want) {
			t.Fatalf("cut at %d: %q, whole %q", cut, got, want)
		}
	})
}

// logText is what a server logs: prose, JSON and a secret now and then.
func logText(size int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	lines := []string{
		"time=2026-12-02T06:00:00Z level=info msg=\"session ready\" session=s-1234abcd harness=codex model=gpt-6 took=42ms\n",
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"8a7b","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"The quick brown fox jumps over it."}}}}` + "\n",
		`{"usage":{"inputTokens":1234,"outputTokens":567,"totalTokens":1801},"stopReason":"end_turn"}` + "\n",
		"GET https://example.com/path/to/thing?x=1 -> 200 in 12 ms, 中文 text stays as it is\n",
		"export API_KEY=sk-abc123456789 && run\n",
	}
	var b bytes.Buffer
	for b.Len() < size {
		b.WriteString(lines[r.IntN(len(lines))])
	}
	return b.Bytes()
}

func BenchmarkStream(b *testing.B) {
	text := logText(4 << 20)
	out := make([]byte, 0, 128<<10)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		var s Stream
		for at := 0; at < len(text); at += 64 << 10 {
			out = s.Append(out[:0], text[at:min(len(text), at+64<<10)])
		}
		out = s.Flush(out[:0])
	}
}
