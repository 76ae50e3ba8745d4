package profile_test

import (
	"fmt"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/profile"
)

func ExampleParse() {
	p, err := profile.Parse(profile.Starter())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.ID, p.Revision, p.Scope(), p.StandaloneCompatible())
	fmt.Println(p.CheckHost("my-agent", "1.8.0"))
	fmt.Println(fault.CodeOf(p.CheckHost("my-agent", "2.0.0")))

	_, err = profile.Parse([]byte(`{"schema":"agent-knock-knock/host-profile","version":2}`))
	_, msg, hint := fault.Public(err)
	fmt.Printf("%s\n%s\n", msg, hint)
	// Output:
	// my-agent-command 2026.08.25-1 startup_v1 true
	// <nil>
	// host_incompatible
	// $.version: must be the number 1; no other version is supported
	// compare the Profile with `agent-knock-knock host-profile example`
}
