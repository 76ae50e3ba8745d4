package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/config"
	"github.com/agent-knock-knock/akk/internal/strictjson"
)

// The two beginnings of every variable's name; ours counts first.
const (
	ourPrefix  = "AKK_HARNESS_"
	peerPrefix = "HARNESS_ACP_BRIDGE_"
)

// The defaults.
const (
	DefaultURL            = "http://" + config.DefaultListen
	DefaultTimeout        = 120 * time.Second
	DefaultStartupTimeout = 30 * time.Second
	clientDir             = ".harness-acp-bridge-client"
	maxSettingsFile       = 64 << 10
	maxMillis             = 24 * 60 * 60 * 1000
)

// When a person is asked through the Host.
const (
	ElicitAuto   = "auto"   // when the Host says that it can, until it answers like a machine
	ElicitAlways = "always" // when the Host says that it can
	ElicitNever  = "never"
)

// Settings is the configuration of one client.
type Settings struct {
	BaseURL        *url.URL
	Timeout        time.Duration // of one HTTP request
	AutoStart      bool
	ServerEntry    string // "" or an absolute path
	ConfigPath     string // "" or the absolute path of the server's YAML file
	StartupTimeout time.Duration
	ClientDir      string // absolute
	Elicit         string
	ElicitTimeout  time.Duration // 0 is none
	StateDir       string        // of a server that we would start: its token is ours
	SearchPath     string        // PATH of the start
	HasSearchPath  bool
	StartDir       string // the working directory of the start
}

// Key is the base URL as it stands in the registry of servers.
func (s Settings) Key() string { return strings.TrimSuffix(s.BaseURL.String(), "/") }

// Loopback reports whether the base URL is this machine by its address or by localhost.
func (s Settings) Loopback() bool {
	host := s.BaseURL.Hostname()
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}

// Source is what settings are read from.
type Source struct {
	LookupEnv func(name string) (string, bool)
	Dir       string // the working directory
	Home      string
}

// file is the JSON file. Its keys are exactly these.
type file struct {
	BaseURL          *string `json:"baseUrl"`
	TimeoutMS        *int64  `json:"timeoutMs"`
	AutoStart        *bool   `json:"autoStart"`
	ServerEntry      *string `json:"serverEntry"`
	ConfigPath       *string `json:"configPath"`
	StartupTimeoutMS *int64  `json:"startupTimeoutMs"`
}

var fileKeys = []string{"autoStart", "baseUrl", "configPath", "serverEntry", "startupTimeoutMs", "timeoutMs"}

// Load reads the settings: the environment, then the JSON file that it names, then the
// defaults. Anything that is not understood is refused with invalid_config.
func Load(src Source) (Settings, error) {
	l := &loader{src: src}
	f := l.file()
	s := Settings{StartDir: src.Dir}
	s.BaseURL = l.url(f.BaseURL)
	s.Timeout = l.millis("TIMEOUT_MS", "timeoutMs", f.TimeoutMS, DefaultTimeout, 1)
	s.StartupTimeout = l.millis("STARTUP_TIMEOUT_MS", "startupTimeoutMs", f.StartupTimeoutMS, DefaultStartupTimeout, 1)
	s.AutoStart = l.flag(f.AutoStart)
	s.ServerEntry = l.path("SERVER_ENTRY", f.ServerEntry)
	s.ConfigPath = l.path("CONFIG", f.ConfigPath)
	s.ClientDir = l.path("CLIENT_DIR", nil)
	if s.ClientDir == "" {
		s.ClientDir = filepath.Join(src.Home, clientDir)
	}
	s.Elicit = l.choice("ELICIT", ElicitAuto, ElicitAlways, ElicitNever)
	s.ElicitTimeout = l.millis("ELICIT_TIMEOUT_MS", "", nil, 0, 0)
	s.SearchPath, s.HasSearchPath = src.LookupEnv("PATH")
	if l.err == nil && !filepath.IsAbs(s.ClientDir) {
		l.refuse("the home directory is not known, so there is no default client directory; set %sCLIENT_DIR", ourPrefix)
	}
	if l.err != nil {
		return Settings{}, l.err
	}
	// The server refuses a bad configuration itself; without one there is no token of ours.
	if c, _, err := config.Load(config.Source{Flag: s.ConfigPath, LookupEnv: src.LookupEnv, Home: src.Home}); err == nil {
		s.StateDir = c.StateDir
	}
	return s, nil
}

// loader keeps the first thing that is wrong.
type loader struct {
	src Source
	err error
}

func (l *loader) refuse(format string, args ...any) {
	if l.err == nil {
		l.err = harness.Refuse(harness.InvalidConfig, format, args...)
	}
}

