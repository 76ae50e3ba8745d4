package proc_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/proc"
)

// written is data of the program: it must survive.
var written = []byte("as the file has it")

// releaseImage is the role of a program that gives its pages back and goes on.
func releaseImage() int {
	copy(written, "as we wrote it    ")
	before := residentFile()
	err := proc.ReleaseImage()
	fmt.Println(before, residentFile(), err, string(written))
	return 0
}

// residentFile is RssFile of this process in KiB (proc(5), status), 0 when unknown.
func residentFile() (n int) {
	b, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(b), "RssFile:")
	_, _ = fmt.Sscan(rest, &n)
	return n
}

// A program gives its own pages back and runs on, also one whose file was replaced by an
// upgrade meanwhile, or lies in a folder with a space in its name.
func TestAProgramThatGaveItsPagesBackRunsOn(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ReleaseImage does nothing outside Linux")
	}
	b, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string]string{"installed": `exec "$0"`, "replaced": `rm "$0"; exec 3<&-; exec /proc/self/fd/9`} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a folder", "program")
			if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, b, 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sh", "-c", `exec 9<"$0"; `+args, path)
			cmd.Env = append(os.Environ(), childRole+"=image")
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var before, after int
			var failed, data string
			if _, err := fmt.Sscan(string(out), &before, &after, &failed); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			_, data, _ = strings.Cut(string(out), failed+" ")
			if failed != "<nil>" || after == 0 || after > before-512 || strings.TrimSpace(data) != "as we wrote it" {
				t.Errorf("%d KiB of files before, %d after, %s, data %q", before, after, failed, data)
			}
		})
	}
}

// The pages of a position-independent program that the loader relocated are in no file. So
// do packagers of some distributions build everything.
func TestAPositionIndependentProgramRunsOn(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ReleaseImage does nothing outside Linux")
	}
	path := filepath.Join(t.TempDir(), "program")
	build := exec.Command("go", "test", "-c", "-buildmode=pie", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), childRole+"=image")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "<nil> as we wrote it") {
		t.Errorf("%v\n%s", err, out)
	}
}
