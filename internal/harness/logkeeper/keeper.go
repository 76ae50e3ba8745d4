package logkeeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/redact"
	"github.com/agent-knock-knock/akk/internal/strictjson"
)

const (
	// stopGrace is how long a server has between the request to end and its end.
	stopGrace = 10 * time.Second
	// pipeGrace is how long the rest of its output may take after that.
	pipeGrace = 5 * time.Second
	maxOrder  = 256 << 10

	// LogLost is the code of a server that was stopped because its log could not be kept.
	LogLost fault.Code = "log_lost"
	// StartFailed is the code of a server that could not be started.
	StartFailed fault.Code = "startup_failed"
	// ServerFailed is the code of a server that ended with a failure.
	ServerFailed fault.Code = "server_failed"
)

// Order says what to start. It comes as one JSON document on stdin, so that no argument
// and no variable of the environment can choose a program.
type Order struct {
	Nonce string   `json:"nonce"` // hexadecimal, of the client that starts us
	Dir   string   `json:"dir"`   // the client directory
	Log   string   `json:"log"`   // the name of the log in it
	Argv  []string `json:"argv"`  // of the server; the first is an absolute path
	Name  string   `json:"name"`  // what the server sees as its own name
	Env   []string `json:"env"`
}

// Proof is what a keeper writes once its server runs: only its client knows the nonce.
type Proof struct {
	Nonce         string `json:"nonce"`
	ServerPID     int    `json:"server_pid"`
	SupervisorPID int    `json:"supervisor_pid"`
}

// ProofFile is where the proof of a nonce stands.
func ProofFile(dir, nonce string) string { return filepath.Join(dir, "proof-"+nonce) }

// ReadProof reads a proof; ok is false while there is none.
func ReadProof(dir, nonce string) (p Proof, ok bool) {
	f, err := OpenPrivate(ProofFile(dir, nonce), os.O_RDONLY)
	if err != nil {
		return p, false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 4<<10))
	if err != nil || json.Unmarshal(b, &p) != nil || p.Nonce != nonce || p.ServerPID < 1 {
		return Proof{}, false
	}
	return p, true
}

// ReadOrder reads the document from stdin and checks it.
func ReadOrder(stdin io.Reader) (Order, error) {
	var o Order
	b, err := io.ReadAll(io.LimitReader(stdin, maxOrder+1))
	if err == nil {
		err = strictjson.Decode(b, &o, strictjson.Limits{MaxBytes: maxOrder, MaxDepth: 4})
	}
	if err == nil && (!hex(o.Nonce) || !filepath.IsAbs(o.Dir) || o.Log == "" || filepath.Base(o.Log) != o.Log || len(o.Argv) == 0 || !filepath.IsAbs(o.Argv[0])) {
		err = errors.New("a field is missing or wrong")
	}
	if err != nil {
		return o, fault.Wrap(err, fault.Invalid, "logkeeper.order", "this command is started by agent-knock-knock itself and takes its order on stdin")
	}
	return o, nil
}

func hex(s string) bool {
	for _, c := range s {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
			return false
		}
	}
	return len(s) >= 32 && len(s) <= 128
}

// Keep starts the server and keeps its log until it ends. When ctx ends, the server is
// asked to end. It returns nil only when the server ended by itself with success or was
// asked to end.
func Keep(ctx context.Context, o Order) error {
	if err := PrivateDir(o.Dir); err != nil {
		return fault.Wrap(err, LogLost, "logkeeper.keep", "the client directory cannot be used")
	}
	log, err := openLog(filepath.Join(o.Dir, o.Log), maxLog)
	if err != nil {
		return fault.Wrap(err, LogLost, "logkeeper.keep", "the log cannot be opened")
	}
	defer log.close()
	k := &keeper{order: o, log: log, masker: newMasker}
	return k.run(ctx)
}

type keeper struct {
	order  Order
	log    io.Writer
	masker func() masker

	cmd  *exec.Cmd
	life *os.File // the write end of the server's stdin: it ends with us
}

// note appends a line of our own.
func (k *keeper) note(format string, args ...any) error {
	line := fmt.Sprintf("%s [supervisor] %s\n", time.Now().UTC().Format(time.RFC3339), redact.Line(fmt.Sprintf(format, args...), 1024))
	return write(k.log, []byte(line))
}

