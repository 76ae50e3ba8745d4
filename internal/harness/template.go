package harness

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/agent-knock-knock/akk/internal/pattern"
)

// The network modes of a template.
const (
	NetworkNone  = "none"
	NetworkHost  = "host"
	NetworkProxy = "proxy"
)

// noProxy are the destinations that proxy mode reaches directly.
const noProxy = "localhost,127.0.0.1,::1,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,.local,.internal"

// maxFound bounds one answer of a search.
const maxFound = 200

// Template is stored advice on how to start a session. It is information only: a session
// never refers to one, and its instructions are for the calling model, not for us.
type Template struct {
	Name                string  `json:"name"`
	Harness             string  `json:"harness"`
	Description         string  `json:"description,omitempty"`
	Model               *string `json:"model"`
	Thinking            *string `json:"thinking"`
	BeforeStart         *string `json:"before_start"`
	AfterStart          *string `json:"after_start"`
	SpecialInstructions *string `json:"special_instructions"`
	Place
	NetworkMode string     `json:"network_mode,omitempty"`
	ProxyPort   int        `json:"proxy_port,omitempty"`
	CreatedAt   *time.Time `json:"created_at,omitempty"`
}

// TemplateKeys are the fields that may be registered. host_network, the old form of
// network_mode, is not one of them.
var TemplateKeys = []string{"name", "harness", "description", "model", "thinking", "before_start", "after_start", "special_instructions", "runtime", "target",
	"remote_host", "permission_mode", "command", "args", "env", "cwd", "docker_image", "container_policy", "login_dirs", "mounts", "ports", "network_mode", "proxy_port"}

var templateName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckTemplateName refuses what cannot be the name of a template.
func CheckTemplateName(name string) error {
	if !templateName.MatchString(name) {
		return Refuse(InvalidTemplate, "name must be 1 to 64 letters, digits, dots, underscores or hyphens, and begin with a letter or digit")
	}
	return nil
}

// Check trims the template, refuses what breaks a rule and computes what network_mode
// means for env. It changes no map of its argument.
func (t Template) Check() (Template, error) {
	for _, s := range []*string{&t.Name, &t.Harness, &t.NetworkMode} {
		*s = strings.TrimSpace(*s)
	}
	if err := CheckTemplateName(t.Name); err != nil {
		return t, err
	}
	if t.Harness == "" || !harnessForm.MatchString(t.Harness) {
		return t, Refuse(InvalidTemplate, "harness must be a short lower-case name")
	}
	if len(t.Description) > maxDescription {
		return t, Refuse(InvalidTemplate, "description has more than %d bytes", maxDescription)
	}
	for _, f := range []struct {
		name string
		text *string
		word bool
	}{{"model", t.Model, true}, {"thinking", t.Thinking, true}, {"before_start", t.BeforeStart, false}, {"after_start", t.AfterStart, false},
		{"special_instructions", t.SpecialInstructions, false}} {
		switch {
		case f.text == nil:
		case len(*f.text) > maxInstruction:
			return t, Refuse(InvalidTemplate, "%s has more than %d bytes", f.name, maxInstruction)
		case f.word && strings.TrimSpace(*f.text) == "":
			return t, Refuse(InvalidTemplate, "%s must not be blank when it is set", f.name).Advise("set it to null or leave it out")
		}
	}
	place, err := t.Place.check(t.Harness, InvalidTemplate)
	if err != nil {
		return t, err
	}
	t.Place = place
	return t.network()
}

func (t Template) network() (Template, error) {
	if t.NetworkMode == "" {
		t.NetworkMode = NetworkNone
	}
	docker := t.Runtime == RuntimeDocker
	switch {
	case t.NetworkMode != NetworkNone && t.NetworkMode != NetworkHost && t.NetworkMode != NetworkProxy:
		return t, Refuse(InvalidTemplate, "network_mode must be none, host or proxy")
	case t.NetworkMode != NetworkProxy && t.ProxyPort != 0:
		return t, Refuse(InvalidTemplate, "proxy_port needs network_mode proxy")
	case t.NetworkMode == NetworkProxy && (t.ProxyPort < 1 || t.ProxyPort > 65535):
		return t, Refuse(InvalidTemplate, "network_mode proxy needs proxy_port between 1 and 65535")
	case t.NetworkMode != NetworkNone && !docker:
		return t, Refuse(InvalidTemplate, "network_mode %s needs runtime docker", t.NetworkMode)
	case t.NetworkMode == NetworkHost && len(t.Ports) > 0:
		return t, Refuse(InvalidTemplate, "network_mode host excludes ports: the container has the host's own")
	}
	if t.NetworkMode == NetworkProxy {
		t.Env = proxyEnv(t.Env, t.ProxyPort)
	}
	return t, nil
}

// proxyEnv replaces every spelling of a proxy variable and keeps all others.
func proxyEnv(env map[string]string, port int) map[string]string {
	out := make(map[string]string, len(env)+3)
	for name, value := range env {
		if !slices.Contains([]string{"http_proxy", "https_proxy", "no_proxy", "all_proxy"}, strings.ToLower(name)) {
			out[name] = value
		}
	}
	url := "http://host.docker.internal:" + itoa(port)
	out["http_proxy"], out["https_proxy"], out["no_proxy"] = url, url, noProxy
	return out
}

// Search is a filter on templates; its parts must all hold. The zero value finds all.
type Search struct {
	Name    string `json:"name,omitempty"`
	Query   string `json:"query,omitempty"`
	Harness string `json:"harness,omitempty"`
}

// Find returns the templates that fit, by name, at most 200 of them, and how many fit.
func (s Search) Find(all []Template) (found []Template, total int) {
	query := strings.ToLower(strings.TrimSpace(s.Query))
	found = []Template{}
	for _, t := range all {
		text := strings.ToLower(t.Name + "\n" + t.Harness + "\n" + t.Description)
		if (s.Name == "" || t.Name == s.Name) && (s.Harness == "" || t.Harness == s.Harness) && strings.Contains(text, query) {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(a, b Template) int { return cmp.Compare(a.Name, b.Name) })
	total = len(found)
	return found[:min(total, maxFound)], total
}
