package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// readChunk is the reader's buffer; a pipe holds 64 KiB.
const readChunk = 64 << 10

// lines cuts a stream into lines.
type lines struct {
	r     *bufio.Reader
	limit int
}

func newLines(r io.Reader, limit int) *lines {
	return &lines{r: bufio.NewReaderSize(r, readChunk), limit: limit}
}

// next returns the next line without its end. The slice is the caller's. The last line
// needs no end. After an error the framing is lost.
func (l *lines) next() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		if len(line)+len(bytes.TrimRight(part, "\r\n")) > l.limit {
			return nil, fault.New(LineTooLarge, "acp.read", "the agent wrote a line of more than %d bytes", l.limit)
		}
		switch {
		case err == nil || err == io.EOF && len(line)+len(part) > 0:
			line = append(line, part...)
			return bytes.TrimRight(line, "\r\n"), nil
		case err == bufio.ErrBufferFull:
			line = append(line, part...)
		default:
			return nil, err
		}
	}
}

// frameKind says what a line is.
type frameKind int

const (
	frameBlank frameKind = iota
	frameStray           // not JSON
	frameOdd             // JSON, and nothing that we can use
	frameRequest
	frameNotification
	frameResponse
)

// frame is the envelope of a line. The raw fields alias the decoder's copies, not the line.
type frame struct {
	kind   frameKind
	id     json.RawMessage // nil: absent; "null": null
	method string
	params json.RawMessage
	result json.RawMessage
	err    *RPCError
}

// readFrame never fails: what it cannot read is stray or odd.
func readFrame(line []byte) frame {
	trimmed := bytes.TrimSpace(line)
	if len(trimmed) == 0 {
		return frame{kind: frameBlank}
	}
	if trimmed[0] != '{' {
		if json.Valid(trimmed) {
			return frame{kind: frameOdd}
		}
		return frame{kind: frameStray}
	}
	var o object
	if err := json.Unmarshal(trimmed, &o); err != nil {
		return frame{kind: frameStray}
	}
	f := frame{id: o["id"], params: o["params"], result: o["result"]}
	_, hasMethod := o["method"]
	f.method = o.str("method")
	switch {
	case f.method != "" && f.id != nil:
		f.kind = frameRequest
	case f.method != "":
		f.kind = frameNotification
	case f.id != nil && !hasMethod:
		f.kind = frameResponse
		f.err = readError(o["error"])
	default:
		f.kind = frameOdd
	}
	return f
}

// readError is tolerant: an error without a code is still an error.
func readError(raw json.RawMessage) *RPCError {
	if isNull(raw) {
		return nil
	}
	o := asObject(raw)
	if o == nil {
		return &RPCError{Code: CodeInternal, Message: clip(string(raw), oddPreviewLength)}
	}
	code := CodeInternal
	if n := o.integer("code"); n != nil {
		code = int(*n)
	}
	return &RPCError{Code: code, Message: o.str("message"), Data: o["data"]}
}
