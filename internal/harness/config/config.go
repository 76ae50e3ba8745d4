// Package config reads the configuration of the harness server: one optional YAML file,
// closed, with a default for everything.
//
// It knows paths and numbers and no session, agent or socket. Which file is read is decided
// here too, so that a client finds the same state directory as the server it talks to.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/strictjson"
)

// DefaultListen is the address of a server that is told nothing else.
const DefaultListen = "127.0.0.1:8787"

// The variables that name a configuration file; the first that is set counts.
const (
	EnvFile     = "AKK_HARNESS_CONFIG"
	EnvFilePeer = "HARNESS_ACP_BRIDGE_CONFIG"
)

const maxFile = 1 << 20

// Config is every setting with its final value. Durations are whole seconds in the file.
type Config struct {
	Listen         string         `yaml:"listen" json:"listen"`
	StateDir       string         `yaml:"state_dir" json:"state_dir"`
	DefaultHarness string         `yaml:"default_harness" json:"default_harness"`
	RequireToken   bool           `yaml:"require_token" json:"require_token"`
	AllowedHosts   []string       `yaml:"allowed_hosts" json:"allowed_hosts"`
	AllowedOrigins []string       `yaml:"allowed_origins" json:"allowed_origins"`
	Sessions       Sessions       `yaml:"sessions" json:"sessions"`
	Transport      Transport      `yaml:"transport" json:"transport"`
	Buffers        Buffers        `yaml:"buffers" json:"buffers"`
	Authentication Authentication `yaml:"authentication" json:"authentication"`
}

// Sessions bounds how many sessions live, and for how long without work.
type Sessions struct {
	MaxConcurrency      int     `yaml:"max_concurrency" json:"max_concurrency"`
	IdleTimeoutSeconds  Seconds `yaml:"idle_timeout_seconds" json:"idle_timeout_seconds"` // 0 is never
	ReapIntervalSeconds Seconds `yaml:"reap_interval_seconds" json:"reap_interval_seconds"`
}

// Transport bounds every wait for an agent. A question_timeout_seconds of 0 is no limit.
type Transport struct {
	StartupTimeoutSeconds       Seconds `yaml:"startup_timeout_seconds" json:"startup_timeout_seconds"`
	SessionTimeoutSeconds       Seconds `yaml:"session_timeout_seconds" json:"session_timeout_seconds"`
	OptionTimeoutSeconds        Seconds `yaml:"option_timeout_seconds" json:"option_timeout_seconds"`
	TurnTimeoutSeconds          Seconds `yaml:"turn_timeout_seconds" json:"turn_timeout_seconds"`
	QuestionTimeoutSeconds      Seconds `yaml:"question_timeout_seconds" json:"question_timeout_seconds"`
	TurnCancelTimeoutSeconds    Seconds `yaml:"turn_cancel_timeout_seconds" json:"turn_cancel_timeout_seconds"`
	TerminateGraceSeconds       Seconds `yaml:"terminate_grace_seconds" json:"terminate_grace_seconds"`
	RemoteCleanupTimeoutSeconds Seconds `yaml:"remote_cleanup_timeout_seconds" json:"remote_cleanup_timeout_seconds"`
	StderrTailLines             int     `yaml:"stderr_tail_lines" json:"stderr_tail_lines"`
}

// Buffers bounds what is held of an agent's output.
type Buffers struct {
	MaxReadBytes  Size `yaml:"max_read_bytes" json:"max_read_bytes"`   // one line of the protocol
	MaxQueueBytes Size `yaml:"max_queue_bytes" json:"max_queue_bytes"` // read and not handled yet
}

// Authentication bounds logins.
type Authentication struct {
	TimeoutSeconds       Seconds   `yaml:"timeout_seconds" json:"timeout_seconds"`
	MaxConcurrentTargets int       `yaml:"max_concurrent_targets" json:"max_concurrent_targets"`
	RateLimit            RateLimit `yaml:"rate_limit" json:"rate_limit"`
}

// RateLimit bounds attempts to log in at one target.
type RateLimit struct {
	MinIntervalSeconds Seconds `yaml:"min_interval_seconds" json:"min_interval_seconds"`
	MaxAttempts        int     `yaml:"max_attempts" json:"max_attempts"`
	WindowSeconds      Seconds `yaml:"window_seconds" json:"window_seconds"`
}

// Seconds is a duration as the file writes it. Fractions are fine.
type Seconds float64

