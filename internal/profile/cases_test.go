package profile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-knock-knock/akk/internal/fault"
)

func TestCase01TheStarterRunsWithItsHostAndNoOther(t *testing.T) {
	p, err := Parse(Starter())
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		host, version string
		ok            bool
	}{
		{"my-agent", "1.8.0", true},
		{"my-agent", "1.8.0+build", true},
		{"my-agent", "1.99.99", true},
		{"my-agent", "2.0.0", false},
		{"my-agent", "1.7.9", false},
		{"my-agent", "v1.8.0", false},
		{"my-agent", "1.8", false},
		{"my-agent", "01.8.0", false},
		{"my-agent", " 1.8.0", false},
		{"my-agent", "", false},
		{"my-agent", "1.9.0-beta.1", false},
		{"my-agent", "2.0.0-rc.1", false},
		{"My-agent", "1.8.0", false},
		{"my-agent2", "1.8.0", false},
		{"", "1.8.0", false},
	}
	for _, c := range cases {
		err := p.CheckHost(c.host, c.version)
		if (err == nil) != c.ok || err != nil && fault.CodeOf(err) != CodeIncompatible {
			t.Errorf("host %q version %q: %v", c.host, c.version, err)
		}
	}
}

func TestCase04EveryObjectRefusesAnUnknownField(t *testing.T) {
	var cases []refusal
	for _, object := range []string{"", "compatibility/", "controllerContext/", "callback/", "callback/environment/", "callback/acknowledgement/",
		"callback/acknowledgement/disposition/", "callback/acknowledgement/acceptanceId/", "callback/acknowledgement/acknowledgedDeliveryId/"} {
		for _, field := range []string{"extra", "Driver", "ID"} {
			cases = append(cases, refusal{object + field, map[string]any{object + field: "x"}, "$." + strings.ReplaceAll(object+field, "/", ".")})
		}
	}
	checkRefusals(t, cases)
}

func TestCase05OnlyTheExactProtocolIdentityIsAccepted(t *testing.T) {
	checkRefusals(t, []refusal{
		{"version 2", map[string]any{"version": 2}, "$.version"},
		{"version 0", map[string]any{"version": 0}, "$.version"},
		{"version text", map[string]any{"version": "1"}, "$.version"},
		{"version missing", map[string]any{"version": absent{}}, "$.version"},
		{"wrong schema", map[string]any{"schema": "agent-knock-knock/host-profile-list"}, "$.schema"},
		{"schema missing", map[string]any{"schema": absent{}}, "$.schema"},
		{"wrong $schema", map[string]any{"$schema": "https://example.com/x"}, "$.$schema"},
		{"empty $schema", map[string]any{"$schema": ""}, "$.$schema"},
		{"null $schema", map[string]any{"$schema": nil}, "$.$schema"},
	})
	with := mustParse(t, nil)
	without := mustParse(t, map[string]any{"$schema": absent{}})
	if a, b := fingerprint(t, with), fingerprint(t, without); a != b {
		t.Errorf("a missing $schema changes the fingerprint: %s and %s", a, b)
	}
}

