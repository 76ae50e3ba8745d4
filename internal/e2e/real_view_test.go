//go:build e2e

package e2e

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
	"github.com/agent-knock-knock/akk/internal/testkit/faketmux"
	"github.com/agent-knock-knock/akk/internal/testkit/golden"
	"github.com/agent-knock-knock/akk/internal/testkit/realagent"
)

// hostPage is a Host of MCP Apps as far as a view needs one: a sandboxed frame, the answer
// to ui/initialize, and a log of all that the view said.
const hostPage = `<!doctype html><meta charset="utf-8"><style>body{margin:0}iframe{border:0;width:100%;height:100vh}</style>
<iframe id="view" sandbox="allow-scripts" srcdoc="{{.}}"></iframe>
<script>
"use strict";
const heard = [];
const view = document.getElementById("view");
addEventListener("message", e => {
  if (e.source !== view.contentWindow) return;
  heard.push(e.data);
  if (e.data.method === "ui/initialize") tell({ id: e.data.id, result: { protocolVersion: e.data.params.protocolVersion,
    hostInfo: { name: "stand-in", version: "1" }, hostCapabilities: {}, hostContext: {} } });
});
function tell(m) { view.contentWindow.postMessage(Object.assign({ jsonrpc: "2.0" }, m), "*"); }
function deliver(result) { tell({ method: "ui/notifications/tool-result", params: result }); }
</script>`

// appsProtocol is the version of MCP Apps that the official SDK speaks (ext-apps 2.0.4).
const appsProtocol = "2026-01-26"

// stage is the view in a real browser.
type stage struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	requests []string // of the browser, for anything but the page
}

func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv(realagent.EnvInstall) != "" {
		t.Fatal("there is no Chromium; make chromium installs it")
	}
	t.Skip("there is no Chromium; make chromium installs it")
	return ""
}

// show opens the page of a Host around the view.
func show(t *testing.T, view string) *stage {
	t.Helper()
	page := template.Must(template.New("host").Parse(hostPage))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if err := page.Execute(w, view); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.WindowSize(760, 1120), chromedp.WSURLReadTimeout(slowest), chromedp.Flag("force-color-profile", "srgb"),
		chromedp.Flag("disable-features", "IsolateSandboxedIframes,site-per-process,Translate")) // one process: the page's tree holds the frame's
	ctx, closeTab := chromedp.NewContext(t.Context(), chromedp.WithAllocatorOptions(options...))
	t.Cleanup(func() {
		closeTab()
		if err := chromedp.Cancel(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Log(err)
		}
	})
	s := &stage{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, func(ev any) { // it starts the browser
		if e, ok := ev.(*network.EventRequestWillBeSent); ok && e.Request.URL != server.URL+"/" && e.Request.URL != "about:srcdoc" {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.requests = append(s.requests, e.Request.URL)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	run(s, chromedp.Navigate(server.URL+"/"))
	return s
}

// run runs an action of the browser in a bounded time.
func run[T any](s *stage, action chromedp.Action[T]) T {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, slowest)
	defer cancel()
	got, err := chromedp.Run(ctx, action)
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

// heard is what the view said to the Host so far.
func (s *stage) heard() (out []struct {
	ID     any             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}) {
	s.t.Helper()
	text := run(s, chromedp.Evaluate[string]("JSON.stringify(heard)"))
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		s.t.Fatal(err)
	}
	return out
}

// tell runs a function of the Host's page with one argument.
func (s *stage) tell(function string, arg any) {
	s.t.Helper()
	raw, err := json.Marshal(arg)
	if err != nil {
		s.t.Fatal(err)
	}
	run(s, chromedp.Evaluate[bool](function+"("+string(raw)+"), true"))
}

// tree is the text and the tags inside the frame.
func (s *stage) tree() (text string, tags []string) {
	s.t.Helper()
	var walk func(n *cdp.Node, inside bool, b *strings.Builder)
	walk = func(n *cdp.Node, inside bool, b *strings.Builder) {
		switch {
		case inside && n.NodeType == chromedp.NodeTypeText:
			b.WriteString(n.NodeValue + "\n")
		case inside && n.NodeType == chromedp.NodeTypeElement:
			tags = append(tags, n.LocalName)
			if n.LocalName == "script" || n.LocalName == "style" {
				return
			}
		}
		for _, c := range n.Children {
			walk(c, inside, b)
		}
		if n.ContentDocument != nil {
			walk(n.ContentDocument, true, b)
		}
	}
	var b strings.Builder
	depth, pierce := int64(-1), true
	got, err := chromedp.Call(s.ctx, dom.GetDocument, dom.GetDocumentParams{Depth: &depth, Pierce: &pierce})
	if err != nil {
		s.t.Fatal(err)
	}
	walk(got.Root, false, &b)
	return b.String(), tags
}

// shows waits until the view has all of these texts.
func (s *stage) shows(want ...string) string {
	s.t.Helper()
	var text string
	faketmux.Wait(s.t, "the view shows "+strings.Join(want, ", "), func() bool {
		text, _ = s.tree()
		return !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(text, w) })
	}, func() string { return text })
	return text
}

