package ledgertools

import (
	"context"
	_ "embed" // the view
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
)

const (
	// ViewURI is the app that shows a project.
	ViewURI = "ui://cairnline/project-status"
	// ViewType is its media type, exactly.
	ViewType = "text/html;profile=mcp-app"

	scheme   = "cairnline://projects/"
	jsonType = "application/json"
	// resourcePage bounds one answer of resources/list.
	resourcePage = 1000
)

//go:embed view/project-status.html
var view string

// Resource is an entry of resources/list.
type Resource struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	MIMEType    string `json:"mimeType"`
}

// Template is an entry of resources/templates/list.
type Template struct {
	URITemplate string `json:"uriTemplate"`
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	MIMEType    string `json:"mimeType"`
}

// Contents is what resources/read answers with.
type Contents struct {
	URI      string `json:"uri"`
	MIMEType string `json:"mimeType"`
	Text     string `json:"text"`
}

// Templates are the shapes of all addresses.
var Templates = []Template{
	{scheme + "{project_id}", "project", "Project", "A project with its brief, activity, roles, memory and latest work.", jsonType},
	{scheme + "{project_id}/work-items/{work_item_id}", "work_item", "Work item", "A work item with its assignments, evidence, reviews and handoffs.", jsonType},
	{scheme + "{project_id}/work-items/{work_item_id}/closeout-readiness", "work_item_closeout_readiness", "Closeout readiness", "Whether a work item can be closed, and what blocks it.", jsonType},
	{scheme + "{project_id}/assignments/{assignment_id}", "assignment", "Assignment", "What an assignment is about.", jsonType},
	{scheme + "{project_id}/assignments/{assignment_id}/launch-packet", "assignment_launch_packet", "Launch packet", "Everything needed to prepare a run of an assignment.", jsonType},
	{scheme + "{project_id}/memory-candidates/{memory_candidate_id}", "memory_candidate", "Memory candidate", "Memory that waits for a decision, or what became of it.", jsonType},
}

func address(projectID string, parts ...string) string {
	out := scheme + url.PathEscape(projectID)
	for _, p := range parts {
		out += "/" + url.PathEscape(p)
	}
	return out
}

// Resources lists the addresses of all records after cursor.
func (t *Tools) Resources(ctx context.Context, cursor string) (out []Resource, next string, err error) {
	kind, offset, err := resourceCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	out = []Resource{} // an empty ledger without the view is an empty list, not null
	if cursor == "" && t.offer.View() {
		out = append(out, Resource{ViewURI, "project_status", "Project status", "Health, brief and activity of a project, to look at.", ViewType})
	}
	left := resourcePage
	for ; kind < len(ledgersql.Kinds); kind, offset = kind+1, 0 {
		p, err := t.service.Names(ctx, ledgersql.Kinds[kind], coord.Span{Limit: left, Offset: offset})
		if err != nil {
			return nil, "", err
		}
		for _, n := range p.Items {
			out = append(out, resourcesOf(ledgersql.Kinds[kind], n)...)
		}
		if p.Next > 0 {
			return out, strconv.Itoa(kind) + "." + strconv.Itoa(p.Next), nil
		}
		if left -= len(p.Items); left <= 0 {
			if kind+1 < len(ledgersql.Kinds) {
				return out, strconv.Itoa(kind+1) + ".0", nil
			}
			break
		}
	}
	return out, "", nil
}

func resourceCursor(cursor string) (kind, offset int, err error) {
	if cursor == "" {
		return 0, 0, nil
	}
	k, o, ok := strings.Cut(cursor, ".")
	kind, kErr := strconv.Atoi(k)
	offset, oErr := strconv.Atoi(o)
	if !ok || kErr != nil || oErr != nil || kind < 0 || kind >= len(ledgersql.Kinds) || offset < 0 {
		return 0, 0, fault.New(fault.Invalid, "ledger", "cursor is not a nextCursor of this list")
	}
	return kind, offset, nil
}

func resourcesOf(kind string, n ledgersql.Name) []Resource {
	title := oneLine(n.Title)
	switch kind {
	case "project":
		return []Resource{{address(n.ID), "project/" + n.ID, title, Templates[0].Description, jsonType}}
	case "work_item":
		return []Resource{
			{address(n.ProjectID, "work-items", n.ID), "work_item/" + n.ID, title, Templates[1].Description, jsonType},
			{address(n.ProjectID, "work-items", n.ID, "closeout-readiness"), "work_item_closeout_readiness/" + n.ID, "Closeout readiness " + n.ID, Templates[2].Description, jsonType}}
	case "assignment":
		return []Resource{
			{address(n.ProjectID, "assignments", n.ID), "assignment/" + n.ID, "Assignment " + n.ID, Templates[3].Description, jsonType},
			{address(n.ProjectID, "assignments", n.ID, "launch-packet"), "assignment_launch_packet/" + n.ID, "Launch packet " + n.ID, Templates[4].Description, jsonType}}
	}
	return []Resource{{address(n.ProjectID, "memory-candidates", n.ID), "memory_candidate/" + n.ID, title, Templates[5].Description, jsonType}}
}

// ReadResource reads one address. An unknown one is fault.NotFound.
func (t *Tools) ReadResource(ctx context.Context, uri string) (Contents, error) {
	if uri == ViewURI && t.offer.View() {
		return Contents{ViewURI, ViewType, view}, nil
	}
	unknown := fault.New(fault.NotFound, "ledger", "there is no resource %q", oneLine(uri)).WithHint("use resources/list or a template")
	rest, ok := strings.CutPrefix(uri, scheme)
	if !ok {
		return Contents{}, unknown
	}
	parts := strings.Split(rest, "/")
	for i, p := range parts {
		plain, err := url.PathUnescape(p)
		if err != nil || plain == "" {
			return Contents{}, unknown
		}
		parts[i] = plain
	}
	value, err := t.resource(ctx, parts)
	if err != nil {
		return Contents{}, err
	}
	if value == nil {
		return Contents{}, unknown
	}
	b, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return Contents{}, err
	}
	return Contents{uri, jsonType, string(b)}, nil
}

// resource returns nil for a path that is no address.
func (t *Tools) resource(ctx context.Context, p []string) (any, error) {
	s := t.service
	switch {
	case len(p) == 1:
		return s.ViewProject(ctx, p[0])
	case len(p) == 3 && p[1] == "work-items":
		return s.ViewWorkItem(ctx, p[0], p[2])
	case len(p) == 4 && p[1] == "work-items" && p[3] == "closeout-readiness":
		return s.CloseoutReadiness(ctx, p[0], p[2])
	case len(p) == 3 && p[1] == "assignments":
		return s.AssignmentContext(ctx, p[0], p[2])
	case len(p) == 4 && p[1] == "assignments" && p[3] == "launch-packet":
		return s.LaunchPacket(ctx, p[0], p[2])
	case len(p) == 3 && p[1] == "memory-candidates":
		return s.GetMemoryCandidate(ctx, p[0], p[2])
	}
	return nil, nil
}
