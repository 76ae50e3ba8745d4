package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/redact"
)

// OutboxFuncs is what the outbox commands do to a Store.
type OutboxFuncs struct {
	List    func(ctx context.Context, storeDir string, statuses []outbox.Status, limit int) ([]outbox.Delivery, error)
	Get     func(ctx context.Context, storeDir string, id ids.DeliveryID) (outbox.Delivery, error)
	Redrive func(ctx context.Context, storeDir string, id ids.DeliveryID, checked bool) (outbox.Delivery, error)
	Discard func(ctx context.Context, storeDir string, id ids.DeliveryID) (outbox.Delivery, error)
}

// deliveryView is a delivery as an operator sees it: no digest of the session, no body in
// a list.
type deliveryView struct {
	DeliveryID     ids.DeliveryID `json:"delivery_id"`
	Status         outbox.Status  `json:"status"`
	Attempts       int            `json:"attempts"`
	SourceKind     string         `json:"source_kind"`
	SourceID       string         `json:"source_id"`
	MessageID      string         `json:"message_id"`
	Kind           string         `json:"kind"`
	ProfileID      string         `json:"profile_id"`
	Revision       string         `json:"profile_revision"`
	IdempotencyKey string         `json:"idempotency_key"`
	LastError      string         `json:"last_error,omitempty"`
	Detail         string         `json:"last_detail,omitempty"`
	CreatedAt      time.Time      `json:"created_at"`
	NextAttemptAt  time.Time      `json:"next_attempt_at,omitzero"`
	AcceptedAt     time.Time      `json:"accepted_at,omitzero"`
	SettledAt      time.Time      `json:"settled_at,omitzero"`
	Body           string         `json:"body,omitempty"`
	Next           string         `json:"next_step,omitempty"`
}

func view(d outbox.Delivery, whole bool) deliveryView {
	v := deliveryView{DeliveryID: d.DeliveryID, Status: d.Status, Attempts: d.Attempts, SourceKind: d.Source.Kind, SourceID: d.Source.ID, MessageID: d.Event.ID,
		Kind: d.Event.Kind, ProfileID: d.Route.ProfileID, Revision: d.Route.ProfileRevision, IdempotencyKey: d.IdempotencyKey, LastError: d.LastError,
		CreatedAt: d.CreatedAt, NextAttemptAt: d.NextAttemptAt, AcceptedAt: d.AcceptedAt, SettledAt: d.SettledAt, Next: nextStep(d, time.Now())}
	if whole {
		v.Body = redact.String(strings.ToValidUTF8(string(d.Event.Body), "\uFFFD"))
	}
	return v
}

// nextStep is what an operator can do with a delivery.
func nextStep(d outbox.Delivery, now time.Time) string {
	switch d.Status {
	case outbox.Delivering:
		if d.LeaseExpiresAt.After(now) {
			return "wait for its outcome"
		}
		return "wait; a Bridge of this Profile and session decides it; when none will come: look in the Host for the message id; if it is not there: redrive --i-have-checked, else discard"
	case outbox.Pending:
		return "wait; a Bridge of this Profile and session delivers it; when none will come: discard"
	case outbox.Unproved:
		return "look in the Host for the message id; if it is not there: redrive --i-have-checked, else discard"
	case outbox.Failed, outbox.Exhausted:
		return "mend what last_error names, then redrive; or discard"
	}
	return ""
}

func newOutbox(deps Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "outbox",
		Short: "Look at callbacks that wait or died, and send one again or give it up",
		Example: "  agent-knock-knock outbox list --dead\n" +
			"  agent-knock-knock outbox redrive callback-delivery-…",
		Args: cobra.ArbitraryArgs,
		RunE: needCommand,
	}
	cmd.AddCommand(newOutboxList(deps), newOutboxShow(deps), newOutboxRedrive(deps), newOutboxDiscard(deps))
	return cmd
}

func addStoreFlag(cmd *cobra.Command, dir *onceFlag) {
	cmd.Flags().Var(dir, "store-dir", "Store directory (default ~/.agent-knock-knock/store)")
}

func newOutboxList(deps Deps) *cobra.Command {
	var dir, status onceFlag
	var dead, asJSON bool
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List callbacks, newest first",
		Example: "  agent-knock-knock outbox list --dead\n" +
			"  agent-knock-knock outbox list --status uncertain --json",
		Args: argCount(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			statuses, err := wanted(cmd, status.value, dead)
			if err != nil {
				return err
			}
			if limit < 1 || limit > 200 {
				return usage(cmd, "--limit must be 1 to 200")
			}
			store, err := storePath(dir.value, deps)
			if err != nil {
				return err
			}
			rows, err := deps.Outbox.List(cmd.Context(), store, statuses, limit)
			if err != nil {
				return err
			}
			out := outputFor(cmd, asJSON, deps)
			if out.JSON {
				views := make([]deliveryView, len(rows))
				for i, d := range rows {
					views[i] = view(d, false)
				}
				return writeJSON(cmd.OutOrStdout(), map[string]any{"deliveries": views})
			}
			if len(rows) == 0 {
				return writeAll(cmd.OutOrStdout(), []byte("No such callback.\n"))
			}
			table := NewTable("DELIVERY", "STATUS", "TRIES", "KIND", "OF", "AGE", "LAST ERROR")
			for _, d := range rows {
				state := Plain(string(d.Status))
				if d.Status.Dead() {
					state = Red(string(d.Status))
				}
				table.Row(Plain(string(d.DeliveryID)), state, Plain(fmt.Sprint(d.Attempts)), Plain(d.Event.Kind), Plain(d.Source.ID), Plain(short(time.Since(d.CreatedAt))), Plain(d.LastError))
			}
			return table.Write(cmd.OutOrStdout(), out)
		},
	}
	addStoreFlag(cmd, &dir)
	cmd.Flags().Var(&status, "status", "only this status: pending, delivering, delivered, failed, uncertain, exhausted, superseded, discarded")
	cmd.Flags().BoolVar(&dead, "dead", false, "only what nobody will deliver: failed, uncertain, exhausted")
	cmd.Flags().IntVar(&limit, "limit", 50, "at most so many, up to 200")
	addJSONFlag(cmd, &asJSON)
	return cmd
}

