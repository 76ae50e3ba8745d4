package schemas

import (
	"embed"
	"encoding/json"
	"fmt"
)

//go:embed tools/*.schema.json
var tools embed.FS

// ToolInput returns the closed JSON Schema of a tool's arguments. A name without a schema
// is a programming error and panics.
func ToolInput(tool string) json.RawMessage { return toolSchema(tool, "input") }

// ToolOutput returns the JSON Schema of a tool's structured result.
func ToolOutput(tool string) json.RawMessage { return toolSchema(tool, "output") }

//go:embed tools/harness/*.schema.json
var harnessTools embed.FS

// HarnessToolInput and HarnessToolOutput are the same for the tools of headless agents.
func HarnessToolInput(tool string) json.RawMessage { return harnessSchema(tool, "input") }

// HarnessToolOutput returns a schema that is open: a server may say more.
func HarnessToolOutput(tool string) json.RawMessage { return harnessSchema(tool, "output") }

func harnessSchema(tool, side string) json.RawMessage {
	b, err := harnessTools.ReadFile(fmt.Sprintf("tools/harness/%s.%s.schema.json", tool, side))
	if err != nil {
		panic(err)
	}
	return b
}

func toolSchema(tool, side string) json.RawMessage {
	b, err := tools.ReadFile(fmt.Sprintf("tools/%s.%s.schema.json", tool, side))
	if err != nil {
		panic(err)
	}
	return b
}
