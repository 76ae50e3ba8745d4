package harnesstools

import (
	"context"
	"encoding/json"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

// template has the fields that can be registered. Their rules are the server's; here they
// are only known by name.
type template struct {
	Name                json.RawMessage `json:"name,omitempty"`
	Harness             json.RawMessage `json:"harness,omitempty"`
	Description         json.RawMessage `json:"description,omitempty"`
	Model               json.RawMessage `json:"model,omitempty"`
	Thinking            json.RawMessage `json:"thinking,omitempty"`
	BeforeStart         json.RawMessage `json:"before_start,omitempty"`
	AfterStart          json.RawMessage `json:"after_start,omitempty"`
	SpecialInstructions json.RawMessage `json:"special_instructions,omitempty"`
	Runtime             json.RawMessage `json:"runtime,omitempty"`
	Target              json.RawMessage `json:"target,omitempty"`
	RemoteHost          json.RawMessage `json:"remote_host,omitempty"`
	PermissionMode      json.RawMessage `json:"permission_mode,omitempty"`
	Command             json.RawMessage `json:"command,omitempty"`
	Args                json.RawMessage `json:"args,omitempty"`
	Env                 json.RawMessage `json:"env,omitempty"`
	Cwd                 json.RawMessage `json:"cwd,omitempty"`
	DockerImage         json.RawMessage `json:"docker_image,omitempty"`
	ContainerPolicy     json.RawMessage `json:"container_policy,omitempty"`
	LoginDirs           json.RawMessage `json:"login_dirs,omitempty"`
	Mounts              json.RawMessage `json:"mounts,omitempty"`
	Ports               json.RawMessage `json:"ports,omitempty"`
	NetworkMode         json.RawMessage `json:"network_mode,omitempty"`
	ProxyPort           json.RawMessage `json:"proxy_port,omitempty"`
}

type createTemplateInput struct {
	Template template `json:"template"`
}

func createTemplate(r *toolkit.Registry, s *service) {
	toolkit.Register(r, spec(toolkit.Spec{
		Name:  "create_template",
		Title: "Store a launch template",
		Description: "Store advice on how to start an agent, under a unique name. Collect the values from the user and have them confirmed first. " +
			"Starts nothing and runs no instruction. A name that exists is refused (template_exists) and never overwritten. " +
			"For Docker, network_mode proxy needs proxy_port and computes the proxy variables; check that the port can be reached from the container.",
		Effect: toolkit.Mutating,
	}), func(ctx context.Context, _ toolkit.Call, in createTemplateInput) (any, error) {
		if in.Template.Name == nil || in.Template.Harness == nil {
			return nil, harness.Refuse(harness.InvalidParam, "template needs name and harness")
		}
		return s.gate.call(ctx, "register_template", in, 0)
	})
}
