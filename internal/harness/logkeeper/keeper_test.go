package logkeeper

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
)

const nonce = "0123456789abcdef0123456789abcdef"

// disk is a log that is full after some writes.
type disk struct {
	mu   sync.Mutex
	left int
	buf  bytes.Buffer
}

func (d *disk) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left--; d.left < 0 {
		return 0, syscall.ENOSPC
	}
	return d.buf.Write(p)
}

func shell(t *testing.T, script string) Order {
	t.Helper()
	return Order{Nonce: nonce, Dir: t.TempDir(), Log: "server.log", Argv: []string{"/bin/sh", "-c", script}, Env: os.Environ()}
}

// limited fails a test whose keeper does not end.
func limited(t *testing.T) context.Context {
	ctx, stop := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(stop)
	return ctx
}

// Case 15.
func TestAServerIsStoppedWhenItsLogCannotBeWritten(t *testing.T) {
	for left := range 4 { // the disk is full at the proof's note, or later
		o := shell(t, `while :; do echo "API_KEY=sk-abc123456789 and more"; echo "API_KEY=sk-abc123456789" >&2; done`)
		log := &disk{left: left}
		k := &keeper{order: o, log: log, masker: newMasker}
		ctx := limited(t)
		err := k.run(ctx)
		if !fault.Is(err, LogLost) || !errors.Is(err, syscall.ENOSPC) || ctx.Err() != nil {
			t.Errorf("%d writes: %v", left, err)
		}
		if k.cmd.ProcessState == nil || syscall.Kill(k.cmd.Process.Pid, 0) == nil {
			t.Errorf("%d writes: the server lives", left)
		}
		if strings.Contains(log.buf.String(), "abc123456789") {
			t.Errorf("%d writes: raw bytes: %s", left, log.buf.String())
		}
		files, err := os.ReadDir(o.Dir)
		if err != nil || len(files) != 0 {
			t.Errorf("%d writes: left behind: %v %v", left, files, err)
		}
	}
}

// broken panics on every chunk with the word.
type broken struct{ word string }

func (b broken) Append(dst, p []byte) []byte {
	if bytes.Contains(p, []byte(b.word)) {
		panic("a bug")
	}
	return append(dst, p...)
}
func (b broken) Flush(dst []byte) []byte { return dst }

type chunks [][]byte

func (c *chunks) Read(p []byte) (int, error) {
	if len(*c) == 0 {
		return 0, errors.New("the pipe broke")
	}
	n := copy(p, (*c)[0])
	*c = (*c)[1:]
	return n, nil
}

func TestAChunkThatCannotBeMaskedIsDropped(t *testing.T) {
	var out bytes.Buffer
	in := chunks{[]byte("before\n"), []byte("the secret\n"), []byte("after\n")}
	if err := pump(&out, &in, func() masker { return broken{"secret"} }); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "before\n"+dropped+"after\n" {
		t.Errorf("%q", got)
	}
}

// Case 14: whatever the writes are, on both streams.
func TestSecretsAreMaskedHoweverTheyAreWritten(t *testing.T) {
	o := shell(t, `printf 'API_KEY=sk-a'; printf 'bc123456789\nmax_tokens: 4096 你好\n'; printf 'API_KE' >&2; printf 'Y=sk-abc123456789' >&2; exit 3`)
	err := Keep(limited(t), o)
	if !fault.Is(err, ServerFailed) {
		t.Errorf("%v", err)
	}
	path := filepath.Join(o.Dir, o.Log)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	log := string(b)
	if strings.Contains(log, "bc123456789") || !strings.Contains(log, "max_tokens: 4096 你好") || strings.Count(log, "API_KEY=") != 2 || !strings.Contains(log, "exit status 3") {
		t.Errorf("%s", log)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if _, ok := ReadProof(o.Dir, nonce); ok {
		t.Error("the proof outlives the server")
	}
}

func TestAServerEndsWhenItsKeeperIsAskedTo(t *testing.T) {
	o := shell(t, `echo up; exec cat`) // ends with its stdin
	ctx, stop := context.WithCancel(limited(t))
	done := make(chan error, 1)
	go func() { done <- Keep(ctx, o) }()
	for deadline := time.Now().Add(30 * time.Second); ; <-time.After(5 * time.Millisecond) {
		if p, ok := ReadProof(o.Dir, nonce); ok {
			if p.SupervisorPID != os.Getpid() || syscall.Kill(p.ServerPID, 0) != nil {
				t.Errorf("%+v", p)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no proof")
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAnOrderThatIsNotWholeStartsNothing(t *testing.T) {
	for _, bad := range []string{"", "{}", `{"nonce":"x","dir":"/tmp","log":"l","argv":["/bin/true"],"name":"","env":[]}`,
		`{"nonce":"` + nonce + `","dir":"tmp","log":"l","argv":["/bin/true"],"name":"","env":[]}`,
		`{"nonce":"` + nonce + `","dir":"/tmp","log":"../l","argv":["/bin/true"],"name":"","env":[]}`,
		`{"nonce":"` + nonce + `","dir":"/tmp","log":"l","argv":["true"],"name":"","env":[]}`,
		`{"nonce":"` + nonce + `","dir":"/tmp","log":"l","argv":[],"name":"","env":[]}`} {
		if _, err := ReadOrder(strings.NewReader(bad)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := ReadOrder(strings.NewReader(`{"nonce":"` + nonce + `","dir":"/tmp","log":"l","argv":["/bin/true"],"name":"n","env":[]}`)); err != nil {
		t.Error(err)
	}
}

func TestAFullLogIsPutAsideAndNoByteIsLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.log")
	l, err := openLog(path, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	for _, line := range []string{"first\n", "second\n", "third\n"} {
		if _, err := l.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"": "third\n", ".1": "second\n", ".2": "first\n"} {
		if b, err := os.ReadFile(path + name); err != nil || string(b) != want {
			t.Errorf("%s: %q %v", name, b, err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := openLog(link, 10); err == nil {
		t.Error("a link was followed")
	}
}
