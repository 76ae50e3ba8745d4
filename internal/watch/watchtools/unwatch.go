package watchtools

import (
	"context"

	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/internal/watch"
	"github.com/agent-knock-knock/akk/internal/watch/watcher"
	"github.com/agent-knock-knock/akk/schemas"
)

const unwatchDescription = `Ends a watch before its task does. The task and its terminal are not touched; you hear no more of them, but for one callback "cancelled".

A watch that has ended already is returned as it is, so calling it twice does no harm.`

type unwatchInput struct {
	WatchID ids.WatchID `json:"watch_id"`
}

type unwatchOutput struct {
	Watch watch.View `json:"watch"`
}

// RegisterUnwatch adds the tool unwatch.
func RegisterUnwatch(r *toolkit.Registry, s *watcher.Service) {
	name := prefix + "unwatch"
	toolkit.Register(r, toolkit.Spec{
		Name: name, Title: "AKK Unwatch", Description: unwatchDescription,
		Input: schemas.ToolInput(name), Output: schemas.ToolOutput(name), Effect: toolkit.Destructive, Idempotent: true,
	}, func(ctx context.Context, _ toolkit.Call, in unwatchInput) (any, error) {
		v, err := s.Unwatch(ctx, in.WatchID)
		if err != nil {
			return nil, err
		}
		return unwatchOutput{Watch: v}, nil
	})
}
