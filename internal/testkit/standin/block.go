package standin

// blockKind is a kind of paragraph of the conversation on the screen.
type blockKind int

const (
	blockUser blockKind = iota
	blockAgent
	blockTool        // a tool call that ran: text is the command, more its output
	blockShell       // "!cmd"
	blockApproved    // a person allowed the command
	blockCanceled    // a person refused it
	blockInterrupted //
	blockError       //
	blockInfo        //
	blockWorked      // "Worked for 3s"
)

type block struct {
	kind blockKind
	text string
	more string
}

func (a *app) block(k blockKind, text string) {
	a.blocks = append(a.blocks, block{kind: k, text: text})
}

func (a *app) blockMore(k blockKind, text, more string) {
	a.blocks = append(a.blocks, block{kind: k, text: text, more: more})
}
