package harness

import (
	"net/netip"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/pattern"
)

// Limits of what a caller may send.
const (
	MaxText           = 1 << 20
	MaxIdempotencyKey = 512
	MaxMounts         = 64
	MaxPorts          = 64
	MaxArgs           = 256
	MaxEnv            = 256
	MaxEnvValue       = 32 << 10
	maxName           = 4096
	maxImage          = 255
	maxInstruction    = 64 << 10
	maxDescription    = 1 << 10
)

// The permission modes of a caller. Each agent's own mode is found in what it offers.
const (
	ModeRead = "read"
	ModeEdit = "edit"
	ModeAuto = "auto"
	ModeYolo = "yolo"
)

// PermissionModes are the values of permission_mode.
var PermissionModes = []string{ModeRead, ModeEdit, ModeAuto, ModeYolo}

// Words of the launch parameters.
const (
	TargetLocal   = "local"
	TargetRemote  = "remote"
	RuntimeDirect = "direct"
	RuntimeDocker = "docker"
	PolicyRemove  = "remove"
	PolicyKeep    = "keep"
)

// Mount is a bind mount of a container.
type Mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Port is a published port of a container.
type Port struct {
	HostPort      int    `json:"host_port"`
	ContainerPort int    `json:"container_port"`
	Protocol      string `json:"protocol,omitempty"`
	HostIP        string `json:"host_ip,omitempty"`
}

// Place is where and how an agent runs: what a session's parameters and a template have in
// common.
type Place struct {
	Target          string            `json:"target,omitempty"`
	RemoteHost      string            `json:"remote_host,omitempty"`
	Runtime         string            `json:"runtime,omitempty"`
	PermissionMode  string            `json:"permission_mode,omitempty"`
	Command         string            `json:"command,omitempty"`
	Args            []string          `json:"args,omitempty"`
	Env             map[string]string `json:"env,omitempty"`
	Cwd             string            `json:"cwd,omitempty"`
	DockerImage     string            `json:"docker_image,omitempty"`
	ContainerPolicy string            `json:"container_policy,omitempty"`
	LoginDirs       []string          `json:"login_dirs,omitempty"`
	Mounts          []Mount           `json:"mounts,omitempty"`
	Ports           []Port            `json:"ports,omitempty"`
}

// Launch is what create_session asks for. [Launch.Check] fills defaults and refuses.
type Launch struct {
	Place
	SessionID             string      `json:"session_id,omitempty"`
	Harness               string      `json:"harness,omitempty"`
	ModelID               string      `json:"model_id,omitempty"`
	ThinkingLevel         string      `json:"thinking_level,omitempty"`
	DockerID              string      `json:"docker_id,omitempty"`
	HostNetwork           bool        `json:"host_network,omitempty"`
	ResumeSessionID       string      `json:"resume_session_id,omitempty"`
	MCPServers            []MCPServer `json:"mcp_servers,omitempty"`
	AdditionalDirectories []string    `json:"additional_directories,omitempty"`
	Title                 string      `json:"title,omitempty"`
	IdempotencyKey        string      `json:"idempotency_key,omitempty"`
}

