package callbackexec

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/agent-knock-knock/akk/internal/outbox"
	"github.com/agent-knock-knock/akk/internal/profile"
	"github.com/agent-knock-knock/akk/internal/strictjson"
)

const (
	maxAckDepth = 64 // nested arrays and objects of an acknowledgement
	codeNone    = ""
)

// verdict is what an acknowledgement proves.
type verdict struct {
	kind       outbox.OutcomeKind
	code       string
	acceptance string
}

func uncertain(code string) verdict { return verdict{kind: outbox.Uncertain, code: code} }

// judge reads stdout as the Profile says, top to bottom of the truth table. Nothing that
// is unknown, malformed or of another delivery can come out as success. exited says that
// the program ended with status 0.
func judge(stdout []byte, exited bool, ack profile.Acknowledgement, delivery, message string) verdict {
	doc, ok := oneDocument(stdout)
	if !ok {
		if exited {
			return uncertain(CodeAckInvalid)
		}
		return uncertain(CodeUnacknowledged)
	}
	word, ok := text(doc, ack.Disposition.JSONPointer)
	if !ok {
		return uncertain(CodeAckInvalid)
	}
	mapped, ok := ack.Disposition.Mapping[word]
	if !ok {
		return uncertain(CodeAckUnknown)
	}
	gotDelivery, okDelivery := text(doc, ack.AcknowledgedDeliveryID.JSONPointer)
	gotMessage, okMessage := text(doc, ack.AcknowledgedMessageID.JSONPointer)
	if !okDelivery || !okMessage {
		return uncertain(CodeAckInvalid)
	}
	if gotDelivery != delivery || gotMessage != message {
		return uncertain(CodeAckIdentity)
	}
	switch mapped {
	case profile.OutcomeAccepted:
		acceptance, ok := text(doc, ack.AcceptanceID.JSONPointer)
		if !ok {
			return uncertain(CodeAckInvalid)
		}
		return verdict{outbox.Accepted, codeNone, acceptance}
	case profile.OutcomeRetryableFailure:
		return verdict{kind: outbox.RetryableFailure, code: CodeHostRetryable}
	case profile.OutcomePermanentFailure:
		return verdict{kind: outbox.PermanentFailure, code: CodeHostPermanent}
	case profile.OutcomeUncertain:
		return uncertain(CodeHostUncertain)
	}
	return uncertain(CodeAckUnknown)
}

// oneDocument decodes exactly one JSON document. A duplicate key makes it none: two
// readers would see two answers.
func oneDocument(stdout []byte) (any, bool) {
	data := bytes.TrimSpace(stdout)
	if len(data) == 0 {
		return nil, false
	}
	var doc any
	err := strictjson.Decode(data, &doc, strictjson.Limits{MaxBytes: len(data), MaxDepth: maxAckDepth, AllowNull: true})
	return doc, err == nil
}

// text resolves a JSON Pointer to a string that is not blank, and returns it as it is.
// Objects have only the keys of the document; arrays are indexed by decimal number.
func text(doc any, pointer string) (string, bool) {
	if !strings.HasPrefix(pointer, "/") {
		return "", false
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for _, token := range strings.Split(pointer[1:], "/") {
		token = unescape.Replace(token)
		switch at := doc.(type) {
		case map[string]any:
			next, ok := at[token]
			if !ok {
				return "", false
			}
			doc = next
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(at) || strconv.Itoa(i) != token {
				return "", false
			}
			doc = at[i]
		default:
			return "", false
		}
	}
	s, ok := doc.(string)
	return s, ok && !blank(s)
}
