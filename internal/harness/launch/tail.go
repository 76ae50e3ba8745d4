package launch

import (
	"bytes"
	"strings"
	"sync"

	"github.com/agent-knock-knock/akk/internal/redact"
)

// maxTailLine is what is kept of one line; the rest of it is dropped.
const maxTailLine = 2 << 10

// tail keeps the last lines of a stream, redacted line by line. It holds at most
// max lines and one more.
type tail struct {
	mu      sync.Mutex
	max     int
	kept    []string
	current []byte
	long    bool
	secrets *strings.Replacer // masks the values that the program was given as secret
	each    func(line string) // gets each line that is not cut; nil for nobody
}

func newTail(max int, env []string) *tail { return &tail{max: max, secrets: secretsOf(env)} }

// shortSecret is the length from which a value is looked for: a shorter one is part of too
// many words.
const shortSecret = 6

// secretsOf masks the values of the variables whose names say that they are secret.
func secretsOf(env []string) *strings.Replacer {
	var pairs []string
	for _, entry := range env {
		if name, value, _ := strings.Cut(entry, "="); len(value) >= shortSecret && redact.SecretName(name) {
			pairs = append(pairs, value, redact.Mask)
		}
	}
	return strings.NewReplacer(pairs...)
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	for len(p) > 0 {
		line, rest, whole := bytes.Cut(p, []byte{'\n'})
		room := maxTailLine - len(t.current)
		t.long = t.long || len(line) > room
		t.current = append(t.current, line[:min(len(line), room)]...)
		if whole {
			t.flush()
		}
		p = rest
	}
	return n, nil
}

func (t *tail) flush() {
	if t.each != nil && !t.long { // half a line may hold half an address
		t.each(t.secrets.Replace(string(t.current)))
	}
	t.kept = append(t.kept, t.text())
	if over := len(t.kept) - t.max; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	t.current, t.long = t.current[:0], false
}

func (t *tail) text() string {
	text := redact.StrictLine(t.secrets.Replace(string(t.current)), maxTailLine)
	if t.long {
		text += " …"
	}
	return text
}

func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := append([]string(nil), t.kept...)
	if len(t.current) > 0 {
		lines = append(lines, t.text())
	}
	return lines
}
