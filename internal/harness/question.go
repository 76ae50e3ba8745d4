package harness

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// QuestionKind is what a question is about.
type QuestionKind string

// The kinds of questions. The auth kinds belong to a session, the others to a
// message.
const (
	AskPermission  QuestionKind = "permission"
	AskInformation QuestionKind = "information" // an elicitation form or a plain question
	AskURL         QuestionKind = "url"
	AskAuthMethod  QuestionKind = "auth_method"
	AskAuthToken   QuestionKind = "auth_token"
	AskAuthCode    QuestionKind = "auth_device_code"
	// AskAuthTerminal is a login program that waits for what a person enters.
	AskAuthTerminal QuestionKind = "auth_terminal"
)

// QuestionStyle is the protocol form of an answer.
type QuestionStyle string

// The styles.
const (
	StylePermission  QuestionStyle = "permission"
	StyleElicitation QuestionStyle = "elicitation"
	StylePlain       QuestionStyle = "plain" // has no way to say no
	StyleAuth        QuestionStyle = "auth"  // ours, never the agent's
)

// QuestionState is where a question is. Only an open one takes an answer.
type QuestionState string

// The states of a question.
const (
	QuestionOpen      QuestionState = "open"
	QuestionAnswered  QuestionState = "answered"
	QuestionWithdrawn QuestionState = "withdrawn" // the agent took it back
	QuestionDropped   QuestionState = "dropped"   // its turn, session or server ended
)

// Option is one choice of a permission question or of the login methods.
type Option struct {
	ID   string `json:"option_id"`
	Name string `json:"name"`
	Kind string `json:"kind,omitempty"`
}

