package ledgertools_test

import (
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/ids"
	"github.com/agent-knock-knock/akk/internal/ledger/coord"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgersql"
	"github.com/agent-knock-knock/akk/internal/ledger/ledgertools"
	"github.com/agent-knock-knock/akk/internal/store"
	"github.com/agent-knock-knock/akk/internal/toolkit"
)

func TestTheToolsCanBeMountedInAnotherTable(t *testing.T) {
	db, err := store.OpenMemory(t.Context(), store.Options{Sets: []store.Set{ledgersql.Tables()}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r := toolkit.New()
	if err := ledgertools.New(coord.New(db), "x", "1").Mount(r); err != nil {
		t.Fatal(err)
	}
	if err := r.Verify(); err != nil {
		t.Fatal(err)
	}
	if n := len(r.Names()); n != 78 {
		t.Errorf("%d tools", n)
	}
	session := r.Open(ids.NewBridge(), slog.New(slog.DiscardHandler))
	call := func(tool, args string) (toolkit.Result, error) {
		ticket := session.Arrive(toolkit.Arrival{ID: json.RawMessage("1"), Tool: tool})
		return ticket.Run(t.Context(), json.RawMessage(args))
	}
	got, err := call("projects.create", `{"name":"P"}`)
	var p struct{ ID, Name string }
	if err != nil || got.IsError || json.Unmarshal(got.Structured, &p) != nil || p.Name != "P" {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := call("projects.create", `{"name":"P","odd":1}`); !fault.Is(err, toolkit.BadCall) {
		t.Errorf("an unknown argument: %v", err)
	}
	got, err = call("projects.get", `{"id":"none"}`)
	var envelope struct{ Error struct{ Code string } }
	if err != nil || !got.IsError || json.Unmarshal(got.Structured, &envelope) != nil || envelope.Error.Code != "not_found" {
		t.Errorf("%+v, %v", got, err)
	}
}
