package claude

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
	"github.com/agent-knock-knock/akk/internal/agent/claude/transcript"
	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// The keys of Native.Extra and Anchor.Extra.
const (
	extraConfigDir  = "config_dir"
	extraStatus     = "status_path"
	extraTranscript = "transcript"    // where the transcript is, or will be
	extraProjectDir = "project_dir"   // where transcripts of the directory are
	extraCanonical  = "request_canon" // hash of the request in canonical form
	extraVersion    = "version"
	extraEvents     = "hook_events" // where its hooks write, when it has hooks of ours
)

// Identify reads the status file of ref's process and finds its transcript. Without a
// status file the thread is unavailable and the Native still names the project directory,
// so that a Turn can be followed by its exact text. The error is only for a process that
// is gone or whose environment cannot be read.
func (a *Adapter) Identify(ctx context.Context, ref agent.Ref) (agent.Native, error) {
	const op = "claude.identify"
	if err := ctx.Err(); err != nil {
		return agent.Native{}, fault.Wrap(err, fault.Timeout, op, "the time for the agent's files is over")
	}
	dir, err := a.configDir(ref.Process.PID)
	if err != nil {
		return agent.Native{}, err
	}
	n := agent.Native{
		Mode: "interactive", Channel: turn.ChannelKeyboard, Thread: agent.ThreadUnavailable, Activity: agent.ActivityUnknown,
		Extra: map[string]string{
			extraConfigDir:  dir,
			extraStatus:     filepath.Join(dir, known.SessionsDir, fmt.Sprintf("%d.json", ref.Process.PID)),
			extraProjectDir: projectDir(dir, ref.Cwd),
		},
	}
	if events := a.hookEvents(ref.Process.PID); events != "" {
		n.Extra[extraEvents] = events
	}
	s, err := a.readWholeStatus(ctx, n.Extra[extraStatus])
	if err != nil {
		n.Version = a.versionOf(ref.Process.PID)
		_, msg, _ := fault.Public(err)
		n.Reason = msg + " (a start-up dialog is open, or this version has none)"
		return n, nil
	}
	if why := s.foreign(ref.Process); why != "" {
		n.Version, n.Reason = a.versionOf(ref.Process.PID), why
		return n, nil
	}
	if n.Version = s.Version; n.Version == "" {
		n.Version = a.versionOf(ref.Process.PID)
	}
	n.Activity = s.activity()
	if !sessionIDShape.MatchString(s.SessionID) {
		n.Reason = "the status file holds no session id"
		return n, nil
	}
	return resolveThread(n, s, ref), nil
}

// readWholeStatus reads the status file again, a few times, while it is being rewritten.
func (a *Adapter) readWholeStatus(ctx context.Context, path string) (s status, err error) {
	for range known.StatusReads {
		if s, err = readStatus(path); err == nil || !fault.Is(err, fault.Unavailable) {
			return s, err
		}
		c, stop := a.clock.NewTimer(known.StatusRetry)
		select {
		case <-ctx.Done():
			stop()
			return s, err
		case <-c:
		}
	}
	return s, err
}

// resolveThread fills the thread and its transcript. A virgin session has an id and no
// file yet.
func resolveThread(n agent.Native, s status, ref agent.Ref) agent.Native {
	n.Thread, n.ThreadID = agent.ThreadResolved, s.SessionID
	cwd := s.Cwd
	if cwd == "" {
		cwd = ref.Cwd
	}
	dir := n.Extra[extraConfigDir]
	n.Extra[extraProjectDir] = projectDir(dir, cwd)
	path, found := findTranscript(dir, cwd, s.SessionID)
	n.Extra[extraTranscript] = path
	if found {
		n.LogPath = path
	}
	switch {
	case s.activity() == agent.ActivityUnknown:
		n.Reason = fmt.Sprintf("the status file says %q, which is not known", s.Status)
	case s.Status == known.StatusShell:
		n.Reason = "a background shell is running"
	case s.WaitingFor != "":
		n.Reason = "waiting for: " + transcript.OneLine(s.WaitingFor)
	}
	return n
}

// configDir returns the agent's configuration directory as its own environment names it.
func (a *Adapter) configDir(pid int) (string, error) {
	const op = "claude.config_dir"
	dir, ok, err := a.env(pid, known.ConfigDirEnv)
	if err != nil {
		return "", fault.Wrap(err, fault.Unavailable, op, "the environment of process %d cannot be read", pid).
			WithHint("run the Bridge as the user who runs Claude Code")
	}
	if ok && filepath.IsAbs(dir) {
		return filepath.Clean(norm.NFC.String(dir)), nil
	}
	if ok && dir != "" {
		return "", fault.New(fault.Unavailable, op, "%s of process %d is not an absolute path", known.ConfigDirEnv, pid).
			WithHint("set %s to an absolute path", known.ConfigDirEnv)
	}
	home, ok, err := a.env(pid, "HOME")
	if err != nil {
		return "", fault.Wrap(err, fault.Unavailable, op, "the environment of process %d cannot be read", pid)
	}
	if !ok || !filepath.IsAbs(home) {
		return "", fault.New(fault.Unavailable, op, "process %d has no absolute HOME", pid).
			WithHint("start Claude Code with HOME or %s set", known.ConfigDirEnv)
	}
	return filepath.Join(home, known.ConfigDirName), nil
}

// versionOf reads the version from the executable's path, "" when it does not say.
func (a *Adapter) versionOf(pid int) string {
	p, err := a.process(pid)
	if err != nil {
		return ""
	}
	if m := known.NativeInstall.FindStringSubmatch(p.Exe); m != nil {
		return m[1]
	}
	return ""
}

func projectDir(configDir, cwd string) string {
	return filepath.Join(configDir, known.ProjectsDir, projectSlug(cwd))
}

// findTranscript returns the transcript of a session, and whether it exists. A session
// keeps its file when its directory changes, so another project's directory is searched
// for the exact id before the expected path is returned as absent.
func findTranscript(configDir, cwd, sessionID string) (string, bool) {
	name := sessionID + known.TranscriptExt
	expected := filepath.Join(projectDir(configDir, cwd), name)
	if isRegular(expected) {
		return expected, true
	}
	root := filepath.Join(configDir, known.ProjectsDir)
	entries, err := os.ReadDir(root)
	if err != nil {
		return expected, false
	}
	found := ""
	for _, e := range entries {
		p := filepath.Join(root, e.Name(), name)
		if !isRegular(p) {
			continue
		}
		if found != "" {
			return expected, false // two files of one id: neither is proved
		}
		found = p
	}
	if found == "" {
		return expected, false
	}
	return found, true
}

func isRegular(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.Mode().IsRegular()
}

// candidates lists the transcripts of a project directory, the newest first, at most
// known.MaxCandidates of them.
func candidates(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	type dated struct {
		path string
		when int64
	}
	var all []dated
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), known.TranscriptExt)
		if !ok || !sessionIDShape.MatchString(id) || !e.Type().IsRegular() {
			continue
		}
		if fi, err := e.Info(); err == nil {
			all = append(all, dated{filepath.Join(dir, e.Name()), fi.ModTime().UnixNano()})
		}
	}
	sort.Slice(all, func(i, j int) bool {
		if all[i].when != all[j].when {
			return all[i].when > all[j].when
		}
		return all[i].path < all[j].path
	})
	if len(all) > known.MaxCandidates {
		all = all[:known.MaxCandidates]
	}
	out := make([]string, len(all))
	for i, d := range all {
		out[i] = d.path
	}
	return out
}