func (k *keeper) run(ctx context.Context) error {
	pipes, err := k.start()
	if err != nil {
		_ = k.note("the server was not started: %v", err) // the code says it too
		return fault.Wrap(err, StartFailed, "logkeeper.start", "the server could not be started")
	}
	defer os.Remove(ProofFile(k.order.Dir, k.order.Nonce))
	lost := make(chan error, len(pipes))
	var pumps sync.WaitGroup
	for _, p := range pipes {
		pumps.Go(func() {
			defer p.Close()
			if err := pump(k.log, p, k.masker); err != nil {
				lost <- err
				_, _ = io.Copy(io.Discard, p) // a full pipe must not hold the server while it ends
			}
		})
	}
	ended := make(chan error, 1)
	go func() { ended <- k.cmd.Wait() }()
	failure := k.prove()
	asked := false
	if failure == nil {
		select {
		case err := <-ended:
			ended <- err
		case err := <-lost:
			failure = fault.Wrap(err, LogLost, "logkeeper.write", "the log cannot be written, so the server was stopped")
		case <-ctx.Done():
			asked = true
		}
	}
	exit := k.end(ended)
	settle(&pumps, pipes)
	select {
	case err := <-lost:
		if failure == nil {
			failure = fault.Wrap(err, LogLost, "logkeeper.write", "the log cannot be written")
		}
	default:
	}
	if noteErr := k.note("the server ended: %s", exitText(exit)); noteErr != nil && failure == nil {
		failure = fault.Wrap(noteErr, LogLost, "logkeeper.write", "the log cannot be written")
	}
	switch {
	case failure != nil:
		return failure
	case exit != nil && !asked:
		return fault.Wrap(exit, ServerFailed, "logkeeper.run", "the server ended with a failure")
	}
	return nil
}

// settle waits until everything that the server wrote is in the log. A descendant of the
// server that still holds a pipe is not waited for.
func settle(pumps *sync.WaitGroup, pipes []*os.File) {
	stop := time.AfterFunc(pipeGrace, func() { closeAll(pipes...) })
	defer stop.Stop()
	pumps.Wait()
}

func exitText(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// start runs the server with three pipes. Its stdin has no data: its end says that we are
// gone.
func (k *keeper) start() (pipes []*os.File, err error) {
	stdin, life, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		closeAll(stdin, life)
		return nil, err
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		closeAll(stdin, life, outR, outW)
		return nil, err
	}
	k.cmd = exec.Command(k.order.Argv[0], k.order.Argv[1:]...)
	if k.order.Name != "" {
		k.cmd.Args[0] = k.order.Name
	}
	k.cmd.Stdin, k.cmd.Stdout, k.cmd.Stderr = stdin, outW, errW
	k.cmd.Dir, k.cmd.Env = k.order.Dir, k.order.Env
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = k.cmd.Start()
	closeAll(stdin, outW, errW)
	if err != nil {
		closeAll(life, outR, errR)
		return nil, err
	}
	k.life = life
	return []*os.File{outR, errR}, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close() // pipes: nothing can be lost
	}
}

// prove writes the proof that this server is ours.
func (k *keeper) prove() error {
	b, err := json.Marshal(Proof{Nonce: k.order.Nonce, ServerPID: k.cmd.Process.Pid, SupervisorPID: os.Getpid()})
	if err == nil {
		err = WriteAtomic(ProofFile(k.order.Dir, k.order.Nonce), b)
	}
	if err == nil {
		err = k.note("started the server, pid %d", k.cmd.Process.Pid)
	}
	if err != nil {
		return fault.Wrap(err, LogLost, "logkeeper.prove", "the client directory cannot be written, so the server was stopped")
	}
	return nil
}

// end asks the server to end, waits, and then ends it. It does nothing to a server that has
// ended. Only our own child is signalled.
func (k *keeper) end(ended <-chan error) error {
	select {
	case err := <-ended:
		closeAll(k.life)
		return err
	default:
	}
	// The end of its stdin would tell the server that we are gone and that it has to hurry.
	defer closeAll(k.life)
	_ = k.cmd.Process.Signal(syscall.SIGTERM) // it may have ended just now
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		_ = k.cmd.Process.Kill()
		return <-ended
	}
}