// Duration converts.
func (s Seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// Size is a number of bytes. The file writes a number, or one with a unit of 1024: B, KB,
// KiB, MB, MiB, GB, GiB.
type Size int64

// UnmarshalYAML reads both forms.
func (s *Size) UnmarshalYAML(n *yaml.Node) error {
	v, err := ParseSize(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		return fmt.Errorf("line %d: a size is a whole number, or one with B, KiB, MiB or GiB", n.Line)
	}
	*s = v
	return nil
}

// ParseSize reads a size.
func ParseSize(text string) (Size, error) {
	number := strings.TrimRight(text, "BKMGiKbkmg ")
	unit := strings.ToLower(strings.TrimSpace(text[len(number):]))
	shift, known := map[string]uint{"": 0, "b": 0, "kb": 10, "kib": 10, "mb": 20, "mib": 20, "gb": 30, "gib": 30}[unit]
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if !known || err != nil || n < 0 || n > math.MaxInt64>>shift {
		return 0, errors.New("not a size")
	}
	return Size(n << shift), nil
}

// Default is the configuration of a server without a file. home may be "" when no path
// below it is needed.
func Default(home string) Config {
	return Config{
		Listen:         DefaultListen,
		StateDir:       filepath.Join(home, ".agent-knock-knock", "harness"),
		DefaultHarness: "codex",
		RequireToken:   true,
		AllowedHosts:   []string{},
		AllowedOrigins: []string{},
		Sessions:       Sessions{MaxConcurrency: 16, IdleTimeoutSeconds: 3600, ReapIntervalSeconds: 30},
		Transport: Transport{StartupTimeoutSeconds: 60, SessionTimeoutSeconds: 60, OptionTimeoutSeconds: 30, TurnTimeoutSeconds: 1800,
			TurnCancelTimeoutSeconds: 5, TerminateGraceSeconds: 5, RemoteCleanupTimeoutSeconds: 10, StderrTailLines: 200},
		Buffers: Buffers{MaxReadBytes: 100 << 20, MaxQueueBytes: 64 << 20},
		Authentication: Authentication{TimeoutSeconds: 600, MaxConcurrentTargets: 2,
			RateLimit: RateLimit{MinIntervalSeconds: 60, MaxAttempts: 10, WindowSeconds: 86400}},
	}
}

// Source is where a configuration comes from.
type Source struct {
	Flag      string                           // --config, "" for none
	LookupEnv func(name string) (string, bool) // the process's environment
	Home      string
}

// Path finds the file that counts: the flag, the two variables, then
// $XDG_CONFIG_HOME/agent-knock-knock/harness.yaml when it exists. "" means defaults only.
func (s Source) Path() string {
	if s.Flag != "" {
		return s.Flag
	}
	for _, name := range []string{EnvFile, EnvFilePeer} {
		if v, ok := s.LookupEnv(name); ok && v != "" {
			return v
		}
	}
	base, ok := s.LookupEnv("XDG_CONFIG_HOME")
	if !ok || !filepath.IsAbs(base) {
		base = filepath.Join(s.Home, ".config")
	}
	path := filepath.Join(base, "agent-knock-knock", "harness.yaml")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// Load reads the configuration that counts and checks it. It returns the file's path, "" when
// none was read. It makes no directory.
func Load(s Source) (Config, string, error) {
	path := s.Path()
	if path == "" {
		c, err := Default(s.Home).Check(s.Home)
		return c, "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return Config{}, path, harness.Fail(err, harness.InvalidConfig, "cannot read the configuration %s: %v", path, rootCause(err))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil || len(text) > maxFile {
		return Config{}, path, harness.Fail(err, harness.InvalidConfig, "the configuration %s cannot be read or is larger than 1 MiB", path)
	}
	c, err := Parse(text, s.Home)
	if err != nil {
		return c, path, harness.Fail(err, harness.InvalidConfig, "%s: %s", path, textOf(err))
	}
	return c, path, nil
}

func textOf(err error) string {
	_, msg, hint := fault.Public(err)
	if hint != "" {
		msg += " (" + hint + ")"
	}
	return msg
}

// Parse reads one YAML document over the defaults. Unknown keys and the obsolete section
// `harnesses` are refused.
func Parse(text []byte, home string) (Config, error) {
	c := Default(home)
	var top map[string]yaml.Node
	if yaml.Unmarshal(text, &top) == nil {
		if _, there := top["harnesses"]; there {
			return c, harness.Refuse(harness.InvalidConfig, "the section harnesses is obsolete: every harness is built in").
				Advise("remove it; give an agent's command in a template or in create_session")
		}
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
		return c, harness.Fail(err, harness.InvalidConfig, "%s", oneLine(err))
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return c, harness.Refuse(harness.InvalidConfig, "the file must hold one YAML document")
	}
	return c.Check(home)
}

// oneLine makes the library's list of errors one line and takes our type names out of it.
func oneLine(err error) string {
	text := err.Error()
	var te *yaml.TypeError
	if errors.As(err, &te) {
		text = strings.Join(te.Errors, "; ")
	}
	text = strings.TrimPrefix(strings.Join(strings.Fields(text), " "), "yaml: ")
	if before, _, found := strings.Cut(text, " not found in type"); found {
		text = before + " is not known"
	}
	return text
}

// Check refuses values that cannot work, and makes the state directory absolute.
func (c Config) Check(home string) (Config, error) {
	bad := func(format string, args ...any) (Config, error) {
		return c, harness.Refuse(harness.InvalidConfig, format, args...)
	}
	if _, err := Loopback(c.Listen); err != nil {
		return c, err
	}
	if rest, below := strings.CutPrefix(c.StateDir, "~/"); below {
		c.StateDir = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(c.StateDir) {
		return bad("state_dir must be an absolute path")
	}
	if strings.TrimSpace(c.DefaultHarness) == "" {
		return bad("default_harness is empty")
	}
	t, s, a := c.Transport, c.Sessions, c.Authentication
	for _, n := range []struct {
		name  string
		value Seconds
		zero  bool
	}{
		{"sessions.idle_timeout_seconds", s.IdleTimeoutSeconds, true}, {"sessions.reap_interval_seconds", s.ReapIntervalSeconds, false},
		{"transport.startup_timeout_seconds", t.StartupTimeoutSeconds, false}, {"transport.session_timeout_seconds", t.SessionTimeoutSeconds, false},
		{"transport.option_timeout_seconds", t.OptionTimeoutSeconds, false}, {"transport.turn_timeout_seconds", t.TurnTimeoutSeconds, false},
		{"transport.question_timeout_seconds", t.QuestionTimeoutSeconds, true}, {"transport.turn_cancel_timeout_seconds", t.TurnCancelTimeoutSeconds, false},
		{"transport.terminate_grace_seconds", t.TerminateGraceSeconds, true}, {"transport.remote_cleanup_timeout_seconds", t.RemoteCleanupTimeoutSeconds, false},
		{"authentication.timeout_seconds", a.TimeoutSeconds, false}, {"authentication.rate_limit.min_interval_seconds", a.RateLimit.MinIntervalSeconds, true},
		{"authentication.rate_limit.window_seconds", a.RateLimit.WindowSeconds, false},
	} {
		v := float64(n.value)
		if math.IsNaN(v) || v < 0 || v > 30*86400 || v == 0 && !n.zero {
			return bad("%s is out of range", n.name)
		}
	}
	for _, n := range []struct {
		name           string
		value, low, up int64
	}{
		{"sessions.max_concurrency", int64(s.MaxConcurrency), 1, 10000}, {"transport.stderr_tail_lines", int64(t.StderrTailLines), 0, 10000},
		{"authentication.max_concurrent_targets", int64(a.MaxConcurrentTargets), 1, 1000}, {"authentication.rate_limit.max_attempts", int64(a.RateLimit.MaxAttempts), 1, 100000},
		{"buffers.max_read_bytes", int64(c.Buffers.MaxReadBytes), 64 << 10, 1 << 30}, {"buffers.max_queue_bytes", int64(c.Buffers.MaxQueueBytes), 64 << 10, 1 << 30},
	} {
		if n.value < n.low || n.value > n.up {
			return bad("%s must be between %d and %d", n.name, n.low, n.up)
		}
	}
	return c, nil
}

// Loopback reads an address to listen on. Only an address of this machine is served.
func Loopback(addr string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(addr)
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip, ipErr := netip.ParseAddr(host)
	n, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || ipErr != nil || portErr != nil || !ip.IsLoopback() {
		return netip.AddrPort{}, harness.Refuse(harness.InvalidConfig, "the server listens on a loopback address with a port only, such as %s", DefaultListen)
	}
	return netip.AddrPortFrom(ip, uint16(n)), nil
}

// Fingerprint identifies the settings: equal settings give equal text.
func (c Config) Fingerprint() (string, error) { return strictjson.Hash(c) }

// The files in a state directory.
const (
	tokenName    = "token"
	lockName     = "server.lock"
	databaseName = "harness.db"
)

// TokenFile is the file with the owner's token, mode 0600. A server writes a new one at
// each start, before it answers its first ping.
func TokenFile(stateDir string) string { return filepath.Join(stateDir, tokenName) }

// LockFile is the file that a running server holds locked.
func LockFile(stateDir string) string { return filepath.Join(stateDir, lockName) }

// DatabaseFile is the server's database.
func DatabaseFile(stateDir string) string { return filepath.Join(stateDir, databaseName) }

func rootCause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
