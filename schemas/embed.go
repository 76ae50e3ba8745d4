// Package schemas holds the JSON Schemas of documents that other people write.
//
// They are for editors; the Go validators stay the authority, and a test proves that a
// schema never refuses what its validator accepts. The package parses nothing.
package schemas

import _ "embed"

// HostProfileV1 is host-profile-v1.schema.json (draft 2020-12).
//
//go:embed host-profile-v1.schema.json
var HostProfileV1 string
