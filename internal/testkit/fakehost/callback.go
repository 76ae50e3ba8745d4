package fakehost

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// The environment of the callback program. A Profile must allow these names.
const (
	EnvLog      = "CB_LOG"       // file that gets one [Delivery] a line
	EnvMode     = "CB_MODE"      // how to answer
	EnvModeFile = "CB_MODE_FILE" // the same from a file, read at every call; wins when it exists
	EnvCase     = "CASE_ID"
)

// Mode is how the callback program answers.
type Mode string

// The answers of the callback program. Several may be joined with ",": the n-th attempt of a
// delivery gets the n-th, later ones the last.
const (
	Accept  Mode = "accept"   // accepted, exit 0
	Retry   Mode = "retry"    // asks for another attempt
	Reject  Mode = "reject"   // refuses for good
	Unsure  Mode = "unknown"  // the Host cannot tell
	Exit7   Mode = "exit7"    // accepted, but exit status 7
	WrongID Mode = "wrong_id" // accepted, for another delivery
	NoID    Mode = "no_id"    // accepted, without the acceptance id
	Garbage Mode = "garbage"  // no JSON
	Silent  Mode = "silent"   // nothing at all, exit 0
	Crash   Mode = "crash"    // nothing at all, exit 7
	Flood   Mode = "flood"    // more output than any Profile allows
	Sleep   Mode = "sleep"    // sleeps for SleepFor before it accepts
	Orphan  Mode = "orphan"   // accepts, and leaves a child in a session of its own that holds stdout
	Deaf    Mode = "deaf"     // accepts without reading standard input
	Slow    Mode = "slow"     // accepts SlowFor after it noted the call
	Held    Mode = "held"     // accepts once the file CB_LOG.hold is gone, at most SleepFor after it noted the call
	Brood   Mode = "brood"    // leaves two children, one in a session of its own, and sleeps like Sleep
)

// SlowFor is the pause of mode slow: time for a test to kill whoever waits for the answer.
const SlowFor = 500 * time.Millisecond

// SleepFor is how long the program sleeps in mode sleep, and how long the child of mode
// orphan lives: longer than any callback may take.
const SleepFor = 60 * time.Second

// Delivery is one call of the callback program, as it notes it before it answers.
type Delivery struct {
	T        time.Time `json:"t"`
	Session  string    `json:"session"`
	Delivery string    `json:"delivery"`
	Message  string    `json:"message"`
	Idem     string    `json:"idem"`
	SHA256   string    `json:"body_sha256"`
	Body     string    `json:"body"`
	PID      int       `json:"pid"`
	Mode     Mode      `json:"mode"`
	Env      []string  `json:"env"` // names only, of everything in the environment
}

// Arguments are the argv templates of a Profile for this program.
var Arguments = []string{
	"--session", "${controller.session_id}", "--delivery", "${envelope.delivery_id}",
	"--message", "${envelope.message_id}", "--idem", "${envelope.idempotency_key}",
}

// maxBody bounds what the program reads.
const maxBody = 16 << 20

// RunCallback is the callback program: args without the program name. It returns the exit
// status.
func RunCallback(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	d := Delivery{T: time.Now(), PID: os.Getpid()}
	fields := map[string]*string{"--session": &d.Session, "--delivery": &d.Delivery, "--message": &d.Message, "--idem": &d.Idem}
	for i := 0; i+1 < len(args); i += 2 {
		p := fields[args[i]]
		if p == nil {
			fmt.Fprintf(stderr, "callback: unknown argument %q\n", args[i])
			return 2
		}
		*p = args[i+1]
	}
	var err error
	if d.Mode, err = chooseMode(d.Delivery); err != nil {
		fmt.Fprintln(stderr, "callback:", err)
		return 2
	}
	if d.Mode != Deaf {
		body, err := io.ReadAll(io.LimitReader(stdin, maxBody))
		if err != nil {
			fmt.Fprintln(stderr, "callback: stdin:", err)
			return 2
		}
		d.Body, d.SHA256 = string(body), fmt.Sprintf("%x", sha256.Sum256(body))
	}
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		d.Env = append(d.Env, name)
	}
	if err := note(os.Getenv(EnvLog), d); err != nil {
		fmt.Fprintln(stderr, "callback:", err)
		return 2
	}
	return answer(d, stdout, stderr)
}

