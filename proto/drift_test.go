// Package proto_test proves that the committed Go is generated from the committed .proto
// files, without buf.
package proto_test

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	callbackv1 "github.com/agent-knock-knock/akk/proto/akk/callback/v1"
	handoffv1 "github.com/agent-knock-knock/akk/proto/akk/handoff/v1"
	monitorv1 "github.com/agent-knock-knock/akk/proto/akk/monitor/v1"
)

var update = flag.Bool("update", false, "record the hashes; only after buf generate")

const recorded = "generated.sum"

// generated holds the descriptors that are compiled in.
var generated = []protoreflect.FileDescriptor{
	callbackv1.File_akk_callback_v1_callback_proto,
	handoffv1.File_akk_handoff_v1_handoff_proto,
	monitorv1.File_akk_monitor_v1_monitor_proto,
}

func TestTheCommittedCodeIsGeneratedFromTheCommittedContracts(t *testing.T) {
	var got strings.Builder
	err := fs.WalkDir(os.DirFS("."), "akk", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		s := sha256.Sum256(b)
		fmt.Fprintf(&got, "%s  %s\n", hex.EncodeToString(s[:]), p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(recorded, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the files differ from those of the last generation:\n%swant:\n%s"+
			"run buf generate, then go test ./proto -update", got.String(), want)
	}
}

var (
	declared = regexp.MustCompile(`(?m)^(message|service) (\w+) \{`)
	member   = regexp.MustCompile(`(?m)^ +(?:(?:repeated|optional) )?(?:map<[^>]+>|[\w.]+) (\w+) = (\d+);|^  rpc (\w+)\(`)
)

// Recording hashes without generating would make the test above blind; this one looks
// into the compiled descriptors.
func TestEveryDeclarationIsInTheCompiledDescriptors(t *testing.T) {
	for _, fd := range generated {
		text, err := os.ReadFile(fd.Path())
		if err != nil {
			t.Fatal(err)
		}
		want, got := map[string]bool{}, map[string]bool{}
		at := declared.FindAllSubmatchIndex(text, -1)
		for i, m := range at {
			end := len(text)
			if i+1 < len(at) {
				end = at[i+1][0]
			}
			name := string(text[m[4]:m[5]])
			want[name] = true
			for _, f := range member.FindAllSubmatch(text[m[1]:end], -1) {
				want[name+"."+string(f[1])+string(f[3])+"="+string(f[2])] = true
			}
		}
		for i := range fd.Messages().Len() {
			m := fd.Messages().Get(i)
			got[string(m.Name())] = true
			for j := range m.Fields().Len() {
				f := m.Fields().Get(j)
				got[fmt.Sprintf("%s.%s=%d", m.Name(), f.Name(), f.Number())] = true
			}
		}
		for i := range fd.Services().Len() {
			s := fd.Services().Get(i)
			got[string(s.Name())] = true
			for j := range s.Methods().Len() {
				got[fmt.Sprintf("%s.%s=", s.Name(), s.Methods().Get(j).Name())] = true
			}
		}
		if w, g := slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)); !slices.Equal(w, g) {
			t.Errorf("%s declares\n%v\nthe compiled descriptor has\n%v", fd.Path(), w, g)
		}
	}
}