// projectOnView makes a project with a blocked, an active and a finished assignment, and returns
// the results of the three linked tools.
func projectOnView(t *testing.T, c *fakehost.Client, item string) (id string, results map[string]any) {
	t.Helper()
	do := func(tool string, args map[string]any) (r ledgerRecord) {
		t.Helper()
		c.MustCall(tool, args).Decode(t, &r)
		return r
	}
	id = do("projects.create", map[string]any{"name": "P", "description": "for the view"}).ID
	role := do("roles.create", map[string]any{"project_id": id, "name": "Reviewer"}).ID
	w := do("work_items.create", map[string]any{"project_id": id, "title": item}).ID
	var asgns []string
	for range 3 {
		asgns = append(asgns, do("assignments.create", map[string]any{"project_id": id, "work_item_id": w, "role_id": role}).ID)
	}
	for i, a := range asgns[:2] {
		claim := do("assignments.claim", map[string]any{"project_id": id, "assignment_id": a, "claimed_by": "worker"}).Claim.ID
		if i == 0 {
			do("assignments.complete", map[string]any{"project_id": id, "assignment_id": a, "claim_id": claim})
		}
	}
	do("memory_candidates.create", map[string]any{"project_id": id, "title": "Tests need tmux", "body": "b"})
	results = map[string]any{}
	for _, tool := range []string{"projects.health", "projects.operations_brief", "projects.activity"} {
		got := c.MustCall(tool, map[string]any{"project_id": id})
		results[tool] = map[string]any{"content": []any{map[string]any{"type": "text", "text": got.Text}}, "structuredContent": got.JSON}
	}
	return id, results
}

// Case 49 and the bridge of MCP Apps: in a real browser the view opens as the protocol
// says, shows what the three tools answered, starts anew for another project, takes data
// for nothing but text, and reaches out to nobody.
func TestRealTheProjectViewInABrowser(t *testing.T) {
	w := newWorld(t, nil)
	c := w.start("--toolsets", "coordination")
	read, err := c.Session().ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "ui://cairnline/project-status"})
	if err != nil {
		t.Fatal(err)
	}
	const hostile = `Ship <img src=x onerror="parent.postMessage('owned','*')"> it`
	one, first := projectOnView(t, c, hostile)
	two, second := projectOnView(t, c, "Review the release notes")
	s := show(t, read.Contents[0].Text)

	faketmux.Wait(t, "the view is open", func() bool { return len(s.heard()) == 2 }, func() string { return dump(s.heard()) })
	said := s.heard()
	var open struct {
		ProtocolVersion string                         `json:"protocolVersion"`
		AppInfo         struct{ Name, Version string } `json:"appInfo"`
		AppCapabilities struct {
			Modes []string `json:"availableDisplayModes"`
		} `json:"appCapabilities"`
	}
	if err := json.Unmarshal(said[0].Params, &open); err != nil || said[0].Method != "ui/initialize" || open.ProtocolVersion != appsProtocol ||
		open.AppInfo.Name == "" || open.AppInfo.Version == "" || !slices.Equal(open.AppCapabilities.Modes, []string{"inline", "fullscreen"}) ||
		said[1].Method != "ui/notifications/initialized" || said[1].ID != nil {
		t.Errorf("%s, %v", dump(said), err)
	}
	s.shows("Waiting for a project")

	for _, tool := range []string{"projects.health", "projects.operations_brief", "projects.activity"} {
		s.tell("deliver", first[tool])
	}
	s.shows(one, "Health", "Brief", "Activity", "Needs attention", hostile, "Tests need tmux", "Reviewer")
	if _, tags := s.tree(); slices.Contains(tags, "img") {
		t.Error("text became an element")
	}
	s.tell("deliver", map[string]any{"isError": true, "structuredContent": map[string]any{"error": map[string]any{"code": "internal", "message": "no"}}})
	s.tell("deliver", map[string]any{"structuredContent": []any{}})
	s.tell("deliver", map[string]any{"structuredContent": map[string]any{"summary": map[string]any{"active_assignment_count": 4711}, "title": "No project id"}})
	s.shows(one, "No project id", "4711", "Brief", "Activity") // the same project goes on

	s.tell("deliver", second["projects.activity"])
	text := s.shows(two, "Activity", "Review the release notes")
	if strings.Contains(text, one) || strings.Contains(text, "Brief") || strings.Contains(text, hostile) || strings.Contains(text, "4711") {
		t.Errorf("the first project is still there: %s", text)
	}

	s.tell("deliver", second["projects.health"])
	s.tell("deliver", second["projects.operations_brief"])
	s.shows(two, "Needs attention", "What is next", "Latest")
	s.picture()

	s.tell("tell", map[string]any{"id": 7, "method": "ping"})
	s.tell("tell", map[string]any{"id": 8, "method": "ui/unknown"})
	s.tell("tell", map[string]any{"id": 9, "method": "ui/resource-teardown", "params": map[string]any{}})
	faketmux.Wait(t, "three answers", func() bool { return len(s.heard()) >= 5 }, func() string { return dump(s.heard()) })
	said = s.heard()
	if len(said) != 5 || said[2].Result == nil || !strings.Contains(string(said[3].Error), "-32601") || said[4].Result == nil {
		t.Errorf("%s", dump(said))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, url := range s.requests {
		if !strings.HasSuffix(url, "/favicon.ico") { // the browser's own, for the Host's page
			t.Errorf("the view asked for %s", url)
		}
	}
}

// picture keeps docs/images/project-status.png, when golden files are written anew.
func (s *stage) picture() {
	s.t.Helper()
	if !golden.Update() {
		return
	}
	png := run(s, chromedp.CaptureScreenshot())
	path := filepath.Join("..", "..", "docs", "images", "project-status.png")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, png, 0o644); err != nil {
		s.t.Fatal(err)
	}
}