// chooseMode reads the mode for the next attempt of a delivery.
func chooseMode(delivery string) (Mode, error) {
	text := os.Getenv(EnvMode)
	if path := os.Getenv(EnvModeFile); path != "" {
		b, err := os.ReadFile(path)
		if err == nil {
			text = string(b)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	modes := strings.Split(strings.TrimSpace(text), ",")
	log, err := ReadLog(os.Getenv(EnvLog))
	if err != nil {
		return "", err
	}
	attempt := 0
	for _, d := range log {
		if d.Delivery == delivery {
			attempt++
		}
	}
	if m := Mode(modes[min(attempt, len(modes)-1)]); m != "" {
		return m, nil
	}
	return Accept, nil
}

// note appends d to the log and waits until it is on disk.
func note(path string, d Delivery) error {
	if path == "" {
		return nil
	}
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(append(b, '\n')); err != nil {
		return err
	}
	return f.Sync()
}

// acknowledge prints the document that the Profile of [WriteProfile] reads.
func acknowledge(w io.Writer, status, delivery, message, acceptance string) {
	result := map[string]string{"status": status}
	if acceptance != "" {
		result["acceptance_id"] = acceptance
	}
	b, err := json.Marshal(map[string]any{
		"result": result, "request": map[string]string{"delivery_id": delivery, "message_id": message},
	})
	if err == nil {
		fmt.Fprintf(w, "%s\n", b)
	}
}

func answer(d Delivery, stdout, stderr io.Writer) int {
	acceptance := fmt.Sprintf("acceptance-%d", d.PID)
	switch d.Mode {
	case Accept, Deaf:
	case Retry:
		acknowledge(stdout, "retry", d.Delivery, d.Message, "")
		return 0
	case Reject:
		acknowledge(stdout, "rejected", d.Delivery, d.Message, "")
		return 0
	case Unsure:
		acknowledge(stdout, "unknown", d.Delivery, d.Message, "")
		return 0
	case WrongID:
		acknowledge(stdout, "accepted", "another-delivery", d.Message, acceptance)
		return 0
	case NoID:
		acceptance = ""
	case Garbage:
		fmt.Fprintln(stdout, "Segmentation fault {not json")
		return 0
	case Silent:
		return 0
	case Crash:
		return 7
	case Flood:
		io.Copy(stdout, io.LimitReader(zeros{}, 8<<20)) // whoever reads may stop
		return 0
	case Sleep:
		time.Sleep(SleepFor) // a hung Host, on purpose
	case Slow:
		time.Sleep(SlowFor)
	case Held:
		hold(os.Getenv(EnvLog) + HoldSuffix)
	case Orphan:
		if err := leaveChild(stdout, true); err != nil {
			fmt.Fprintln(stderr, "callback:", err)
			return 2
		}
	case Brood:
		if err := errors.Join(leaveChild(stdout, false), leaveChild(stdout, true)); err != nil {
			fmt.Fprintln(stderr, "callback:", err)
			return 2
		}
		time.Sleep(SleepFor)
	case Exit7:
		acknowledge(stdout, "accepted", d.Delivery, d.Message, acceptance)
		return 7
	default:
		fmt.Fprintf(stderr, "callback: unknown mode %q\n", d.Mode)
		return 2
	}
	acknowledge(stdout, "accepted", d.Delivery, d.Message, acceptance)
	return 0
}

// HoldSuffix makes of the log's name the file that mode held waits for.
const HoldSuffix = ".hold"

func hold(path string) {
	for end := time.Now().Add(SleepFor); time.Now().Before(end); time.Sleep(poll) {
		if _, err := os.Lstat(path); err != nil {
			return
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '0'
	}
	return len(b), nil
}

// leaveChild starts a process that outlives this one and keeps stdout open.
func leaveChild(stdout io.Writer, setsid bool) error {
	c := exec.Command("/bin/sleep", fmt.Sprint(int(SleepFor.Seconds())))
	c.Stdout = stdout
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: setsid}
	return c.Start()
}

// ReadLog reads what the callback program has noted. A missing file is an empty log, a
// last line without its end is left out.
func ReadLog(path string) ([]Delivery, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []Delivery
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		var d Delivery
		if err := json.Unmarshal(line, &d); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out = append(out, d)
	}
}