func fingerprint(t *testing.T, p Profile) string {
	t.Helper()
	f, err := p.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestCase06TheFingerprintIsOfValuesNotOfFormatting(t *testing.T) {
	starter := mustParse(t, nil)
	want := fingerprint(t, starter)
	var compact bytes.Buffer
	if err := json.Compact(&compact, edited(t, nil)); err != nil { // edited sorts the keys, too
		t.Fatal(err)
	}
	p, err := Parse(compact.Bytes())
	if err != nil || fingerprint(t, p) != want {
		t.Fatalf("reordered and compact: %v", err)
	}
	// The golden value pins the canonical form: it is stored in routes.
	const golden = "sha256:d9601391c8129be6941929b050dda810ea4108df02c3f356a03f7d47e26c4576"
	if want != golden {
		t.Errorf("fingerprint of the starter is %s, was %s", want, golden)
	}
	explicit := mustParse(t, map[string]any{"controllerContext/scope": ScopeStartup})
	if fingerprint(t, explicit) == want {
		t.Error("writing the default scope out must change the fingerprint")
	}
	if explicit.Scope() != starter.Scope() || starter.Scope() != ScopeStartup || !explicit.StandaloneCompatible() || !starter.StandaloneCompatible() {
		t.Error("writing the default scope out must not change the behaviour")
	}
	for path, value := range map[string]any{"revision": "2", "callback/timeoutMs": 1, "callback/executable": "/x", "callback/arguments/0": "y",
		"callback/environment/allow": []any{}, "callback/acknowledgement/disposition/mapping/retry": OutcomeUncertain} {
		if fingerprint(t, mustParse(t, map[string]any{path: value})) == want {
			t.Errorf("a change of %s must change the fingerprint", path)
		}
	}
}

func TestCase07ReservedAndMalformedIdsAreRefused(t *testing.T) {
	var cases []refusal
	for _, id := range []any{"builtin-x", "My-Agent", strings.Repeat("a", 65), "", "1a", "a--b", "a-", "-a", "a b", "a/b", " a", "a\n", "ä", 7, nil} {
		cases = append(cases, refusal{fmt.Sprintf("id %v", id), map[string]any{"id": id}, "$.id"})
	}
	for _, host := range []any{"My-Agent", strings.Repeat("a", 65), "", "a_"} {
		cases = append(cases, refusal{fmt.Sprintf("host %v", host), map[string]any{"compatibility/host": host}, "$.compatibility.host"})
	}
	for _, revision := range []any{"", "-1", "a b", strings.Repeat("1", 129), "1/2"} {
		cases = append(cases, refusal{fmt.Sprintf("revision %v", revision), map[string]any{"revision": revision}, "$.revision"})
	}
	checkRefusals(t, cases)
	for _, id := range []string{strings.Repeat("a", 64), "a.b_c-d1", "builtin", "mybuiltin-x"} {
		mustParse(t, map[string]any{"id": id})
	}
	r := registry{{id: "acme", document: string(edited(t, map[string]any{"id": "acme"}))}}
	if _, err := r.parse(edited(t, map[string]any{"id": "acme"})); fault.CodeOf(err) != CodeInvalid || !strings.Contains(err.Error(), "$.id") {
		t.Errorf("a user Profile must not take a built-in id: %v", err)
	}
}

func TestCase08UnsafeVariableNamesAreRefusedInBothPlaces(t *testing.T) {
	var cases []refusal
	for _, name := range []any{"path", "LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_X", "NODE_OPTIONS", "NODE_PATH", "BASH_ENV", "ENV", "SHELLOPTS",
		"AKK_HOST_PROFILE_X", "1A", "", "A-B", "A B", "A=B", strings.Repeat("A", 129), 5} {
		cases = append(cases,
			refusal{fmt.Sprintf("session %v", name), map[string]any{"controllerContext/sessionIdVariable": name}, "$.controllerContext.sessionIdVariable"},
			refusal{fmt.Sprintf("allow %v", name), map[string]any{"callback/environment/allow": []any{"OK", name}}, "$.callback.environment.allow[1]"})
	}
	numbered := func(i int) string { return fmt.Sprintf("V%d", i) }
	cases = append(cases,
		refusal{"33 names", map[string]any{"callback/environment/allow": repeated(33, numbered)}, "$.callback.environment.allow"},
		refusal{"duplicate", map[string]any{"callback/environment/allow": []any{"A", "B", "A"}}, "$.callback.environment.allow[2]"},
		refusal{"missing", map[string]any{"callback/environment/allow": absent{}}, "$.callback.environment.allow"},
		refusal{"null", map[string]any{"callback/environment/allow": nil}, "$.callback.environment.allow"},
		refusal{"scope unknown", map[string]any{"controllerContext/scope": "process_v1"}, "$.controllerContext.scope"},
		refusal{"scope empty", map[string]any{"controllerContext/scope": ""}, "$.controllerContext.scope"},
		refusal{"scope null", map[string]any{"controllerContext/scope": nil}, "$.controllerContext.scope"},
		refusal{"driver", map[string]any{"controllerContext/driver": "file_v1"}, "$.controllerContext.driver"},
	)
	checkRefusals(t, cases)
	mustParse(t, map[string]any{"callback/environment/allow": repeated(32, numbered)})
	mustParse(t, map[string]any{"callback/environment/allow": []any{}})
	mustParse(t, map[string]any{"controllerContext/sessionIdVariable": "_" + strings.Repeat("A", 127)})
	mustParse(t, map[string]any{"callback/environment/allow": []any{"ENVX", "MY_LD_PRELOAD", "DYLD", "AKK_HOST_PROFILE"}})
}

func TestCase09TheExecutableIsANormalisedAbsoluteNonShellPath(t *testing.T) {
	var cases []refusal
	for _, path := range []any{"bin/agent", "./agent", "agent", "", "/", "/a/../b", "/a/./b", "/a//b", "/a/", "//a", "/bin/sh", "/usr/bin/env",
		"/opt/PowerShell.exe", "/opt/BASH", "/usr/bin/zsh", "/a\tb", "/a\x00b", "/a\u0085b", " /a", "/a ", "/a/${envelope.body}", "/" + strings.Repeat("a", 4096), "~/agent", 1} {
		cases = append(cases, refusal{fmt.Sprintf("%.40q", path), map[string]any{"callback/executable": path}, "$.callback.executable"})
	}
	checkRefusals(t, cases)
	for _, path := range []string{"/a", "/opt/my agent/bin/run.sh", "/opt/bash-like", "/x/é", "/" + strings.Repeat("a", 4095)} {
		mustParse(t, map[string]any{"callback/executable": path})
	}
}

func TestCase10ArgumentsHoldThePlaceholdersAndNoShellSyntax(t *testing.T) {
	const path = "$.callback.arguments"
	var cases []refusal
	for i, name := range []string{"session", "delivery", "message"} {
		args := withArgs("x")
		args[i] = "y"
		cases = append(cases, refusal{"without " + name, map[string]any{"callback/arguments": args}, path})
	}
	for _, bad := range []string{PlaceholderBody, "a" + PlaceholderBody, "$HOME", "$(x)", "${HOME}", "a;b", "a|b", "a`b`", "a<b", "a>b", "a&&b", "a\nb", "a\rb", "a\x00b",
		"${envelope", "${envelope.message_id", "${envelope.message_id }", "${Envelope.message_id}", "$${envelope.message_id}", "${${envelope.message_id}}",
		"${env${envelope.message_id}elope.body}", "x$", "$", strings.Repeat("a", 4097)} {
		cases = append(cases, refusal{fmt.Sprintf("%.40q", bad), map[string]any{"callback/arguments": withArgs(bad)}, path + "[3]"})
	}
	long := func(int) string { return strings.Repeat("a", 4096) }
	short := len(PlaceholderSession) + len(PlaceholderDelivery) + len(PlaceholderMessage)
	total := append(withArgs(repeated(3, long)...), strings.Repeat("b", 16384-3*4096-short))
	over := append(withArgs(repeated(3, long)...), strings.Repeat("b", 16385-3*4096-short))
	cases = append(cases,
		refusal{"65 arguments", map[string]any{"callback/arguments": withArgs(repeated(62, func(int) string { return "x" })...)}, path},
		refusal{"16385 characters together", map[string]any{"callback/arguments": over}, path},
		refusal{"none", map[string]any{"callback/arguments": []any{}}, path},
		refusal{"missing", map[string]any{"callback/arguments": absent{}}, path},
		refusal{"stdin other", map[string]any{"callback/stdin": PlaceholderBody + "\n"}, "$.callback.stdin"},
		refusal{"stdin missing", map[string]any{"callback/stdin": absent{}}, "$.callback.stdin"},
		refusal{"driver", map[string]any{"callback/driver": "command_json_v2"}, "$.callback.driver"},
	)
	checkRefusals(t, cases)
	mustParse(t, map[string]any{"callback/arguments": total})
	mustParse(t, map[string]any{"callback/arguments": withArgs(repeated(61, func(int) string { return "x" })...)})
	mustParse(t, map[string]any{"callback/arguments": withArgs("", "a&b", "é", "{x}", "--key="+PlaceholderIdempotencyKey+"&"+PlaceholderMessage, "a\tb")})
	mustParse(t, map[string]any{"callback/arguments": []any{PlaceholderSession + PlaceholderDelivery + PlaceholderMessage}})
}

func TestCase11BothExecutionLimitsAreMandatoryAndBounded(t *testing.T) {
	var cases []refusal
	for _, v := range []any{0, 30001, 1.5, "8000", -1, nil, absent{}} {
		cases = append(cases, refusal{fmt.Sprintf("timeoutMs %v", v), map[string]any{"callback/timeoutMs": v}, "$.callback.timeoutMs"})
	}
	for _, v := range []any{0, 1048577, 0.5, absent{}} {
		cases = append(cases, refusal{fmt.Sprintf("maxOutputBytes %v", v), map[string]any{"callback/maxOutputBytes": v}, "$.callback.maxOutputBytes"})
	}
	checkRefusals(t, cases)
	p := mustParse(t, map[string]any{"callback/timeoutMs": 1, "callback/maxOutputBytes": 1})
	q := mustParse(t, map[string]any{"callback/timeoutMs": 30000, "callback/maxOutputBytes": 1048576})
	if p.Callback.TimeoutMs != 1 || p.Callback.MaxOutputBytes != 1 || q.Callback.TimeoutMs != 30000 || q.Callback.MaxOutputBytes != 1048576 {
		t.Error("the bounds themselves are values")
	}
}

func TestCase12TheAcknowledgementProvesEachFactOnItsOwn(t *testing.T) {
	const ack, mapping = "callback/acknowledgement/", "callback/acknowledgement/disposition/mapping"
	const at, mapAt = "$.callback.acknowledgement.", "$.callback.acknowledgement.disposition.mapping"
	many := func(n int) map[string]any {
		m := map[string]any{}
		for i := range n {
			m[fmt.Sprintf("k%d", i)] = OutcomeAccepted
		}
		return m
	}
	cases := []refusal{
		{"no accepted", map[string]any{mapping: map[string]any{"a": OutcomeUncertain}}, mapAt},
		{"17 entries", map[string]any{mapping: many(17)}, mapAt},
		{"no entry", map[string]any{mapping: map[string]any{}}, mapAt},
		{"missing", map[string]any{mapping: absent{}}, mapAt},
		{"unknown outcome", map[string]any{mapping + "/retry": "later"}, mapAt + ".retry"},
		{"key with blank", map[string]any{mapping + "/a b": OutcomeAccepted}, mapAt},
		{"key too long", map[string]any{mapping: map[string]any{strings.Repeat("k", 65): OutcomeAccepted}}, mapAt},
		{"empty key", map[string]any{mapping: map[string]any{"": OutcomeAccepted}}, mapAt},
		{"one pointer for both ids", map[string]any{ack + "acknowledgedMessageId/jsonPointer": "/request/delivery_id"}, at + "acknowledgedMessageId.jsonPointer"},
	}
	for _, pointer := range []any{"result", "", "/~2", "/~", "/a~", strings.Repeat("/a", 17), "/" + strings.Repeat("a", 256), "/a\n", "/a ", 3} {
		for _, member := range []string{"disposition", "acceptanceId", "acknowledgedDeliveryId", "acknowledgedMessageId"} {
			cases = append(cases, refusal{fmt.Sprintf("%s %.20q", member, pointer), map[string]any{ack + member + "/jsonPointer": pointer}, at + member + ".jsonPointer"})
		}
	}
	for _, member := range []string{"acceptanceId", "acknowledgedDeliveryId", "acknowledgedMessageId"} {
		cases = append(cases, refusal{"without " + member, map[string]any{ack + member: absent{}}, at + member + ".jsonPointer"})
	}
	checkRefusals(t, cases)
	mustParse(t, map[string]any{mapping: many(16)})
	for _, pointer := range []string{strings.Repeat("/a", 16), "/" + strings.Repeat("a", 255), "/", "//", "/~0~1/0/a b"} {
		mustParse(t, map[string]any{ack + "acceptanceId/jsonPointer": pointer})
	}
}

// The starter is what the documentation describes, value by value.
func TestTheStarterHasTheDocumentedValues(t *testing.T) {
	p := mustParse(t, nil)
	want := Profile{
		SchemaURL: SchemaURL, Schema: "agent-knock-knock/host-profile", Version: 1, ID: "my-agent-command", Revision: "2026.08.25-1",
		Compatibility:     Compatibility{Host: "my-agent", Range: ">=1.8.0 <2.0.0"},
		ControllerContext: ControllerContext{Driver: "environment_v1", SessionIDVariable: "MY_AGENT_SESSION_ID"},
		Callback: Callback{
			Driver: "command_json_v1", Executable: "/usr/local/bin/my-agent", Arguments: p.Callback.Arguments, Stdin: "${envelope.body}",
			Environment: Environment{Allow: []string{"MY_AGENT_TOKEN", "PATH"}}, TimeoutMs: 8000, MaxOutputBytes: 64 << 10,
			Acknowledgement: Acknowledgement{
				Disposition: Disposition{JSONPointer: "/result/status", Mapping: map[string]string{
					"accepted": "accepted", "retry": "retryable_failure", "rejected": "permanent_failure", "unknown": "uncertain"}},
				AcceptanceID: Pointer{"/result/acceptance_id"}, AcknowledgedDeliveryID: Pointer{"/request/delivery_id"}, AcknowledgedMessageID: Pointer{"/request/message_id"},
			},
		},
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Error(diff)
	}
	if len(p.Callback.Arguments) != 12 || !slices.Contains(p.Callback.Arguments, PlaceholderIdempotencyKey) {
		t.Errorf("arguments %q", p.Callback.Arguments)
	}
}
