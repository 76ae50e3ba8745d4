package launch_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agent-knock-knock/akk/internal/harness/launch"
)

// Who wants the lines of the error output gets those that are whole, an address with all of
// it, but never a value that the program was given as a secret.
func TestEachLineOfTheErrorOutputIsTold(t *testing.T) {
	var mu sync.Mutex
	var got []string
	l := newLocal(t, launch.Options{EOFGrace: patience})
	p, err := l.Start(t.Context(), launch.Spec{Dir: "/", Env: map[string]string{"MY_TOKEN": "given-as-secret"},
		Argv: []string{"/bin/sh", "-c", `echo "open https://x.test/?token=abcdef0123456789" >&2; head -c 5000 /dev/zero | tr '\0' x >&2; echo >&2; echo "my $MY_TOKEN" >&2; printf 'no end' >&2`},
		EachError: func(line string) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, line)
		}})
	if err != nil {
		t.Fatal(err)
	}
	p.Close(t.Context())
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(got, []string{"open https://x.test/?token=abcdef0123456789", "my [redacted]"}) {
		t.Errorf("%q", got)
	}
	if tail := strings.Join(p.StderrTail(), "\n"); strings.Contains(tail, "abcdef0123456789") || !strings.Contains(tail, "no end") {
		t.Errorf("%q", tail)
	}
}
