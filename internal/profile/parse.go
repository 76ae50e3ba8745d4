package profile

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/strictjson"
)

// The limits of a Profile document.
const (
	MaxFileBytes = 262144
	maxDepth     = 8
)

// Parse reads and proves one user Profile. It refuses with [CodeInvalid] whatever breaks
// a rule of v1, structural or not, and ids that belong to built-in Profiles. It looks at
// no file, no environment and no Host version.
func Parse(data []byte) (Profile, error) { return builtins.parse(data) }

// parse is Parse against a given registry.
func (r registry) parse(data []byte) (Profile, error) {
	p, err := decode(data)
	if err != nil {
		return Profile{}, err
	}
	if err := checkUserID(p.ID, r); err != nil {
		return Profile{}, err
	}
	return p, nil
}

// decode proves everything but the ownership of the id.
func decode(data []byte) (Profile, error) {
	var p Profile
	err := strictjson.Decode(data, &p, strictjson.Limits{MaxBytes: MaxFileBytes, MaxDepth: maxDepth})
	if err != nil {
		_, msg, hint := fault.Public(err)
		return Profile{}, fault.New(CodeInvalid, "profile.parse", "%s", msg).WithHint("%s", hintOr(hint))
	}
	// The two optional members of v1: absent is allowed, empty is not, and a plain string
	// cannot tell them apart.
	var optional struct {
		SchemaURL         *string `json:"$schema"`
		ControllerContext struct {
			Scope *string `json:"scope"`
		} `json:"controllerContext"`
	}
	if err := json.Unmarshal(data, &optional); err != nil {
		return Profile{}, fault.Wrap(err, fault.Internal, "profile.parse", "a decoded Profile does not decode again")
	}
	if optional.SchemaURL == nil {
		p.SchemaURL = SchemaURL
	}
	if s := optional.ControllerContext.Scope; s != nil && *s == "" {
		return Profile{}, invalid("$.controllerContext.scope", "must be one of %s, %s, or be left out", ScopeStartup, ScopeRouteBound)
	}
	for _, check := range []func(Profile) error{checkIdentity, checkCompatibility, checkController, checkCallback, checkAcknowledgement} {
		if err := check(p); err != nil {
			return Profile{}, err
		}
	}
	return p, nil
}

// invalid names the JSON path and the rule. Callers pass rules, never values.
func invalid(path, rule string, args ...any) error {
	return fault.New(CodeInvalid, "profile.parse", "%s: "+rule, append([]any{path}, args...)...).WithHint(editHint)
}

const editHint = "compare the Profile with `agent-knock-knock host-profile example`"

func hintOr(hint string) string {
	if hint == "" {
		return editHint
	}
	return hint
}

func checkIdentity(p Profile) error {
	switch {
	case p.SchemaURL != SchemaURL:
		return invalid("$.$schema", "must be left out or be exactly %s", SchemaURL)
	case p.Schema != SchemaName:
		return invalid("$.schema", "must be exactly %q", SchemaName)
	case p.Version != SchemaVersion:
		return invalid("$.version", "must be the number %d; no other version is supported", SchemaVersion)
	case !isName(p.ID):
		return invalid("$.id", nameRule)
	case !isRevision(p.Revision):
		return invalid("$.revision", "must be 1 to %d letters, digits and . _ : - and start with a letter or digit", maxRevision)
	}
	return nil
}

// checkUserID keeps built-in ids out of user documents, so that one id never names two
// Profiles.
func checkUserID(id string, r registry) error {
	if strings.HasPrefix(id, builtinPrefix) {
		return invalid("$.id", "must not start with %q, which is reserved for Profiles that ship with the product", builtinPrefix)
	}
	if r.find(id) != nil {
		return invalid("$.id", "is the id of a built-in Profile; choose another one")
	}
	return nil
}

func checkCompatibility(p Profile) error {
	if !isName(p.Compatibility.Host) {
		return invalid("$.compatibility.host", nameRule)
	}
	if _, err := parseRange(p.Compatibility.Range); err != nil {
		return invalid("$.compatibility.range", "%s", err)
	}
	return nil
}

