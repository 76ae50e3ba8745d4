package policy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/policy"
)

// canonical resolves what exists, as a Bridge does; a test's paths exist.
func canonical(path string) (string, error) {
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p, nil
	}
	parent, err := canonical(filepath.Dir(path))
	return filepath.Join(parent, filepath.Base(path)), err
}

// allow is a policy of one rule.
func allow(t testing.TB, workspace string, commands ...[]string) policy.Policy {
	t.Helper()
	text, err := json.Marshal(map[string]any{"enabled": true, "rules": []any{map[string]any{"id": "r", "agents": []string{"codex"}, "workspaces": []string{workspace}, "commands": commands}}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse(text, "/home/u")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOnlyExactCommandsInsideTheWorkspaceAreApproved(t *testing.T) { // spec case 58
	root := t.TempDir()
	ws, out := filepath.Join(root, "ws"), filepath.Join(root, "out")
	for _, d := range []string{ws, filepath.Join(ws, "sub"), out} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{filepath.Join(ws, "escape"): out, filepath.Join(ws, "stay"): filepath.Join(ws, "sub"), filepath.Join(root, "alias"): ws} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	p := allow(t, ws, []string{"npm", "test"}, []string{"npm", "test", "../x"}, []string{"npm", "test", "sub/x"}, []string{"npm", "test", "escape/x"},
		[]string{"npm", "test", "stay/x"}, []string{"npm", "test", "--dir=../x"}, []string{"npm", "test", "--dir=sub"}, []string{"npm", "test", "~"},
		[]string{"npm", "test", "/etc/passwd"}, []string{"npm", "test", "DIR=/etc"}, []string{"npm", "test", "-C/etc"}, []string{"npm", "test", "."},
		[]string{"npm", "test", ".."}, []string{"npm", "run", "a b"}, []string{"npm", "test", "sub/../../out"}, []string{"npm", "test", "stay/../../out"})
	for _, c := range []struct {
		command, cwd string
		approve      bool
	}{
		{"npm test", ws, true},
		{"  npm   test ", ws, true},
		{"'npm' \"test\"", ws, true},
		{`npm run 'a b'`, ws, true},
		{`npm run a\ b`, ws, true},
		{"npm test", filepath.Join(ws, "sub"), true},
		{"npm test", filepath.Join(root, "alias"), true},
		{"npm test sub/x", ws, true},
		{"npm test stay/x", ws, true},
		{"npm test --dir=sub", ws, true},
		{"npm test .", ws, true},

		{"npm test; rm -rf x", ws, false},
		{"npm test > f", ws, false},
		{"./npm test", ws, false},
		{"A=1 npm test", ws, false},
		{"npm test ../x", ws, false},
		{"npm test escape/x", ws, false},
		{"npm test sub/../../out", ws, false},
		{"npm test stay/../../out", ws, false},
		{"npm test --dir=../x", ws, false},
		{"npm test ~", ws, false},
		{"npm test /etc/passwd", ws, false},
		{"npm test DIR=/etc", ws, false},
		{"npm test -C/etc", ws, false},
		{"npm test ..", ws, false},
		{"npm test", out, false},
		{"npm test", filepath.Join(ws, "escape"), false},
		{"npm test", ws + "x", false},
		{"npm test", "", false},
		{"npm test", "ws", false},
		{"npm test && true", ws, false},
		{"npm test || true", ws, false},
		{"npm test | cat", ws, false},
		{"npm test &", ws, false},
		{"npm test\nrm x", ws, false},
		{"npm test\r", ws, false},
		{"npm test $(id)", ws, false},
		{"npm test `id`", ws, false},
		{"npm test # x", ws, false},
		{"npm test *", ws, false},
		{"npm test {a,b}", ws, false},
		{"npm test !!", ws, false},
		{`npm "test`, ws, false},
		{`npm test\`, ws, false},
		{`npm "te$t"`, ws, false},
		{"npm\u00a0test", ws, false},
		{"npm test\u202e", ws, false},
		{"/usr/bin/npm test", ws, false},
		{"npm", ws, false},
		{"npm test extra", ws, false},
		{"", ws, false},
	} {
		d := p.Decide(policy.Request{Agent: "codex", Kind: policy.RunCommand, Command: c.command, Cwd: c.cwd, Evidence: "rollout"}, canonical)
		if d.Approve != c.approve || d.Approve != (d.RuleID == "r") || d.Approve == (d.Reason != "") {
			t.Errorf("%q in %q: %+v", c.command, strings.TrimPrefix(c.cwd, root), d)
		}
	}
	good := policy.Request{Agent: "codex", Kind: policy.RunCommand, Command: "npm test", Cwd: ws, Evidence: "rollout"}
	for name, change := range map[string]func(*policy.Request){
		"another agent": func(r *policy.Request) { r.Agent = "claude" },
		"an edit":       func(r *policy.Request) { r.Kind = "edit" },
		"no evidence":   func(r *policy.Request) { r.Evidence = "" },
	} {
		r := good
		change(&r)
		if d := p.Decide(r, canonical); d.Approve {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if d := (policy.Policy{}).Decide(good, canonical); d.Approve {
		t.Error("without a policy")
	}
}

func TestAPolicyFileIsClosed(t *testing.T) { // spec part 11
	rule := `{"id":"r","agents":["codex"],"workspaces":["/w"],"commands":[["npm","test"]]}`
	for name, text := range map[string]string{
		"an unknown field":      `{"enabled":true,"rules":[],"else":1}`,
		"a field twice":         `{"enabled":true,"enabled":true,"rules":[]}`,
		"no id":                 `{"enabled":true,"rules":[{"id":"","agents":["codex"],"workspaces":["/w"],"commands":[["npm"]]}]}`,
		"an id twice":           `{"enabled":true,"rules":[` + rule + `,` + rule + `]}`,
		"no agents":             `{"enabled":true,"rules":[{"id":"r","agents":[],"workspaces":["/w"],"commands":[["npm"]]}]}`,
		"no commands":           `{"enabled":true,"rules":[{"id":"r","agents":["codex"],"workspaces":["/w"],"commands":[]}]}`,
		"an empty command":      `{"enabled":true,"rules":[{"id":"r","agents":["codex"],"workspaces":["/w"],"commands":[[]]}]}`,
		"a path as the program": `{"enabled":true,"rules":[{"id":"r","agents":["codex"],"workspaces":["/w"],"commands":[["/bin/sh"]]}]}`,
		"a relative workspace":  `{"enabled":true,"rules":[{"id":"r","agents":["codex"],"workspaces":["w"],"commands":[["npm"]]}]}`,
		"the whole machine":     `{"enabled":true,"rules":[{"id":"r","agents":["codex"],"workspaces":["/"],"commands":[["npm"]]}]}`,
		"text after it":         `{"enabled":true,"rules":[]} x`,
	} {
		if p, err := policy.Parse([]byte(text), "/home/u"); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
	one, err := policy.Parse([]byte(`{"enabled":true,"rules":[`+rule+`]}`), "/home/u")
	if err != nil {
		t.Fatal(err)
	}
	same, err := policy.Parse([]byte(` { "rules" : [`+rule+`], "enabled":true }`), "/home/u")
	if err != nil || one.Fingerprint() != same.Fingerprint() || len(one.Fingerprint()) != 16 {
		t.Errorf("%q %q %v", one.Fingerprint(), same.Fingerprint(), err)
	}
	off, err := policy.Parse([]byte(`{"enabled":false,"rules":[`+rule+`]}`), "/home/u")
	if err != nil || off.Fingerprint() == one.Fingerprint() {
		t.Errorf("%q %v", off.Fingerprint(), err)
	}
	if d := off.Decide(policy.Request{Agent: "codex", Kind: policy.RunCommand, Command: "npm test", Cwd: "/w", Evidence: "x"}, canonical); d.Approve {
		t.Error("a policy that is off approves")
	}
}

// Whatever words are quoted, they come back as they were; one bad character outside of
// quotes is refused.
func TestQuotedWordsComeBack(t *testing.T) {
	word := rapid.StringMatching(`[A-Za-z0-9 ./=_+:,@%^~-]{1,12}`)
	rapid.Check(t, func(t *rapid.T) {
		words := append([]string{"prog"}, rapid.SliceOfN(word, 0, 4).Draw(t, "words")...)
		var line []string
		for _, w := range words[1:] {
			switch rapid.IntRange(0, 2).Draw(t, "quote") {
			case 0:
				w = "'" + w + "'"
			case 1:
				w = `"` + w + `"`
			case 2:
				w = strings.NewReplacer(" ", `\ `).Replace(w)
			}
			line = append(line, w)
		}
		text := strings.Join(append([]string{"prog"}, line...), strings.Repeat(" ", rapid.IntRange(1, 3).Draw(t, "blanks")))
		got, err := policy.ParseCommand(text)
		if err != nil || !slices.Equal(got, words) {
			t.Fatalf("%q: %q %v", text, got, err)
		}
		at := rapid.IntRange(0, len("prog")).Draw(t, "at")
		bad := rapid.SampledFrom([]string{"|", "&", ";", "<", ">", "(", ")", "`", "{", "}", "!", "$", "#", "*", "?", "[", "]", "\n", "\r", "'", "\""}).Draw(t, "bad")
		if got, err := policy.ParseCommand(text[:at] + bad + text[at:]); err == nil && (bad != "'" && bad != `"` || slices.Equal(got, words)) {
			t.Fatalf("with %q: %q", bad, got)
		}
	})
}

// What is accepted has no way to mean more than its words: no character that a shell acts
// on is outside of a quote, and parsing the words again, quoted, gives the same.
func FuzzCommandsAreReadOneWay(f *testing.F) {
	for _, s := range []string{"npm test", "npm test; rm -rf x", "npm test > f", "./npm test", "A=1 npm test", "npm 'a b' \"c\"", `npm a\ b`, "npm test ../x", "npm \\", "\"", "'", "a$b", "a\u202eb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words, err := policy.ParseCommand(line)
		if err != nil {
			return
		}
		if strings.ContainsAny(line, "\r\n`") && !strings.ContainsAny(line, `'\`) {
			t.Fatalf("%q was taken", line)
		}
		if strings.ContainsAny(words[0], "/=") {
			t.Fatalf("%q begins with %q", line, words[0])
		}
		var quoted []string
		for _, w := range words {
			if strings.ContainsRune(w, '\'') {
				return
			}
			quoted = append(quoted, "'"+w+"'")
		}
		again, err := policy.ParseCommand(strings.Join(quoted, " "))
		if err != nil || !slices.Equal(again, words) {
			t.Fatalf("%q: %q then %q %v", line, words, again, err)
		}
	})
}
