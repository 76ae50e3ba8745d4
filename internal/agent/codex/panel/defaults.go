package panel

import (
	"strconv"
	"strings"

	"github.com/agent-knock-knock/akk/internal/agent"
	"github.com/agent-knock-knock/akk/internal/pattern"
)

// rootKey is one string of config.toml outside of any table.
var rootKey = pattern.New(`^\s*(model|model_reasoning_effort)\s*=\s*("(?:[^"\\]|\\.)*"|'[^']*')`)

// Defaults reads the two keys that the model picker writes. Both stand before the first
// table of config.toml, each in a line of its own.
func Defaults(config string) (s agent.Setting) {
	for line := range strings.SplitSeq(config, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "[") {
			break
		}
		m := rootKey.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		value := strings.Trim(m[2], "'")
		if v, err := strconv.Unquote(m[2]); err == nil && m[2][0] == '"' {
			value = v
		}
		if m[1] == "model" {
			s.Model = value
		} else {
			s.Effort = value
		}
	}
	return s
}
