package redact

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestStrictHidesWhatIsSecretByItsNameOrShape(t *testing.T) {
	for _, s := range []string{
		"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "SSH_PASSPHRASE=open sesame", "SESSION_COOKIE=abcdefgh", "GOOGLE_KEY=AIza" + strings.Repeat("a1B2", 9),
		"cookie: sid=12345678", "--api-key hunter2hunter2", "https://u:pw@h/mcp", "https://h/mcp?token=abcdefgh", "glpat-abcdefghijkl",
	} {
		if Strict(s) == s {
			t.Errorf("%q is shown", s)
		}
	}
	for _, s := range []string{"PATH=/usr/bin", "MAX_OUTPUT_TOKENS=4096", "a plain sentence about the tokenizer", "https://h/mcp?project=1"} {
		if got := Strict(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
	if got := StrictLine("SSH_PASSPHRASE=sesame\nmore", 200); strings.Contains(got, "sesame") || strings.Contains(got, "\n") {
		t.Errorf("%q", got)
	}
	if !SecretName("X-Api-Key") || SecretName("PATH") || !SecretName(strings.Repeat("a", 4*maxWord)+"_SECRET") {
		t.Error("names are judged wrongly")
	}
}

func TestJSONKeepsWhatIsNoSecret(t *testing.T) {
	for in, want := range map[string]string{
		`{"b":1,"a":"text"}`: `{"b":1,"a":"text"}`, // untouched, byte for byte
		`{"env":{"DB_PASSWORD":"hunter2","PATH":"/bin"},"n":12345678901234567890}`:        `{"env":{"DB_PASSWORD":"[redacted]","PATH":"/bin"},"n":12345678901234567890}`,
		`{"rawInput":{"command":"curl -H 'Authorization: Bearer abcdef.ghij' http://h"}}`: "",
		`{"credentials":{"user":"me","list":["one","two"]},"x":"sk-abcdefghijkl"}`:        `{"credentials":{"list":["[redacted]","[redacted]"],"user":"[redacted]"},"x":"[redacted]"}`,
		`{"password":"a" `: `"[redacted]"`,
	} {
		got := string(JSON([]byte(in)))
		if want != "" && got != want || !json.Valid([]byte(got)) || strings.Contains(got, "abcdef.ghij") {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

// What comes out is JSON whatever went in, and masking it again changes nothing that matters.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"api_key":"x","a":["sk-abcdefghijkl"]}`))
	f.Add([]byte(`"password=\"quoted\" and more"`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := JSON(raw)
		if json.Valid(raw) && !json.Valid(got) {
			t.Errorf("%q became %q", raw, got)
		}
	})
}