// MCPServer is a server that the agent is told to use. Command starts one over stdio; URL
// names one that runs.
type MCPServer struct {
	Name    string            `json:"name"`
	Type    string            `json:"type,omitempty"` // stdio, http or sse; stdio when there is a command
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// LaunchInternals are names that older clients sent to steer the launch itself. They are
// refused by a code of their own, so that nobody believes that they work.
var LaunchInternals = []string{"ssh_command", "ssh_args", "ssh_host", "proxy_command", "identity_file", "strict_host_key_checking",
	"docker_command", "entrypoint", "launch_mode", "harness_options", "base_dir", "session_dir", "state_dir", "metadata_path", "remote_pid_file",
	"container_record_id", "resume_record_id", "max_read_bytes", "max_output_bytes"}

// UnknownKey is the refusal of a parameter that an operation does not have.
func UnknownKey(name string) *Error {
	switch {
	case slices.Contains(LaunchInternals, name):
		return Refuse(LaunchInternal, "%q belongs to the launch itself and cannot be set by a caller", name).Advise("leave it out")
	case name == "template":
		return Refuse(InvalidParam, "a session has no parameter \"template\": templates are information only").
			Advise("read the template with search_template and pass its fields one by one")
	}
	return Refuse(UnknownParam, "there is no parameter %q", name).Advise("leave it out")
}

var (
	sessionIDForm = pattern.New(`^[A-Za-z0-9._-]{1,128}$`)
	messageIDForm = pattern.New(`^[A-Za-z0-9._-]{1,64}$`)
	envNameForm   = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	dockerIDForm  = pattern.New(`^[0-9a-f]{64}$`)
	hostForm      = pattern.New(`^[A-Za-z0-9._@%:\[\]][A-Za-z0-9._@%:\[\]-]*$`)
	harnessForm   = pattern.New(`^[a-z0-9][a-z0-9._-]{0,63}$`)
)

// CheckSessionID refuses what cannot be a session id, and what is a path.
func CheckSessionID(id string) error {
	if id == "" {
		return Refuse(InvalidParam, "session_id is missing")
	}
	if !sessionIDForm.MatchString(id) || id == "." || id == ".." {
		return Refuse(InvalidSessionID, "session_id must be 1 to 128 letters, digits, dots, underscores or hyphens")
	}
	return nil
}

// CheckMessageID refuses what cannot be a message id.
func CheckMessageID(id string) error {
	if !messageIDForm.MatchString(id) {
		return Refuse(UnknownMessage, "there is no message with this id")
	}
	return nil
}

// CheckText refuses a message that is empty or too long.
func CheckText(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return Refuse(EmptyMessage, "text is empty")
	case len(text) > MaxText:
		return Refuse(MessageTooLarge, "text has %d bytes, the limit is %d", len(text), MaxText).Advise("put the rest in a file and name it")
	case !utf8.ValidString(text):
		return Refuse(InvalidParam, "text is not UTF-8")
	}
	return nil
}

// CheckIdempotencyKey trims a key and refuses one that is blank or too long. No key is fine.
func CheckIdempotencyKey(key string, given bool) (string, error) {
	if !given {
		return "", nil
	}
	trimmed := strings.TrimSpace(key)
	if trimmed == "" || len(trimmed) > MaxIdempotencyKey || !utf8.ValidString(trimmed) {
		return "", Refuse(InvalidIdempotencyKey, "idempotency_key must have 1 to %d bytes", MaxIdempotencyKey)
	}
	return trimmed, nil
}

// Check trims the launch, fills the defaults and refuses what breaks a rule. It looks at no
// file: whether the directory exists is asked by who starts the agent.
func (l Launch) Check(defaultHarness string) (Launch, error) {
	for _, s := range []*string{&l.SessionID, &l.Harness, &l.ModelID, &l.ThinkingLevel, &l.DockerID, &l.ResumeSessionID, &l.Title} {
		*s = strings.TrimSpace(*s)
	}
	if l.SessionID != "" {
		if err := CheckSessionID(l.SessionID); err != nil {
			return l, err
		}
	}
	if l.ModelID == "" {
		return l, Refuse(InvalidParam, "model_id is missing").Advise("ask the user, or take the template's model")
	}
	if len(l.ModelID) > maxName || len(l.ThinkingLevel) > maxName || len(l.ResumeSessionID) > maxName || len(l.Title) > maxName {
		return l, Refuse(InvalidParam, "a name is longer than %d bytes", maxName)
	}
	if l.Harness == "" {
		l.Harness = defaultHarness
	}
	if !harnessForm.MatchString(l.Harness) {
		return l, Refuse(InvalidParam, "harness must be a short lower-case name")
	}
	if strings.TrimSpace(l.Cwd) == "" {
		return l, Refuse(InvalidParam, "cwd is missing").Advise("ask the user which directory the agent works in")
	}
	place, err := l.Place.check(l.Harness, InvalidParam)
	if err != nil {
		return l, err
	}
	l.Place = place
	if err := l.checkDocker(); err != nil {
		return l, err
	}
	for _, dir := range l.AdditionalDirectories {
		if !path.IsAbs(dir) {
			return l, Refuse(InvalidParam, "additional_directories must hold absolute paths")
		}
	}
	return l, checkMCPServers(l.MCPServers)
}

