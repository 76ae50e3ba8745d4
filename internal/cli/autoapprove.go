package cli

import (
	"io"
	"os"
	"syscall"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/policy"
)

// CodePolicy refuses an approval policy that cannot be trusted or read.
const CodePolicy fault.Code = "policy_refused"

// readPolicy reads an administrator's approval policy. Who could write it could approve
// commands, so it must belong to this user and nobody else may write it. Without a file the
// policy approves nothing.
func readPolicy(file string, deps Deps) (policy.Policy, error) {
	const op = "cli.policy"
	if file == "" {
		return policy.Policy{}, nil
	}
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a fifo must not hold the start
	if err != nil {
		return policy.Policy{}, fault.Wrap(err, CodePolicy, op, "the approval policy cannot be opened").WithHint("name a readable file with --auto-approve, or leave the flag out")
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return policy.Policy{}, fault.Wrap(err, CodePolicy, op, "the approval policy cannot be examined")
	}
	owner, ok := st.Sys().(*syscall.Stat_t)
	switch {
	case !st.Mode().IsRegular():
		return policy.Policy{}, fault.New(CodePolicy, op, "the approval policy is no regular file")
	case !ok || int(owner.Uid) != os.Geteuid():
		return policy.Policy{}, fault.New(CodePolicy, op, "the approval policy belongs to another user").WithHint("chown it to the user that runs the Bridge")
	case st.Mode().Perm()&0o022 != 0:
		return policy.Policy{}, fault.New(CodePolicy, op, "the approval policy can be written by others").WithHint("chmod go-w it")
	case st.Size() > policy.MaxBytes:
		return policy.Policy{}, fault.New(CodePolicy, op, "the approval policy is longer than %d bytes", policy.MaxBytes)
	}
	data, err := io.ReadAll(io.LimitReader(f, policy.MaxBytes+1))
	if err != nil {
		return policy.Policy{}, fault.Wrap(err, CodePolicy, op, "the approval policy cannot be read")
	}
	home, _ := deps.LookupEnv(envHome)
	return policy.Parse(data, home)
}
