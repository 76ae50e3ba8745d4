package standin

// ClaudeVersion is the version that the stand-in plays.
const ClaudeVersion = "2.1.197"