func (l *Launch) checkDocker() error {
	direct := l.Runtime == RuntimeDirect
	switch {
	case direct && l.DockerID != "":
		return onlyDocker("docker_id")
	case direct && l.HostNetwork:
		return onlyDocker("host_network")
	case direct:
		return nil
	case l.DockerID == "" && l.DockerImage == "":
		return Refuse(InvalidParam, "runtime docker needs docker_image or docker_id")
	case l.HostNetwork && len(l.Ports) > 0:
		return Refuse(InvalidParam, "host_network excludes ports: the container has the host's own")
	}
	if l.DockerID != "" {
		if !dockerIDForm.MatchString(l.DockerID) {
			return Refuse(InvalidParam, "docker_id must be 64 lower-case hex digits")
		}
		if l.DockerImage != "" || len(l.Mounts) > 0 || len(l.Ports) > 0 || l.HostNetwork || len(l.LoginDirs) > 0 {
			return Refuse(InvalidParam, "docker_id excludes docker_image, mounts, ports, host_network and login_dirs: the container exists")
		}
	}
	if l.ContainerPolicy == "" {
		l.ContainerPolicy = PolicyRemove
		if l.DockerID != "" {
			l.ContainerPolicy = PolicyKeep
		}
	}
	return nil
}

func onlyDocker(name string) *Error {
	return Refuse(InvalidParam, "%s needs runtime docker", name).Advise("leave it out, or set runtime to docker")
}

// check applies the rules that a session and a template share. code is the code of its
// refusals; a directory and a mode have their own for a session.
func (p Place) check(harness string, code fault.Code) (Place, error) {
	for _, s := range []*string{&p.Target, &p.RemoteHost, &p.Runtime, &p.PermissionMode, &p.Command, &p.Cwd, &p.DockerImage, &p.ContainerPolicy} {
		*s = strings.TrimSpace(*s)
	}
	if p.Target == "" {
		p.Target = TargetLocal
	}
	if p.Runtime == "" {
		p.Runtime = RuntimeDirect
	}
	if p.PermissionMode == "" {
		p.PermissionMode = ModeAuto
	}
	own := func(special fault.Code) fault.Code {
		if code == InvalidParam {
			return special
		}
		return code
	}
	switch {
	case !slices.Contains(PermissionModes, p.PermissionMode):
		return p, Refuse(own(InvalidMode), "permission_mode must be one of %s", strings.Join(PermissionModes, ", "))
	case p.Target != TargetLocal && p.Target != TargetRemote:
		return p, Refuse(code, "target must be local or remote")
	case p.Runtime != RuntimeDirect && p.Runtime != RuntimeDocker:
		return p, Refuse(code, "runtime must be direct or docker")
	case p.Target == TargetRemote && p.RemoteHost == "":
		return p, Refuse(code, "target remote needs remote_host")
	case p.Target == TargetLocal && p.RemoteHost != "":
		return p, Refuse(code, "remote_host needs target remote").Advise("leave it out")
	case p.RemoteHost != "" && !hostForm.MatchString(p.RemoteHost):
		return p, Refuse(code, "remote_host is not a host name")
	case len(p.Cwd) > maxName || strings.ContainsRune(p.Cwd, 0):
		return p, Refuse(own(InvalidCwd), "cwd is not a path")
	case p.Cwd != "" && !path.IsAbs(p.Cwd) && p.Runtime == RuntimeDocker:
		return p, Refuse(code, "cwd must be an absolute path in the container")
	case p.Cwd != "" && !path.IsAbs(p.Cwd):
		return p, Refuse(own(InvalidCwd), "cwd must be an absolute path")
	case len(p.Command) > maxName || strings.ContainsRune(p.Command, 0):
		return p, Refuse(code, "command is not a program")
	}
	if err := checkArgs(harness, p.Args, code); err != nil {
		return p, err
	}
	if err := checkEnv(p.Env, p.Target == TargetRemote, code); err != nil {
		return p, err
	}
	return p, p.checkContainer(code)
}

func (p Place) checkContainer(code fault.Code) error {
	if p.Runtime == RuntimeDirect {
		for name, given := range map[string]bool{"container_policy": p.ContainerPolicy != "", "docker_image": p.DockerImage != "",
			"mounts": len(p.Mounts) > 0, "ports": len(p.Ports) > 0, "login_dirs": len(p.LoginDirs) > 0} {
			if given {
				e := onlyDocker(name)
				e.Code = code
				return e
			}
		}
		return nil
	}
	if p.ContainerPolicy != "" && p.ContainerPolicy != PolicyRemove && p.ContainerPolicy != PolicyKeep {
		return Refuse(code, "container_policy must be remove or keep")
	}
	if img := p.DockerImage; img != "" && (len(img) > maxImage || strings.HasPrefix(img, "-") || strings.ContainsAny(img, ", \t\r\n\v\f\x00")) {
		return Refuse(code, "docker_image is not the name of an image")
	}
	if err := checkMounts(p.Mounts, code); err != nil {
		return err
	}
	for _, d := range p.LoginDirs {
		clean := path.Clean(d)
		if !(path.IsAbs(d) || strings.HasPrefix(d, "~/")) || clean == "/" || clean == "~" || path.Base(clean) == ".ssh" || strings.ContainsAny(d, ",\t\r\n\x00") {
			return Refuse(code, "login_dirs must be absolute or below ~/, and neither the root, the home nor .ssh")
		}
	}
	return checkPorts(p.Ports, code)
}

