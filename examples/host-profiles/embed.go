// Package hostprofiles holds the example Host Profiles as files, so that
// `agent-knock-knock host-profile example` works from an installed binary.
//
// It owns bytes only and parses nothing.
package hostprofiles

import _ "embed"

// CommandJSONStarter is the starter Profile, exactly as in command-json-starter.json.
//
//go:embed command-json-starter.json
var CommandJSONStarter string
