package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAnArchiveDependsOnItsContentAlone(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	files := []entry{{name: "b", body: []byte("B")}, {name: "a", body: []byte("A"), program: true}}
	one, err := archive("x", files, at)
	if err != nil {
		t.Fatal(err)
	}
	two, err := archive("x", []entry{files[1], files[0]}, at)
	if err != nil || !bytes.Equal(one, two) {
		t.Errorf("another order gives other bytes: %v", err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(one))
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(zip)
	for _, want := range []struct {
		name string
		mode int64
	}{{"x/a", 0o755}, {"x/b", 0o644}} {
		h, err := r.Next()
		if err != nil || h.Name != want.name || h.Mode != want.mode || h.Uid != 0 || h.Uname != "" || !h.ModTime.Equal(at) {
			t.Errorf("%+v, %v", h, err)
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Error(err)
	}
}

func TestEveryCommandHasAManPageAndTheShellsTheirCompletions(t *testing.T) {
	t.Chdir("../..")
	made := func() map[string]string {
		files, err := documents("v1", time.Unix(1_700_000_000, 0))
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, f := range files {
			out[f.name] = string(f.body)
		}
		return out
	}
	files, again := made(), made()
	for name, body := range files {
		if again[name] != body {
			t.Errorf("%s is another one each time", name)
		}
	}
	for _, name := range []string{"man/man1/agent-knock-knock.1", "man/man1/agent-knock-knock-host-bridge.1", "man/man1/agent-knock-knock-outbox-redrive.1",
		"man/man1/agent-knock-knock-store-prune.1", "man/man1/agent-knock-knock-doctor.1", "completions/agent-knock-knock.bash", "completions/_agent-knock-knock", "completions/agent-knock-knock.fish", "INSTALL.md", "LICENSE"} {
		if len(files[name]) < 200 {
			t.Errorf("%s holds %d bytes", name, len(files[name]))
		}
	}
	if page := files["man/man1/agent-knock-knock-outbox-redrive.1"]; !strings.Contains(page, "i-have-checked") || !strings.Contains(page, "Nov 2023") {
		t.Errorf("%s", page)
	}
}

func TestABuildForAnUnknownPlatformIsRefused(t *testing.T) {
	r := release{version: "v1", epoch: time.Unix(1, 0), out: t.TempDir(), platforms: []string{"linux"}}
	t.Chdir("../..")
	if err := r.make(t.Context()); err == nil || !strings.Contains(err.Error(), "no os/arch") {
		t.Error(err)
	}
	if files, err := os.ReadDir(r.out); err != nil || len(files) != 0 {
		t.Errorf("%v, %v", files, err)
	}
	if !slices.Contains(platforms, "darwin/arm64") {
		t.Error(platforms)
	}
}