func checkMounts(mounts []Mount, code fault.Code) error {
	if len(mounts) > MaxMounts {
		return Refuse(code, "more than %d mounts", MaxMounts)
	}
	seen := map[string]bool{}
	for _, m := range mounts {
		for _, p := range []string{m.Source, m.Target} {
			if !path.IsAbs(p) || strings.ContainsAny(p, ",\t\r\n\x00") {
				return Refuse(code, "mounts need an absolute source and target without commas and line breaks")
			}
		}
		target := path.Clean(m.Target)
		if seen[target] {
			return Refuse(code, "two mounts have the same target")
		}
		seen[target] = true
	}
	return nil
}

func checkPorts(ports []Port, code fault.Code) error {
	if len(ports) > MaxPorts {
		return Refuse(code, "more than %d ports", MaxPorts)
	}
	for _, p := range ports {
		if p.HostPort < 1 || p.HostPort > 65535 || p.ContainerPort < 1 || p.ContainerPort > 65535 {
			return Refuse(code, "a port must be between 1 and 65535")
		}
		if p.Protocol != "" && p.Protocol != "tcp" && p.Protocol != "udp" {
			return Refuse(code, "the protocol of a port must be tcp or udp")
		}
		if p.HostIP != "" {
			if a, err := netip.ParseAddr(p.HostIP); err != nil || a.Zone() != "" {
				return Refuse(code, "host_ip must be a literal IPv4 or IPv6 address")
			}
		}
	}
	return nil
}

func checkEnv(env map[string]string, remote bool, code fault.Code) error {
	if len(env) > MaxEnv {
		return Refuse(code, "env has more than %d entries", MaxEnv)
	}
	for name, value := range env {
		switch {
		case !envNameForm.MatchString(name):
			return Refuse(code, "env holds a name that is not letters, digits and underscores")
		case len(value) > MaxEnvValue || strings.ContainsRune(value, 0):
			return Refuse(code, "the value of env %s is too long or holds a NUL", name)
		case remote && strings.ContainsRune(value, '\n'):
			return Refuse(code, "the value of env %s holds a line break, which cannot be sent to a remote host", name)
		}
	}
	return nil
}

// detaching are arguments that would take the agent out of the group that is ended with
// its session.
var detaching = []string{"--bg", "--background", "--tmux", "--tmux-classic", "--serve", "setsid"}

// managed are flags that the server itself sets for an adapter.
var managed = map[string][]string{
	"codebuddy": {"--acp", "--acp-transport", "--model", "--permission-mode", "--input-format", "--output-format", "--print", "-p"},
}

func checkArgs(harness string, args []string, code fault.Code) error {
	if len(args) > MaxArgs {
		return Refuse(code, "more than %d args", MaxArgs)
	}
	for _, a := range args {
		flag, _, _ := strings.Cut(a, "=")
		switch {
		case len(a) > MaxEnvValue || strings.ContainsRune(a, 0):
			return Refuse(code, "an element of args is too long or holds a NUL")
		case slices.Contains(detaching, flag):
			return Refuse(code, "args must not detach the agent from its session (%s)", flag)
		case slices.Contains(managed[harness], flag):
			return Refuse(code, "%s is set by the server", flag).Advise("use the parameter of create_session instead")
		}
	}
	return nil
}

func checkMCPServers(servers []MCPServer) error {
	seen := map[string]bool{}
	for _, s := range servers {
		switch {
		case strings.TrimSpace(s.Name) == "" || seen[s.Name]:
			return Refuse(InvalidParam, "each of mcp_servers needs a name of its own")
		case (s.Command == "") == (s.URL == ""):
			return Refuse(InvalidParam, "mcp_servers %q needs either command or url", s.Name)
		case s.Command != "" && s.Type != "" && s.Type != "stdio", s.URL != "" && s.Type != "http" && s.Type != "sse" && s.Type != "":
			return Refuse(InvalidParam, "mcp_servers %q has a type that does not fit", s.Name)
		}
		seen[s.Name] = true
		if err := checkEnv(s.Env, false, InvalidParam); err != nil {
			return err
		}
	}
	return nil
}
