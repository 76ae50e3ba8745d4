package procinfo

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// childMode makes the re-executed test binary wait for end of input.
const childMode = "AKK_PROCINFO_TEST_CHILD"

const patience = 10 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(childMode) != "" {
		os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// startChild runs a child that lives until its returned end function is called.
func startChild(t *testing.T, env ...string) (cmd *exec.Cmd, end func()) {
	t.Helper()
	cmd = exec.Command(os.Args[0], "first arg", "", "tab\tnl\n日本")
	cmd.Env = append(append(os.Environ(), childMode+"=1"), env...)
	cmd.Dir = t.TempDir()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := false
	end = func() {
		if !done {
			done = true
			in.Close()
			cmd.Wait()
		}
	}
	t.Cleanup(end)
	return cmd, end
}

func TestReadTellsArgumentsDirectoryExecutableAndUser(t *testing.T) {
	cmd, _ := startChild(t)
	p, err := Read(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	exe, _ := filepath.EvalSymlinks(os.Args[0])
	wd, _ := filepath.EvalSymlinks(cmd.Dir)
	if p.PPID != os.Getpid() || p.UID != os.Geteuid() || p.Exe != exe || p.Cwd != wd {
		t.Errorf("got %+v, want parent %d, user %d, exe %q, cwd %q", p, os.Getpid(), os.Geteuid(), exe, wd)
	}
	if !slices.Equal(p.Args[1:], cmd.Args[1:]) {
		t.Errorf("args %q, want %q", p.Args, cmd.Args)
	}
}

func TestSnapshotKnowsTheFamilyOfAProcess(t *testing.T) {
	cmd, _ := startChild(t)
	tab, err := Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pid, self := cmd.Process.Pid, os.Getpid()
	p, ok := tab.Get(pid)
	if !ok || p.PPID != self || !slices.Equal(p.Args[1:], cmd.Args[1:]) {
		t.Fatalf("row %+v, found %v", p, ok)
	}
	if b, err := Birth(pid); err != nil || b != p.Birth {
		t.Errorf("birth %q (%v), the table says %q", b, err, p.Birth)
	}
	isIt := func(p Process) bool { return p.PID == pid }
	if !slices.ContainsFunc(tab.Children(self), isIt) || !slices.ContainsFunc(tab.Descendants(self), isIt) {
		t.Error("the child is not among the children and descendants of this process")
	}
	if !tab.Descends(pid, self) || !tab.Descends(pid, pid) || tab.Descends(self, pid) || tab.Descends(1<<30, 1<<30) {
		t.Error("descent is wrong")
	}
}

func TestAliveIsFalseAfterTheEndForAZombieAndForAnotherBirth(t *testing.T) {
	cmd, end := startChild(t)
	p, err := Read(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := Alive(p.Incarnation); !ok || err != nil {
		t.Fatalf("a running process: %v, %v", ok, err)
	}
	other := turn.Incarnation{PID: p.PID, Birth: "1" + p.Birth}
	if ok, err := Alive(other); ok || err != nil {
		t.Errorf("a reused pid: %v, %v", ok, err)
	}
	if _, err := Alive(turn.Incarnation{PID: p.PID}); !fault.Is(err, fault.Invalid) {
		t.Errorf("without a birth: %v", err)
	}

	gone, stop, err := Watch(p.Incarnation)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	cmd.Process.Kill() // not reaped yet: it becomes a zombie
	waitClosed(t, gone)
	if ok, err := Alive(p.Incarnation); ok || err != nil {
		t.Errorf("a zombie: %v, %v", ok, err)
	}
	end()
	if ok, err := Alive(p.Incarnation); ok || err != nil {
		t.Errorf("a reaped process: %v, %v", ok, err)
	}
	if _, err := Read(p.PID); !fault.Is(err, fault.NotFound) {
		t.Errorf("Read of a reaped process: %v", err)
	}
}

func waitClosed(t *testing.T, gone <-chan struct{}) {
	t.Helper()
	select {
	case <-gone:
	case <-time.After(patience):
		t.Fatal("the end of the process was not reported")
	}
}

func TestWatchOfAnEndedProcessReportsAtOnceAndStopLeavesAnOpenChannel(t *testing.T) {
	cmd, end := startChild(t)
	p, err := Read(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	gone, stop, err := Watch(p.Incarnation)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	stop()
	select {
	case <-gone:
		t.Error("a stopped watch of a live process reported its end")
	default:
	}
	end()
	for _, inc := range []turn.Incarnation{p.Incarnation, {PID: os.Getpid(), Birth: "other"}} {
		gone, stop, err := Watch(inc)
		if err != nil {
			t.Fatal(err)
		}
		waitClosed(t, gone)
		stop()
	}
}

// S07: liveness watches must not leak descriptors.
func TestWatchesLeaveNoDescriptorBehind(t *testing.T) {
	p, err := Read(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	before := countFDs(t)
	for range 200 {
		_, stop, err := Watch(p.Incarnation)
		if err != nil {
			t.Fatal(err)
		}
		stop()
	}
	if after := countFDs(t); after > before+5 {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func countFDs(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

func TestOpenFilesTellsModeIdentityAndDeletion(t *testing.T) {
	dir := t.TempDir()
	open := func(name string, flag int) *os.File {
		f, err := os.OpenFile(filepath.Join(dir, name), flag|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	r, w, x := open("read", os.O_RDONLY), open("write 日本", os.O_WRONLY|os.O_APPEND), open("deleted", os.O_RDWR)
	os.Remove(x.Name())
	files, err := OpenFiles(t.Context(), os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		f              *os.File
		write, deleted bool
	}{{r, false, false}, {w, true, false}, {x, true, true}} {
		i := slices.IndexFunc(files, func(f File) bool { return f.FD == int(want.f.Fd()) })
		if i < 0 {
			t.Errorf("%s is not listed", want.f.Name())
			continue
		}
		got := files[i]
		if got.Path != want.f.Name() || got.Write != want.write || got.Deleted != want.deleted || got.Inode == 0 {
			t.Errorf("got %+v, want %s write %v deleted %v", got, want.f.Name(), want.write, want.deleted)
		}
	}
	for i := range files {
		if i > 0 && files[i].FD <= files[i-1].FD {
			t.Error("not in the order of descriptors")
		}
	}
	if _, err := OpenFiles(t.Context(), 1<<30); !fault.Is(err, fault.NotFound) {
		t.Errorf("of no process: %v", err)
	}
}

func TestEnvReadsOneVariableOfAnotherProcess(t *testing.T) {
	cmd, _ := startChild(t, "CODEX_HOME=/tmp/a b=c", "EMPTY=")
	for _, c := range []struct {
		name, want string
		ok         bool
	}{{"CODEX_HOME", "/tmp/a b=c", true}, {"EMPTY", "", true}, {"CODEX", "", false}} {
		got, ok, err := Env(cmd.Process.Pid, c.name)
		// Start returns a moment before the kernel shows the new program's environment.
		for end := time.Now().Add(10 * time.Second); ok != c.ok && time.Now().Before(end); {
			got, ok, err = Env(cmd.Process.Pid, c.name)
		}
		if got != c.want || ok != c.ok || err != nil {
			t.Errorf("%s: %q %v %v", c.name, got, ok, err)
		}
	}
}

func TestTableSurvivesALoopOfParents(t *testing.T) {
	row := func(pid, ppid int) Process {
		return Process{Incarnation: turn.Incarnation{PID: pid}, PPID: ppid}
	}
	tab := newTable([]Process{row(2, 3), row(3, 2), row(4, 4), row(5, 2), row(6, 5)})
	if tab.Descends(2, 9) || tab.Descends(4, 9) || !tab.Descends(6, 3) {
		t.Error("descent is wrong")
	}
	var ids []int
	for _, p := range tab.Descendants(2) {
		ids = append(ids, p.PID)
	}
	if !slices.Equal(ids, []int{3, 5, 6}) {
		t.Errorf("descendants of 2: %v", ids)
	}
	if len(tab.Children(4)) != 0 || tab.Len() != 5 || tab.All()[0].PID != 2 {
		t.Error("children, length or order is wrong")
	}
}

func BenchmarkSnapshot(b *testing.B) {
	var tab *Table
	for b.Loop() {
		var err error
		if tab, err = Snapshot(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(tab.Len()), "processes")
}

func TestErrorsNameTheProcessAndKeepTheCause(t *testing.T) {
	err := unreadable(os.ErrPermission, "op", 7, "state")
	if !errors.Is(err, os.ErrPermission) || fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
}
