// Package hosttools joins the wings of the terminal tools into one registry, in the order of
// the catalogue. It owns the list of wings and nothing else.
package hosttools

import (
	"github.com/agent-knock-knock/akk/internal/catalogue"
	"github.com/agent-knock-knock/akk/internal/native/nativetools"
	"github.com/agent-knock-knock/akk/internal/native/panels"
	"github.com/agent-knock-knock/akk/internal/native/threads"
	"github.com/agent-knock-knock/akk/internal/toolkit"
	"github.com/agent-knock-knock/akk/internal/turn/dispatch"
	"github.com/agent-knock-knock/akk/internal/turn/turntools"
	"github.com/agent-knock-knock/akk/internal/watch/watcher"
	"github.com/agent-knock-knock/akk/internal/watch/watchtools"
)

// Services are the use cases behind the tools.
type Services struct {
	Turns   *dispatch.Service
	Watches *watcher.Service
	Threads *threads.Service
	Panels  *panels.Service
}

// Register adds the tools of [catalogue.Names], and those of [catalogue.Extended] when asked, in their order.
// An error means that a wing registers a tool which the table does not know.
func Register(r *toolkit.Registry, s Services, extended bool) error {
	turntools.Register(r, s.Turns)
	watchtools.RegisterWatch(r, s.Watches)
	watchtools.RegisterUnwatch(r, s.Watches)
	nativetools.RegisterListResumableThreads(r, s.Threads)
	nativetools.RegisterNativeInspect(r, s.Panels)
	nativetools.RegisterModelOptions(r, s.Panels)
	nativetools.RegisterSetModel(r, s.Panels)
	nativetools.RegisterNewThread(r, s.Threads)
	nativetools.RegisterReconcileBinding(r, s.Threads)
	nativetools.RegisterResumeThread(r, s.Threads)
	if extended {
		nativetools.RegisterRepairModelControl(r, s.Panels)
		nativetools.RegisterIdentifyForeground(r, s.Panels)
		nativetools.RegisterIdentifyAndSend(r, s.Panels)
		nativetools.RegisterPermissionOptions(r, s.Panels)
		nativetools.RegisterSetPermissions(r, s.Panels)
	}
	return r.Arrange(catalogue.Order())
}