// wanted reads the filter of a listing.
func wanted(cmd *cobra.Command, status string, dead bool) ([]outbox.Status, error) {
	all := []outbox.Status{outbox.Pending, outbox.Delivering, outbox.Delivered, outbox.Failed, outbox.Unproved, outbox.Exhausted, outbox.Superseded, outbox.Discarded}
	switch {
	case dead && status != "":
		return nil, usage(cmd, "--dead and --status were both given")
	case dead:
		return slices.DeleteFunc(all, func(s outbox.Status) bool { return !s.Dead() }), nil
	case status == "":
		return nil, nil
	case !slices.Contains(all, outbox.Status(status)):
		return nil, usage(cmd, "there is no status %q", status)
	}
	return []outbox.Status{outbox.Status(status)}, nil
}

// one makes a command that acts on one delivery and shows it afterwards.
func one(deps Deps, use, short, long string, act func(cmd *cobra.Command, store string, id ids.DeliveryID) (outbox.Delivery, error)) *cobra.Command {
	var dir onceFlag
	var asJSON bool
	cmd := &cobra.Command{
		Use:     use + " <delivery-id>",
		Short:   short,
		Long:    long,
		Example: "  agent-knock-knock outbox " + use + " callback-delivery-…",
		Args:    argCount("delivery-id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := storePath(dir.value, deps)
			if err != nil {
				return err
			}
			d, err := act(cmd, store, ids.DeliveryID(args[0]))
			if err != nil {
				return err
			}
			out := outputFor(cmd, asJSON, deps)
			v := view(d, use == "show")
			if out.JSON {
				return writeJSON(cmd.OutOrStdout(), v)
			}
			table := NewTable("FIELD", "VALUE")
			for _, f := range [][2]string{
				{"delivery", string(v.DeliveryID)}, {"status", string(v.Status)}, {"attempts", fmt.Sprint(v.Attempts)}, {"of", v.SourceKind + " " + v.SourceID},
				{"message", v.MessageID}, {"kind", v.Kind}, {"profile", v.ProfileID + " " + v.Revision}, {"created", v.CreatedAt.Format(time.RFC3339)},
				{"last error", v.LastError}, {"next step", v.Next}, {"body", v.Body},
			} {
				if strings.TrimSpace(f[1]) != "" {
					table.Row(Plain(f[0]), Plain(f[1]))
				}
			}
			return table.Write(cmd.OutOrStdout(), out)
		},
	}
	addStoreFlag(cmd, &dir)
	addJSONFlag(cmd, &asJSON)
	return cmd
}

func newOutboxShow(deps Deps) *cobra.Command {
	return one(deps, "show", "Show one callback with its text", "Show one callback: what it says, how often it was tried and what can be done now.",
		func(cmd *cobra.Command, store string, id ids.DeliveryID) (outbox.Delivery, error) {
			return deps.Outbox.Get(cmd.Context(), store, id)
		})
}

func newOutboxRedrive(deps Deps) *cobra.Command {
	var checked bool
	cmd := one(deps, "redrive", "Send a dead callback once more, under the same ids",
		"Give a callback that failed or ran out of attempts one more attempt, under the same delivery id and idempotency key.\n"+
			"What the Host may have heard already (uncertain) is only sent again with --i-have-checked: look there for the message id first.\n"+
			"The Bridge of its Profile sends it within seconds, or when it starts.",
		func(cmd *cobra.Command, store string, id ids.DeliveryID) (outbox.Delivery, error) {
			return deps.Outbox.Redrive(cmd.Context(), store, id, checked)
		})
	cmd.Flags().BoolVar(&checked, "i-have-checked", false, "the Host does not have this message; send it though its outcome is uncertain")
	return cmd
}

func newOutboxDiscard(deps Deps) *cobra.Command {
	var yes bool
	cmd := one(deps, "discard", "Give a callback up", "Give up a callback that waits or died. Its record stays; the Host never hears of it.",
		func(cmd *cobra.Command, store string, id ids.DeliveryID) (outbox.Delivery, error) {
			if !yes {
				return outbox.Delivery{}, fault.New(CodeUsage, "cli.outbox", "discarding means that the Host never hears it").WithHint("pass --yes")
			}
			return deps.Outbox.Discard(cmd.Context(), store, id)
		})
	cmd.Flags().BoolVar(&yes, "yes", false, "really give it up")
	return cmd
}
