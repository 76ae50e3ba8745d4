package mcpserver

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

const (
	methodListResources = "resources/list"
	methodListTemplates = "resources/templates/list"
	methodReadResource  = "resources/read"

	// codeNoResource is MCP's own error for an address that names nothing.
	codeNoResource = -32002
)

// Resources is what a Host can read beside the tools. Each method may be called at any
// time and by several goroutines; reading never changes anything.
type Resources interface {
	// Extensions are protocol extensions that come with the resources, by their ids.
	Extensions() map[string]any
	// Templates are the shapes of addresses, in the URI of each entry.
	Templates() []Resource
	// List returns the entries after a cursor; "" is the first page and the end.
	List(ctx context.Context, cursor string) (page []Resource, next string, err error)
	// Read returns the text at an address; fault.NotFound when there is none.
	Read(ctx context.Context, uri string) (mediaType, text string, err error)
}

// Resource is an entry of a list.
type Resource struct {
	URI, Name, Title, Description, MIMEType string
}

// readsResources reports whether a method belongs to Resources.
func readsResources(method string) bool {
	return method == methodListResources || method == methodListTemplates || method == methodReadResource
}

// resourcesTime is the bound of one answer, the same as that of a tool.
const resourcesTime = toolkit.CallLimit - time.Second

// answerResources answers the three methods. The SDK would keep a table of resources that
// changes with every record.
func answerResources(ctx context.Context, r Resources, req mcp.Request) (mcp.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, resourcesTime)
	defer cancel()
	switch p := req.GetParams().(type) {
	case *mcp.ListResourcesParams:
		var cursor string
		if p != nil {
			cursor = p.Cursor
		}
		page, next, err := r.List(ctx, cursor)
		if err != nil {
			return nil, resourceError(err)
		}
		out := &mcp.ListResourcesResult{Resources: []*mcp.Resource{}, NextCursor: next}
		out.CacheScope = cacheScope
		for _, e := range page {
			out.Resources = append(out.Resources, &mcp.Resource{URI: e.URI, Name: e.Name, Title: e.Title, Description: e.Description, MIMEType: e.MIMEType})
		}
		return out, nil
	case *mcp.ListResourceTemplatesParams:
		out := &mcp.ListResourceTemplatesResult{ResourceTemplates: []*mcp.ResourceTemplate{}}
		out.CacheScope = cacheScope
		for _, e := range r.Templates() {
			out.ResourceTemplates = append(out.ResourceTemplates, &mcp.ResourceTemplate{URITemplate: e.URI, Name: e.Name, Title: e.Title, Description: e.Description, MIMEType: e.MIMEType})
		}
		return out, nil
	case *mcp.ReadResourceParams:
		if p == nil || p.URI == "" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "uri is required"}
		}
		media, text, err := r.Read(ctx, p.URI)
		if err != nil {
			return nil, resourceError(err)
		}
		out := &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: p.URI, MIMEType: media, Text: text}}}
		out.CacheScope = cacheScope
		return out, nil
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "params do not fit the method"}
}

func resourceError(err error) error {
	code, msg, _ := fault.Public(err)
	switch code {
	case fault.NotFound:
		return &jsonrpc.Error{Code: codeNoResource, Message: msg}
	case fault.Invalid:
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: msg}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: msg}
}
