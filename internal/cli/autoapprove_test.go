package cli

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
)

const goodPolicy = `{"enabled":true,"rules":[{"id":"tests","agents":["codex"],"workspaces":["~/proj"],"commands":[["npm","test"]]}]}`

func TestAPolicyThatOthersCouldWriteIsRefused(t *testing.T) { // spec part 11
	deps := Deps{LookupEnv: func(string) (string, bool) { return "/home/u", true }}
	dir := t.TempDir()
	put := func(name, text string, mode os.FileMode) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
		return p
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file string
		want fault.Code
	}{
		"group may write": {put("group", goodPolicy, 0o620), CodePolicy},
		"world may write": {put("world", goodPolicy, 0o602), CodePolicy},
		"a directory":     {dir, CodePolicy},
		"a fifo":          {fifo, CodePolicy},
		"none":            {filepath.Join(dir, "absent"), CodePolicy},
		"not JSON":        {put("bad", "{", 0o600), fault.Invalid},
		"good":            {put("good", goodPolicy, 0o644), ""},
	} {
		p, err := readPolicy(c.file, deps)
		if got := fault.CodeOf(err); got != c.want || (err == nil) != (p.Fingerprint() != "") {
			t.Errorf("%s: %v %+v", name, err, p)
		}
	}
	p, err := readPolicy("", deps)
	if err != nil || p.Enabled {
		t.Errorf("without a file: %+v %v", p, err)
	}
	if p, _ = readPolicy(put("home", goodPolicy, 0o600), deps); p.Rules[0].Workspaces[0] != "/home/u/proj" {
		t.Errorf("%+v", p)
	}
}
