package profile

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/agent-knock-knock/akk/internal/fault"
)

func write(t *testing.T, path string, data []byte) string {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// realDir is a temporary directory without a symbolic link in its path.
func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestCase13OnlyARealRegularJSONFileIsASelection(t *testing.T) {
	dir := realDir(t)
	starter := Starter()
	pad := func(size int) []byte { return append(starter, bytes.Repeat([]byte(" "), size-len(starter))...) }
	if err := os.Mkdir(filepath.Join(dir, "dir.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "fifo.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "big.json"), pad(MaxFileBytes+1))
	write(t, filepath.Join(dir, "full.json"), pad(MaxFileBytes))
	write(t, filepath.Join(dir, "profile.txt"), starter)
	write(t, filepath.Join(dir, "upper.JSON"), starter)
	write(t, filepath.Join(dir, "latin1.json"), bytes.Replace(starter, []byte("my-agent"), []byte("my-\xe4gent"), 1))
	write(t, filepath.Join(dir, "bom.json"), append([]byte("\xef\xbb\xbf"), starter...))
	write(t, filepath.Join(dir, "twice.json"), bytes.Replace(starter, []byte(`"version": 1,`), []byte(`"version": 1, "version": 1,`), 1))
	for link, target := range map[string]string{"link": "upper.JSON", "link.json": "profile.txt", "loop.json": "loop.json"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct {
		selection string
		code      fault.Code
		realName  string
	}{
		{"full.json", "", "full.json"},
		{"upper.JSON", "", "upper.JSON"},
		{"link", "", "upper.JSON"}, // the selection is the real path
		{"big.json", CodeUnreadable, ""},
		{"profile.txt", CodeUnreadable, ""},
		{"link.json", CodeUnreadable, ""}, // the real name counts
		{"loop.json", CodeUnreadable, ""},
		{"dir.json", CodeUnreadable, ""},
		{"fifo.json", CodeUnreadable, ""},
		{"absent.json", CodeUnreadable, ""},
		{"full.json\x00", CodeUnreadable, ""},
		{"latin1.json", CodeInvalid, ""},
		{"bom.json", CodeInvalid, ""},
		{"twice.json", CodeInvalid, ""},
	}
	for _, c := range cases {
		t.Run(strings.ReplaceAll(c.selection, "\x00", "NUL"), func(t *testing.T) {
			loaded, err := Load(filepath.Join(dir, c.selection))
			if fault.CodeOf(err) != c.code {
				t.Fatalf("code %q, want %q: %v", fault.CodeOf(err), c.code, err)
			}
			if err != nil {
				return
			}
			if want := filepath.Join(dir, c.realName); loaded.Selection != want || loaded.Source != SourceFile {
				t.Errorf("selection %q source %q, want %q from a file", loaded.Selection, loaded.Source, want)
			}
			onDisk, err := os.ReadFile(loaded.Selection)
			if err != nil || !bytes.Equal(onDisk, loaded.Document) {
				t.Errorf("the document is not what is on disk: %v", err)
			}
		})
	}
	if _, err := Load(""); fault.CodeOf(err) != CodeUnreadable {
		t.Errorf("an empty selection: %v", err)
	}
}

func TestARelativeSelectionStartsAtTheWorkingDirectory(t *testing.T) {
	dir := realDir(t)
	write(t, filepath.Join(dir, "p.json"), Starter())
	t.Chdir(dir)
	loaded, err := Load("./p.json")
	if err != nil || loaded.Selection != filepath.Join(dir, "p.json") {
		t.Fatalf("%v %v", loaded, err)
	}
}

func TestABuiltInIdWinsOverAFileOfThatName(t *testing.T) {
	dir := realDir(t)
	document := edited(t, map[string]any{"id": "builtin-acme.json", "revision": "7"})
	r := registry{
		{id: "builtin-zeta", document: string(edited(t, map[string]any{"id": "builtin-zeta"}))},
		{id: "builtin-acme.json", document: string(document)},
	}
	write(t, filepath.Join(dir, "builtin-acme.json"), Starter())
	write(t, filepath.Join(dir, "builtin-other.json"), Starter())
	t.Chdir(dir)
	loaded, err := r.load("builtin-acme.json")
	if err != nil || loaded.Source != SourceBuiltIn || loaded.Selection != "builtin-acme.json" || loaded.Profile.Revision != "7" {
		t.Fatalf("%+v %v", loaded, err)
	}
	if _, err := r.load("builtin-other.json"); fault.CodeOf(err) != CodeUnknown {
		t.Errorf("an unknown reserved id must not become a path: %v", err)
	}
	if loaded, err := r.load("./builtin-other.json"); err != nil || loaded.Source != SourceFile {
		t.Errorf("a path may be spelled so that it is no id: %v", err)
	}
	list, err := r.entries()
	if err != nil || len(list) != 2 || list[0].ID != "builtin-acme.json" || list[1].ID != "builtin-zeta" || list[0].Fingerprint == "" || list[0].Source != SourceBuiltIn {
		t.Errorf("registry rows %+v %v", list, err)
	}
	wrong := registry{{id: "builtin-x", document: string(document)}}
	if _, err := wrong.entries(); fault.CodeOf(err) != fault.Internal {
		t.Errorf("a row with another id than its document: %v", err)
	}
	if err := r.checkDrift(loaded); err != nil {
		t.Errorf("a built-in Profile does not drift: %v", err)
	}
}

func TestTheBuiltInRegistryIsEmptyAndValid(t *testing.T) {
	list, err := Builtins()
	if err != nil || list == nil || len(list) != 0 {
		t.Fatalf("%v %v", list, err)
	}
}

func TestDriftFailsClosedAndFormattingIsNoDrift(t *testing.T) {
	dir := realDir(t)
	path := write(t, filepath.Join(dir, "p.json"), edited(t, nil))
	loaded, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		name  string
		data  []byte
		drift bool
	}{
		{"unchanged", edited(t, nil), false},
		{"white space and key order", Starter(), false},
		{"another revision", edited(t, map[string]any{"revision": "9"}), true},
		{"another executable", edited(t, map[string]any{"callback/executable": "/x"}), true},
		{"another range", edited(t, map[string]any{"compatibility/range": ">=1.8.0"}), true},
		{"the default scope written out", edited(t, map[string]any{"controllerContext/scope": ScopeStartup}), true},
		{"half written", edited(t, nil)[:100], true},
		{"empty", nil, true},
		{"restored", edited(t, nil), false},
	}
	for _, s := range steps {
		write(t, path, s.data)
		checkDrift(t, s.name, loaded, s.drift)
	}
	if err := os.Rename(path, path+".bak"); err != nil {
		t.Fatal(err)
	}
	checkDrift(t, "gone", loaded, true)
	if err := os.Symlink(path+".bak", path); err != nil {
		t.Fatal(err)
	}
	checkDrift(t, "replaced by a link to a name that is not .json", loaded, true)
	other := *loaded
	other.Source = SourceBuiltIn
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	write(t, path, edited(t, nil))
	checkDrift(t, "another source", &other, true)
}

func checkDrift(t *testing.T, name string, l *Loaded, drift bool) {
	t.Helper()
	err := l.CheckDrift()
	if _, msg, hint := fault.Public(err); err != nil && strings.Contains(msg+hint, filepath.Dir(l.Selection)) {
		t.Errorf("%s: a model would read the path of the Profile: %s", name, msg)
	}
	if !drift {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	_, _, hint := fault.Public(err)
	if fault.CodeOf(err) != CodeDrift || !strings.Contains(hint, "restart the Host Bridge") {
		t.Errorf("%s: code %q hint %q", name, fault.CodeOf(err), hint)
	}
}
