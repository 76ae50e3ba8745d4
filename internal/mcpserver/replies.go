package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// encodeResult builds a reply with the Host's own id.
func encodeResult(id, result json.RawMessage) []byte {
	var b bytes.Buffer
	b.WriteString(`{"jsonrpc":"2.0","id":`)
	b.Write(id)
	b.WriteString(`,"result":`)
	if len(result) == 0 {
		result = json.RawMessage("{}")
	}
	b.Write(result)
	b.WriteString("}")
	return b.Bytes()
}

// encodeError builds an error reply; a nil id is null.
func encodeError(id json.RawMessage, e *jsonrpc.Error) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	body, err := json.Marshal(e)
	if err != nil { // Data that is not JSON; the code and the text are
		body, _ = json.Marshal(&jsonrpc.Error{Code: e.Code, Message: e.Message}) // marshals: a number and a string
	}
	var b bytes.Buffer
	b.WriteString(`{"jsonrpc":"2.0","id":`)
	b.Write(id)
	b.WriteString(`,"error":`)
	b.Write(body)
	b.WriteString("}")
	return b.Bytes()
}

// restate puts an error of the SDK into words for a Host. The SDK gives code 0 to some
// and repeats Go types and whole params in others. What was built as a JSON-RPC error on
// purpose passes unchanged.
func (c *conn) restate(method string, err error) *jsonrpc.Error {
	if plain, ok := err.(*jsonrpc.Error); ok && plain.Code != 0 { //nolint:errorlint // wrapped ones are restated
		return plain
	}
	var coded *jsonrpc.Error
	code := int64(jsonrpc.CodeInvalidRequest)
	if errors.As(err, &coded) && coded.Code != 0 {
		code = coded.Code
	}
	c.log.Debug("the protocol layer refused a request", "method", method, "code", code, "error", err)
	switch {
	case method == methodInitialize && c.initialized.Load():
		return &jsonrpc.Error{Code: code, Message: "the session is already initialized: the first identity is kept"}
	case method == methodInitialize:
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
			Message: "initialize needs params with protocolVersion, capabilities and clientInfo"}
	case code == jsonrpc.CodeInvalidParams:
		return &jsonrpc.Error{Code: code, Message: fmt.Sprintf("params of %s do not have the expected form", method)}
	case !c.initialized.Load():
		return &jsonrpc.Error{Code: code, Message: fmt.Sprintf("%s came before initialize", method)}
	default:
		return &jsonrpc.Error{Code: code, Message: fmt.Sprintf("%s was not accepted", method)}
	}
}
