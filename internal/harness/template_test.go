package harness_test

import (
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness"
)

func docker(t harness.Template) harness.Template {
	t.Name, t.Harness, t.Runtime, t.DockerImage = "t", "codex", harness.RuntimeDocker, "img"
	return t
}

// Case 57.
func TestProxyModeReplacesEveryProxyVariableAndNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		env := rapid.MapOf(rapid.SampledFrom([]string{"HTTP_PROXY", "Https_Proxy", "NO_PROXY", "all_proxy", "http_proxy", "FOO", "PATH_X", "PROXY"}), rapid.String()).Draw(t, "env")
		for name, v := range env {
			env[name] = strings.ReplaceAll(v, "\x00", "")
		}
		before := maps.Clone(env)
		in := harness.Template{NetworkMode: harness.NetworkProxy, ProxyPort: 8118}
		in.Env = env
		got, err := docker(in).Check()
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(env, before) {
			t.Fatal("the caller's map was changed")
		}
		want := map[string]string{"http_proxy": "http://host.docker.internal:8118", "https_proxy": "http://host.docker.internal:8118",
			"no_proxy": "localhost,127.0.0.1,::1,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,.local,.internal"}
		for _, keep := range []string{"FOO", "PATH_X", "PROXY"} {
			if v, ok := before[keep]; ok {
				want[keep] = v
			}
		}
		if !maps.Equal(got.Env, want) {
			t.Fatalf("%v, want %v", got.Env, want)
		}
	})
}

