package codex

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/codex/known"
	"github.com/agent-knock-knock/akk/internal/agent/codex/rollout"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/redact"
)

// Bounds of a listing. Other directories' threads are skipped after their head was read,
// so newer ones elsewhere never hide ours (case E08).
const (
	maxRollouts   = 50_000    // names that are looked at
	headRead      = 4 << 10   // bytes at a time until the directory is known
	maxHead       = 256 << 10 // bytes of a head until its directory is given up
	maxPreview    = 512 << 10 // bytes until the first prompt is given up
	maxIndexBytes = 1 << 20   // bytes from the end of the session index
)

// rolloutFile is one rollout that may be listed.
type rolloutFile struct {
	id       string
	path     string
	info     fs.FileInfo
	archived bool
	cwd      string
	preview  string
}

// rolloutsIn returns the rollouts of persons' threads in dir, newest first.
func rolloutsIn(ctx context.Context, home, dir string, limit int) (out []rolloutFile, cut bool) {
	all, cut := rolloutNames(ctx, home)
	slices.SortFunc(all, func(a, b rolloutFile) int {
		if c := b.info.ModTime().Compare(a.info.ModTime()); c != 0 {
			return c
		}
		return cmp.Compare(b.id, a.id)
	})
	real := map[string]string{}
	seen := map[string]bool{}
	for i := range all {
		if ctx.Err() != nil {
			return out, true
		}
		r := &all[i]
		if seen[r.id] || !r.read(dir, real) {
			continue
		}
		if len(out) == limit {
			return out, true
		}
		seen[r.id] = true
		out = append(out, *r)
	}
	return out, cut
}

// rolloutNames finds all rollouts of a home: in the day folders and in the archive.
func rolloutNames(ctx context.Context, home string) (out []rolloutFile, cut bool) {
	for _, root := range []string{known.SessionsDir, archivedDir} {
		base := filepath.Join(home, root)
		_ = filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil // a folder that went away, or that is not ours to read
			case ctx.Err() != nil || len(out) >= maxRollouts:
				cut = true
				return fs.SkipAll
			case !d.Type().IsRegular():
				return nil
			}
			m := known.RolloutName.FindStringSubmatch(d.Name())
			if m == nil {
				return nil
			}
			if info, err := d.Info(); err == nil {
				out = append(out, rolloutFile{id: m[1], path: path, info: info, archived: root == archivedDir})
			}
			return nil
		})
	}
	return out, cut
}

// read reads the head of the file. It is false for a thread of another directory, for a
// helper's, and for a file whose first line does not name the thread of its name. real
// caches resolved directories.
func (r *rolloutFile) read(dir string, real map[string]string) bool {
	f, err := os.Open(r.path)
	if err != nil {
		return false
	}
	defer f.Close()
	h := headOf(f)
	if h.id != r.id || h.cwd == "" {
		return false
	}
	if _, ok := real[h.cwd]; !ok {
		real[h.cwd] = realDir(h.cwd)
	}
	if real[h.cwd] != dir || rollout.Helper(h.source, h.threadSource) {
		return false
	}
	r.cwd = h.cwd
	if _, err := f.Seek(0, io.SeekStart); err == nil {
		r.preview = firstPrompt(f)
	}
	return true
}

// head is what the first line of a rollout says of its thread.
type head struct {
	id, cwd              string
	source, threadSource json.RawMessage
}

// headOf reads the first line only as far as it must: it is long, and what matters stands
// at its beginning (the order is not relied on).
func headOf(f io.Reader) head {
	var h head
	dec := json.NewDecoder(bufio.NewReaderSize(io.LimitReader(f, maxHead), headRead))
	members(dec, func(key string) bool {
		if key != "payload" {
			return skip(dec)
		}
		return members(dec, func(key string) bool {
			ok := true
			switch key {
			case "id":
				ok = dec.Decode(&h.id) == nil
			case "cwd":
				ok = dec.Decode(&h.cwd) == nil
			case "source":
				ok = dec.Decode(&h.source) == nil
			case "thread_source":
				ok = dec.Decode(&h.threadSource) == nil
			default:
				return skip(dec)
			}
			return ok && (h.id == "" || h.cwd == "" || h.source == nil || h.threadSource == nil)
		})
	})
	return h
}

// members walks the members of the object that begins at dec; each must consume the
// value. It ends early, and is false, when each says so or the text is broken.
func members(dec *json.Decoder, each func(key string) bool) bool {
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return false
	}
	for dec.More() {
		t, err := dec.Token()
		key, ok := t.(string)
		if err != nil || !ok || !each(key) {
			return false
		}
	}
	_, err := dec.Token()
	return err == nil
}

func skip(dec *json.Decoder) bool {
	var raw json.RawMessage
	return dec.Decode(&raw) == nil
}

// firstPrompt returns the first prompt of a rollout, "" when it is not near its beginning.
func firstPrompt(f io.Reader) string {
	lines := bufio.NewScanner(io.LimitReader(f, maxPreview))
	lines.Buffer(make([]byte, 0, 64<<10), maxPreview)
	for lines.Scan() {
		line := lines.Bytes()
		if !bytes.Contains(line, []byte(known.ItemUser)) && !bytes.Contains(line, []byte(known.EvUser)) {
			continue
		}
		if rec, err := rollout.Parse(line); err == nil && rec.Kind == rollout.User {
			return rec.Text
		}
	}
	return ""
}

// thread is the file as a row.
func (r *rolloutFile) thread(names map[string]string) agent.Thread {
	return agent.Thread{
		ID: r.id, Workspace: r.cwd, Archived: r.archived, UpdatedAt: r.info.ModTime().UTC().Truncate(time.Millisecond),
		Title: redact.Line(names[r.id], agent.MaxThreadTitle), Preview: redact.Line(r.preview, agent.MaxThreadPreview),
		Token: fileToken(r.path, r.info),
	}
}

// fileToken changes when the file grows, is replaced or moves.
func fileToken(path string, info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return ids.TextHash(fmt.Sprintf("%s|%d|%d|%d|%d", path, st.Dev, st.Ino, info.Size(), info.ModTime().UnixNano()))
}

// threadNames reads the names of threads from the end of the session index.
func threadNames(path string) map[string]string {
	names := map[string]string{}
	f, err := os.Open(path)
	if err != nil {
		return names
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return names
	}
	from := max(0, st.Size()-maxIndexBytes)
	buf, err := io.ReadAll(io.NewSectionReader(f, from, maxIndexBytes))
	if err != nil {
		return names
	}
	for line := range bytes.Lines(buf) {
		var e struct {
			ID   string `json:"id"`
			Name string `json:"thread_name"`
		}
		if json.Unmarshal(line, &e) == nil && e.ID != "" { // the first line may be a cut one
			names[e.ID] = e.Name
		}
	}
	return names
}
