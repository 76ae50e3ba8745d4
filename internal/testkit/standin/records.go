package standin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// raw is encoded JSON.
type raw = json.RawMessage

// obj encodes key, value, key, value, ... in this order: the agents write their records in
// a fixed order, and readers that cut lines short see the same beginnings.
func obj(kv ...any) raw {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := 0; i+1 < len(kv); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(encode(kv[i]))
		b.WriteByte(':')
		b.Write(encode(kv[i+1]))
	}
	b.WriteByte('}')
	return b.Bytes()
}

func list(items ...any) []any {
	if items == nil {
		return []any{}
	}
	return items
}

// encode is JSON without HTML escapes, as the agents write it.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("standin: %v", err)) // only values of this package come here
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// appendBytes adds to a file that is not kept open.
func appendBytes(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(b)
	return err
}

// firstBytes is how much of a late record comes before its rest.
const firstBytes = 60

// recordLog is the agent's log of a conversation. The bad behaviours that concern the
// end of a turn are here: late, split, broken and missing records.
type recordLog struct {
	a       *app
	write   func([]byte) error
	held    []byte // lines that wait for their time
	holding bool
	dropped bool
}

func (l *recordLog) line(line []byte) {
	line = append(line, '\n')
	switch {
	case l.dropped:
	case l.holding:
		l.held = append(l.held, line...)
	default:
		l.put(line)
	}
}

func (l *recordLog) put(b []byte) {
	if err := l.write(b); err != nil {
		l.a.j.event("error", err.Error())
	}
}

// final says that the records of the final answer come next.
func (l *recordLog) final() {
	m := l.a.cfg.Mode
	if m.BrokenRecord {
		l.line([]byte(`{"timestamp":"broken`))
	}
	switch {
	case m.NeverFlush:
		l.dropped = true
	case m.LateFlush > 0:
		l.holding = true
		l.a.later(m.LateFlush, func() {
			n := min(firstBytes, len(l.held))
			l.put(l.held[:n])
			l.held = l.held[n:]
		})
		l.a.later(m.LateFlush+m.LateRest, func() {
			l.put(l.held)
			l.held, l.holding = nil, false
		})
	}
}

// next says that another turn begins: what was late comes now.
func (l *recordLog) next() {
	if l.holding {
		l.put(l.held)
		l.held, l.holding = nil, false
	}
	l.dropped = false
}
