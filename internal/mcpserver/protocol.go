package mcpserver

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

// newServer builds the SDK's server for one session. It advertises tools, and resources
// where there are any. tools/list is answered here, because the SDK would sort it; the SDK's raw tool
// path validates nothing, so arguments arrive at the registry as the Host sent them. So it
// needs no more of a tool than its name, and no schema is read before somebody asks.
func newServer(cfg Config, c *conn, ready *readiness) *mcp.Server {
	offered := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}
	if cfg.Resources != nil {
		offered.Resources = &mcp.ResourceCapabilities{}
		offered.Extensions = cfg.Resources.Extensions()
	}
	server := mcp.NewServer(
		&mcp.Implementation{Name: cfg.Name, Version: cfg.Version},
		&mcp.ServerOptions{
			Logger:       slog.New(quiet{cfg.Log.Handler()}),
			Capabilities: offered,
		})
	for _, name := range cfg.Registry.Names() {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: unlisted}, c.call)
	}
	catalogue := sync.OnceValue(func() []*mcp.Tool { return publish(cfg.Registry.Tools()) })
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			switch method {
			case methodListTools:
				ready.reached()
				return list(catalogue(), req)
			case methodCallTool:
				ready.reached()
				return next(ctx, method, req)
			}
			if cfg.Resources != nil && readsResources(method) {
				ready.reached()
				return answerResources(ctx, cfg.Resources, req)
			}
			result, err := next(ctx, method, req)
			if err == nil && (method == noteInitialized || method == methodDiscover) {
				ready.reached()
			}
			if d, ok := result.(*mcp.DiscoverResult); ok && d != nil {
				d.CacheScope = cacheScope
			}
			return result, err
		}
	})
	return server
}

// unlisted is what the SDK is told of every input schema. It never shows or applies it.
var unlisted = &jsonschema.Schema{Type: "object"}

// cacheScope says that what this server lists is for this Host only.
const cacheScope = "private"

// publish renders the catalogue once; every tools/list then has the same bytes.
func publish(tools []toolkit.Tool) []*mcp.Tool {
	out := make([]*mcp.Tool, len(tools))
	for i, t := range tools {
		hints := t.Annotations()
		out[i] = &mcp.Tool{
			Name:        t.Name,
			Title:       t.Title,
			Description: t.Description,
			InputSchema: t.PublishedInput,
			Meta:        mcp.Meta(t.Meta),
			Annotations: &mcp.ToolAnnotations{
				Title:           t.Title,
				ReadOnlyHint:    hints.ReadOnly,
				DestructiveHint: &hints.Destructive,
				IdempotentHint:  hints.Idempotent,
				OpenWorldHint:   &hints.OpenWorld,
			},
		}
		if len(t.PublishedOutput) > 0 {
			out[i].OutputSchema = t.PublishedOutput
		}
	}
	return out
}

// list answers tools/list: one page, in the order of registration.
func list(catalogue []*mcp.Tool, req mcp.Request) (mcp.Result, error) {
	if p, ok := req.GetParams().(*mcp.ListToolsParams); ok && p != nil && p.Cursor != "" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown cursor: the list has one page"}
	}
	result := &mcp.ListToolsResult{Tools: catalogue}
	result.CacheScope = cacheScope
	return result, nil
}

// call runs the tool of a request that Read has admitted.
func (c *conn) call(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var e *entry
	if req.Extra != nil {
		e = c.pending.byInternal(req.Extra.Header.Get(ticketHeader))
	}
	if e == nil || e.ticket == nil { // given up at the drain limit
		return nil, &jsonrpc.Error{Code: codeStopping, Message: "the Bridge is stopping: this request was not carried out"}
	}
	e.ticket.Face(c.faceOf(req), resumed(req.Params))
	result, err := e.ticket.Run(ctx, e.args)
	if err != nil {
		_, msg, _ := fault.Public(err)
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: msg}
	}
	if result.Input != nil {
		return inputRequired(result.Input), nil
	}
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: result.Text}},
		StructuredContent: json.RawMessage(result.Structured),
		IsError:           result.IsError,
	}, nil
}

// quiet lowers the SDK's own log lines to debug: what matters of them is logged here.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, _ slog.Level) bool {
	return q.Handler.Enabled(ctx, slog.LevelDebug)
}

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return q.Handler.Handle(ctx, r)
}

func (q quiet) WithAttrs(a []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(a)} }
func (q quiet) WithGroup(n string) slog.Handler      { return quiet{q.Handler.WithGroup(n)} }