// env returns a variable by the end of its name, trimmed; a blank one is not set.
func (l *loader) env(end string) (value, name string, ok bool) {
	for _, prefix := range []string{ourPrefix, peerPrefix} {
		if v, set := l.src.LookupEnv(prefix + end); set && strings.TrimSpace(v) != "" {
			return strings.TrimSpace(v), prefix + end, true
		}
	}
	return "", "", false
}

func (l *loader) file() (f file) {
	path, name, ok := l.env("MCP_CONFIG")
	if !ok {
		return f
	}
	path = l.absolute(path)
	h, err := os.Open(path)
	if err != nil {
		l.refuse("the file that %s names cannot be read: %v", name, plainCause(err))
		return f
	}
	defer h.Close()
	text, err := io.ReadAll(io.LimitReader(h, maxSettingsFile+1))
	if err != nil || len(text) > maxSettingsFile {
		l.refuse("the file that %s names cannot be read or is larger than %d bytes", name, maxSettingsFile)
		return f
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(bytes.TrimSpace(text), &keys) != nil || keys == nil {
		l.refuse("the file that %s names is not one JSON object", name)
		return f
	}
	for key := range keys {
		if !slices.Contains(fileKeys, key) {
			l.refuse("the file that %s names has the key %q; it may have %s", name, clip(key), strings.Join(fileKeys, ", "))
			return f
		}
	}
	if err := strictjson.Decode(text, &f, strictjson.Limits{MaxBytes: maxSettingsFile, MaxDepth: 4}); err != nil {
		_, msg, _ := fault.Public(err)
		l.refuse("the file that %s names: %s", name, msg)
	}
	return f
}

func plainCause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func clip(s string) string {
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:64], "") + "..."
	}
	return s
}

func (l *loader) absolute(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(l.src.Dir, path)
}

// path reads a path or a file: URL, relative to the start's working directory.
func (l *loader) path(end string, fromFile *string) string {
	v, name, ok := l.env(end)
	if !ok && fromFile != nil {
		v, name = strings.TrimSpace(*fromFile), "the settings file"
		if v == "" {
			l.refuse("a path in the settings file is empty; leave the key out")
		}
	}
	if strings.HasPrefix(v, "file:") {
		u, err := url.Parse(v)
		if err != nil || u.Opaque != "" || u.Host != "" && u.Host != "localhost" || u.RawQuery != "" || u.Fragment != "" {
			l.refuse("%s is a file: URL that is not of this machine", name)
			return ""
		}
		v = u.Path
	}
	if strings.ContainsRune(v, 0) {
		l.refuse("%s is not a path", name)
		return ""
	}
	return l.absolute(v)
}

func (l *loader) url(fromFile *string) *url.URL {
	text, name, ok := l.env("URL")
	switch {
	case ok:
	case fromFile != nil:
		text, name = *fromFile, "baseUrl"
	default:
		text, name = DefaultURL, "the default"
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		l.refuse("%s is not a URL", name)
	case u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "" || u.Hostname() == "":
		l.refuse("%s must be an http or https URL with a host", name)
	case u.User != nil:
		l.refuse("%s must not hold credentials", name)
	case u.RawQuery != "" || u.ForceQuery:
		l.refuse("%s must not have a query", name)
	case u.Fragment != "" || strings.Contains(text, "#"):
		l.refuse("%s must not have a fragment", name)
	default:
		if p := u.Port(); p != "" {
			if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
				l.refuse("%s has no valid port", name)
			}
		}
		u.Path = strings.TrimRight(u.Path, "/")
		u.RawPath = ""
	}
	return u
}

func (l *loader) millis(end, key string, fromFile *int64, def time.Duration, least int64) time.Duration {
	v, name, ok := l.env(end)
	switch {
	case ok:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < least || n > maxMillis {
			l.refuse("%s must be a whole number of milliseconds from %d to %d", name, least, maxMillis)
		}
		return time.Duration(n) * time.Millisecond
	case fromFile != nil:
		if *fromFile < least || *fromFile > maxMillis {
			l.refuse("%s must be a whole number of milliseconds from %d to %d", key, least, maxMillis)
		}
		return time.Duration(*fromFile) * time.Millisecond
	}
	return def
}

func (l *loader) flag(fromFile *bool) bool {
	v, name, ok := l.env("AUTOSTART")
	switch {
	case ok:
		switch strings.ToLower(v) {
		case "true", "1", "yes", "on":
			return true
		case "false", "0", "no", "off":
			return false
		}
		l.refuse("%s must be true or false", name)
	case fromFile != nil:
		return *fromFile
	}
	return true
}

func (l *loader) choice(end string, allowed ...string) string {
	v, name, ok := l.env(end)
	if !ok {
		return allowed[0]
	}
	if v = strings.ToLower(v); !slices.Contains(allowed, v) {
		l.refuse("%s must be one of %s", name, strings.Join(allowed, ", "))
	}
	return v
}
