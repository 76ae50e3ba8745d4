package known

// Methods of the app server that make a thread (0.150–0.171).
const (
	MThreadStart = "thread/start"    // {cwd} → {thread}; nothing is written yet
	MThreadName  = "thread/name/set" // {threadId, name}; writes the rollout and spares the title's turn
)