func TestATemplateThatCannotWorkIsRefused(t *testing.T) {
	blank := " "
	for name, bad := range map[string]harness.Template{
		"a port without proxy":  docker(harness.Template{NetworkMode: harness.NetworkNone, ProxyPort: 1}),
		"proxy without a port":  docker(harness.Template{NetworkMode: harness.NetworkProxy}),
		"a port out of range":   docker(harness.Template{NetworkMode: harness.NetworkProxy, ProxyPort: 65536}),
		"an unknown mode":       docker(harness.Template{NetworkMode: "bridge"}),
		"a blank model":         docker(harness.Template{Model: &blank}),
		"host and ports":        docker(harness.Template{NetworkMode: harness.NetworkHost, Place: harness.Place{Ports: []harness.Port{{HostPort: 1, ContainerPort: 1}}}}),
		"a network without it":  {Name: "t", Harness: "codex", NetworkMode: harness.NetworkHost},
		"no name":               {Harness: "codex"},
		"a path as name":        {Name: "../x", Harness: "codex"},
		"no harness":            {Name: "t"},
		"a host without remote": {Name: "t", Harness: "codex", Place: harness.Place{RemoteHost: "h"}},
		"an image without it":   {Name: "t", Harness: "codex", Place: harness.Place{DockerImage: "i"}},
		"a mode":                {Name: "t", Harness: "codex", Place: harness.Place{PermissionMode: "root"}},
	} {
		if _, err := bad.Check(); !fault.Is(err, harness.InvalidTemplate) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Case 58.
func TestASearchFindsByEveryPartOfItAtOnce(t *testing.T) {
	all := []harness.Template{{Name: "b", Harness: "codex"}, {Name: "a", Harness: "claude", Description: "like COdex"}, {Name: "c", Harness: "gemini"}}
	for _, c := range []struct {
		s    harness.Search
		want string
	}{{harness.Search{}, "a b c"}, {harness.Search{Query: "COD"}, "a b"}, {harness.Search{Query: "cod", Harness: "codex"}, "b"}, {harness.Search{Name: "B"}, ""}} {
		found, n := c.s.Find(all)
		var names []string
		for _, f := range found {
			names = append(names, f.Name)
		}
		if got := strings.Join(names, " "); got != c.want || n != len(found) {
			t.Errorf("%+v: %q", c.s, got)
		}
	}
}

// Part 1.3: the refusals of create_session, each before anything is started.
func TestALaunchThatBreaksARuleIsRefused(t *testing.T) {
	good := func(change func(*harness.Launch)) harness.Launch {
		l := harness.Launch{ModelID: "m", Place: harness.Place{Cwd: "/w"}}
		change(&l)
		return l
	}
	image := func(l *harness.Launch) { l.Runtime, l.DockerImage = harness.RuntimeDocker, "img" }
	id := strings.Repeat("a", 64)
	for name, c := range map[string]struct {
		change func(*harness.Launch)
		code   fault.Code
	}{
		"no model":              {func(l *harness.Launch) { l.ModelID = " " }, harness.InvalidParam},
		"no cwd":                {func(l *harness.Launch) { l.Cwd = " " }, harness.InvalidParam},
		"a relative cwd":        {func(l *harness.Launch) { l.Cwd = "w" }, harness.InvalidCwd},
		"docker, relative cwd":  {func(l *harness.Launch) { image(l); l.Cwd = "w" }, harness.InvalidParam},
		"an id that is a path":  {func(l *harness.Launch) { l.SessionID = "a/b" }, harness.InvalidSessionID},
		"a mode":                {func(l *harness.Launch) { l.PermissionMode = "root" }, harness.InvalidMode},
		"remote without host":   {func(l *harness.Launch) { l.Target = harness.TargetRemote }, harness.InvalidParam},
		"an option as host":     {func(l *harness.Launch) { l.Target, l.RemoteHost = harness.TargetRemote, "-oProxyCommand=x" }, harness.InvalidParam},
		"direct with an image":  {func(l *harness.Launch) { l.DockerImage = "i" }, harness.InvalidParam},
		"direct, host network":  {func(l *harness.Launch) { l.HostNetwork = true }, harness.InvalidParam},
		"docker without either": {func(l *harness.Launch) { l.Runtime = harness.RuntimeDocker }, harness.InvalidParam},
		"an image as option":    {func(l *harness.Launch) { image(l); l.DockerImage = "--privileged" }, harness.InvalidParam},
		"a short container id":  {func(l *harness.Launch) { l.Runtime, l.DockerID = harness.RuntimeDocker, "abc" }, harness.InvalidParam},
		"both":                  {func(l *harness.Launch) { image(l); l.DockerID = id }, harness.InvalidParam},
		"a comma in a mount":    {func(l *harness.Launch) { image(l); l.Mounts = []harness.Mount{{Source: "/a,b", Target: "/c"}} }, harness.InvalidParam},
		"a target twice": {func(l *harness.Launch) {
			image(l)
			l.Mounts = []harness.Mount{{Source: "/a", Target: "/c"}, {Source: "/b", Target: "/c/"}}
		}, harness.InvalidParam},
		"port 0": {func(l *harness.Launch) { image(l); l.Ports = []harness.Port{{HostPort: 0, ContainerPort: 1}} }, harness.InvalidParam},
		"a name as host_ip": {func(l *harness.Launch) {
			image(l)
			l.Ports = []harness.Port{{HostPort: 1, ContainerPort: 1, HostIP: "localhost"}}
		}, harness.InvalidParam},
		"the home of ssh":      {func(l *harness.Launch) { image(l); l.LoginDirs = []string{"~/.ssh"} }, harness.InvalidParam},
		"a variable's name":    {func(l *harness.Launch) { l.Env = map[string]string{"A-B": "x"} }, harness.InvalidParam},
		"a NUL":                {func(l *harness.Launch) { l.Env = map[string]string{"A": "\x00"} }, harness.InvalidParam},
		"a detaching argument": {func(l *harness.Launch) { l.Args = []string{"--tmux=x"} }, harness.InvalidParam},
		"a server twice": {func(l *harness.Launch) {
			l.MCPServers = []harness.MCPServer{{Name: "a", Command: "x"}, {Name: "a", URL: "http://x"}}
		}, harness.InvalidParam},
	} {
		if _, err := good(c.change).Check("codex"); !fault.Is(err, c.code) {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	l, err := good(func(l *harness.Launch) { l.Runtime, l.DockerID = harness.RuntimeDocker, id }).Check("codex")
	if err != nil || l.Harness != "codex" || l.PermissionMode != harness.ModeAuto || l.Target != harness.TargetLocal || l.ContainerPolicy != harness.PolicyKeep {
		t.Errorf("%v %+v", err, l)
	}
}