func checkController(p Profile) error {
	c := p.ControllerContext
	if c.Driver != DriverEnvironment {
		return invalid("$.controllerContext.driver", "must be exactly %q", DriverEnvironment)
	}
	if rule := variableRule(c.SessionIDVariable); rule != "" {
		return invalid("$.controllerContext.sessionIdVariable", "%s", rule)
	}
	if s := c.DeclaredScope; s != "" && s != ScopeStartup && s != ScopeRouteBound {
		return invalid("$.controllerContext.scope", "must be one of %s, %s, or be left out", ScopeStartup, ScopeRouteBound)
	}
	return nil
}

func checkCallback(p Profile) error {
	c := p.Callback
	if c.Driver != DriverCommandJSON {
		return invalid("$.callback.driver", "must be exactly %q", DriverCommandJSON)
	}
	if rule := executableRule(c.Executable); rule != "" {
		return invalid("$.callback.executable", "%s", rule)
	}
	if err := checkArguments(c.Arguments); err != nil {
		return err
	}
	if c.Stdin != PlaceholderBody {
		return invalid("$.callback.stdin", "must be exactly %s", PlaceholderBody)
	}
	if err := checkAllow(c.Environment.Allow); err != nil {
		return err
	}
	if c.TimeoutMs < 1 || c.TimeoutMs > maxTimeoutMs {
		return invalid("$.callback.timeoutMs", "must be a whole number from 1 to %d", maxTimeoutMs)
	}
	if c.MaxOutputBytes < 1 || c.MaxOutputBytes > maxOutputBytes {
		return invalid("$.callback.maxOutputBytes", "must be a whole number from 1 to %d", maxOutputBytes)
	}
	return nil
}

func checkAllow(allow []string) error {
	const path = "$.callback.environment.allow"
	if allow == nil {
		return invalid(path, "is required; an empty list passes nothing")
	}
	if len(allow) > maxAllow {
		return invalid(path, "must have at most %d names", maxAllow)
	}
	for i, name := range allow {
		if rule := variableRule(name); rule != "" {
			return invalid(at(path, i), "%s", rule)
		}
		if slices.Contains(allow[:i], name) {
			return invalid(at(path, i), "repeats an earlier name")
		}
	}
	return nil
}

func checkAcknowledgement(p Profile) error {
	const path = "$.callback.acknowledgement"
	a := p.Callback.Acknowledgement
	pointers := []struct{ path, value string }{
		{path + ".disposition.jsonPointer", a.Disposition.JSONPointer},
		{path + ".acceptanceId.jsonPointer", a.AcceptanceID.JSONPointer},
		{path + ".acknowledgedDeliveryId.jsonPointer", a.AcknowledgedDeliveryID.JSONPointer},
		{path + ".acknowledgedMessageId.jsonPointer", a.AcknowledgedMessageID.JSONPointer},
	}
	for _, p := range pointers {
		if rule := pointerRule(p.value); rule != "" {
			return invalid(p.path, "%s", rule)
		}
	}
	if a.AcknowledgedDeliveryID == a.AcknowledgedMessageID {
		return invalid(path+".acknowledgedMessageId.jsonPointer", "must differ from acknowledgedDeliveryId's pointer: each id is proved on its own")
	}
	return checkMapping(a.Disposition.Mapping)
}

func checkMapping(mapping map[string]string) error {
	const path = "$.callback.acknowledgement.disposition.mapping"
	if len(mapping) < 1 || len(mapping) > maxMapping {
		return invalid(path, "must have 1 to %d entries", maxMapping)
	}
	accepted := false
	for _, key := range slices.Sorted(maps.Keys(mapping)) { // sorted, so that the same document always gives the same refusal
		if !isMappingKey(key) {
			return invalid(path, "every key must be 1 to %d letters, digits and . _ : - and start with a letter or digit", maxMappingKey)
		}
		switch mapping[key] {
		case OutcomeAccepted:
			accepted = true
		case OutcomeRetryableFailure, OutcomePermanentFailure, OutcomeUncertain:
		default:
			return invalid(path+"."+key, "must be one of %s, %s, %s, %s",
				OutcomeAccepted, OutcomeRetryableFailure, OutcomePermanentFailure, OutcomeUncertain)
		}
	}
	if !accepted {
		return invalid(path, "must map at least one value to %q", OutcomeAccepted)
	}
	return nil
}