// Question is a request of the agent, or of a login, that waits for a person.
type Question struct {
	ID          string          `json:"request_id"`
	SessionID   string          `json:"-"`
	MessageID   string          `json:"message_id,omitempty"`
	Kind        QuestionKind    `json:"kind"`
	Style       QuestionStyle   `json:"-"`
	State       QuestionState   `json:"-"`
	Permission  bool            `json:"permission"`
	Sensitive   bool            `json:"sensitive,omitempty"`
	Title       string          `json:"title"`
	Message     string          `json:"message"`
	Options     []Option        `json:"options,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Defaults    map[string]any  `json:"defaults,omitempty"`
	URL         string          `json:"url,omitempty"`
	Elicitation string          `json:"elicitation_id,omitempty"`
	RawInput    json.RawMessage `json:"raw_input,omitempty"`
	Tool        *Tool           `json:"tool_call,omitempty"`
	CreatedAt   time.Time       `json:"created_at"`
	ExpiresAt   *time.Time      `json:"expires_at,omitempty"`
}

// QuestionID is the id of the n-th question of a session. It is never used again, also not
// after a restart, because the session's record counts its questions.
func QuestionID(session string, n int) string { return fmt.Sprintf("q-%s-%d", session, n) }

// The words of an answer without content.
const (
	AnswerReject  = "reject"
	AnswerCancel  = "cancel"
	AnswerTimeout = "timeout"
)

// Answer is what a caller gives: exactly one of the three.
type Answer struct {
	OptionID string          `json:"option_id,omitempty"`
	Content  json.RawMessage `json:"content,omitempty"`
	Word     string          `json:"answer,omitempty"` // reject, cancel or timeout
}

// Routed says what became of an answer.
type Routed string

// What an answer can become.
const (
	RoutedSelected      Routed = "selected"
	RoutedCancelled     Routed = "cancelled"
	RoutedAccept        Routed = "accept"
	RoutedDecline       Routed = "decline"
	RoutedCancel        Routed = "cancel"
	RoutedTurnCancelled Routed = "turn_cancelled"
)

// Route is the effect of an answer on the agent.
type Route struct {
	As       Routed
	OptionID string          // RoutedSelected
	Content  json.RawMessage // RoutedAccept
	// CancelReason is set when the protocol has no way to say no and the whole turn is
	// cancelled instead.
	CancelReason string
	Rejected     bool // a person said no: the result reports it beside the state
}

// Route decides what the answer does. It refuses an answer that does not fit; the question
// then stays open.
func (q Question) Route(a Answer) (Route, error) {
	given := 0
	for _, b := range []bool{a.OptionID != "", len(a.Content) > 0, a.Word != ""} {
		if b {
			given++
		}
	}
	if given != 1 {
		return Route{}, Refuse(InvalidAnswer, "give exactly one of option_id, content and answer")
	}
	if a.Word != "" && a.Word != AnswerReject && a.Word != AnswerCancel && a.Word != AnswerTimeout {
		return Route{}, Refuse(InvalidAnswer, "answer must be reject, cancel or timeout").Advise("to accept, give option_id or content")
	}
	switch {
	case a.OptionID != "":
		return q.option(a.OptionID)
	case len(a.Content) > 0:
		return q.content(a.Content)
	}
	return q.word(a.Word), nil
}

func (q Question) option(id string) (Route, error) {
	if len(q.Options) == 0 {
		return Route{}, Refuse(InvalidAnswer, "this question takes content, not an option").Advise("give content that fits its schema")
	}
	i := slices.IndexFunc(q.Options, func(o Option) bool { return o.ID == id })
	if i < 0 {
		return Route{}, Refuse(InvalidOption, "the option was not offered").Advise("use an option_id of the question")
	}
	return Route{As: RoutedSelected, OptionID: id, Rejected: rejects(q.Options[i].Kind)}, nil
}

func rejects(kind string) bool { return kind == "reject_once" || kind == "reject_always" }

func (q Question) content(content json.RawMessage) (Route, error) {
	if q.Style == StylePermission {
		return Route{}, Refuse(InvalidAnswer, "a permission takes option_id, not content")
	}
	var object map[string]any
	if json.Unmarshal(content, &object) != nil || object == nil {
		return Route{}, Refuse(InvalidResponse, "content must be a JSON object").Advise("fit the question's schema")
	}
	if q.Kind == AskAuthMethod {
		id, _ := object["method_id"].(string)
		if id == "" || len(object) != 1 {
			return Route{}, Refuse(InvalidResponse, "content must be {\"method_id\": ...} with one of the options")
		}
		return q.option(id)
	}
	if err := CheckContent(q.Schema, object); err != nil {
		return Route{}, err
	}
	if q.Kind == AskURL || q.Kind == AskAuthCode { // its form is ours; the agent's own answer has no content
		if opened, _ := object["opened"].(bool); !opened {
			return q.word(AnswerReject), nil
		}
		return Route{As: RoutedAccept}, nil
	}
	return Route{As: RoutedAccept, Content: content}, nil
}

func (q Question) word(word string) Route {
	no := word == AnswerReject
	switch q.Style {
	case StylePermission:
		if no {
			for _, kind := range []string{"reject_once", "reject_always"} {
				if i := slices.IndexFunc(q.Options, func(o Option) bool { return o.Kind == kind }); i >= 0 {
					return Route{As: RoutedSelected, OptionID: q.Options[i].ID, Rejected: true}
				}
			}
		}
		return Route{As: RoutedCancelled, Rejected: no}
	case StyleElicitation, StyleAuth:
		if no {
			return Route{As: RoutedDecline, Rejected: true}
		}
		return Route{As: RoutedCancel}
	}
	reason := map[string]string{AnswerReject: ReasonRejected, AnswerTimeout: ReasonTimeout, AnswerCancel: ReasonUser}[word]
	return Route{As: RoutedTurnCancelled, CancelReason: reason, Rejected: no}
}

// OpenedSchema is the form of a URL question: the person says that the page was opened.
var OpenedSchema = json.RawMessage(`{"type":"object","properties":{"opened":{"type":"boolean","title":"I opened the page and finished there"}},"required":["opened"]}`)

// Pick finds the open question that an answer is for. Asked is what is open, in order;
// known says whether the session ever had a question with this id.
func Pick(asked []Question, requestID, messageID string, known bool) (Question, error) {
	for _, q := range asked {
		if q.ID == requestID {
			if messageID != "" && q.MessageID != messageID {
				return Question{}, Refuse(RequestIDMismatch, "the question belongs to another message").Advise("read message_status again")
			}
			return q, nil
		}
	}
	if len(asked) == 0 || known {
		return Question{}, Refuse(NoPendingRequest, "no such question is open; it was answered, withdrawn or its message ended").Advise("read message_status again")
	}
	ids := make([]string, len(asked))
	for i, q := range asked {
		ids[i] = q.ID
	}
	return Question{}, Refuse(RequestIDMismatch, "another question is open").Advise("read message_status and answer the question that it shows").
		With(Detail{"pending": ids})
}
