package redact

import (
	"bytes"
	"slices"
)

// The classes of bytes. A word is what a name, a path segment or a secret is made of.
const (
	word   uint8 = 1 << iota // A-Z a-z 0-9 _ -
	dot                      // .
	bearer                   // a word or . ~ + / =
	blank                    // blank and tab
	spur                     // what may stand between a name or scheme and its value
)

// The ends of values.
const (
	tightEnd uint8 = 1 << iota
	lineEnd
	arrayEnd
)

var kind, ends = func() (k, e [256]uint8) {
	for c := range 256 {
		switch b := byte(c); {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '_', b == '-':
			k[c] = word | bearer
		case b == '.':
			k[c] = dot | bearer
		case b == '~' || b == '+' || b == '/' || b == '=':
			k[c] = bearer
			if b == '=' {
				k[c] |= spur
			}
		case b == ':' || b == '"' || b == '\'' || b == '\\':
			k[c] = spur
		case b == ' ' || b == '\t':
			k[c] = blank | spur
		}
	}
	for _, b := range []byte(" \t\r\n,}&\"'`") {
		e[b] |= tightEnd
	}
	for _, b := range []byte("\n,}") {
		e[b] |= lineEnd
	}
	for _, b := range []byte("\n]") {
		e[b] |= arrayEnd
	}
	return k, e
}()

// shape is a secret that is known by how it begins.
type shape struct {
	prefix string
	least  int  // bytes of a word behind the prefix
	upper  bool // only A-Z and 0-9
}

// shapes is the table of prefixes. A signed token (eyJ) is beside it: it has three parts.
var shapes = []shape{
	{"sk-", 8, false}, // also sk-ant-, sk-proj-
	{"ghp_", 8, false}, {"gho_", 8, false}, {"ghu_", 8, false}, {"ghs_", 8, false}, {"ghr_", 8, false},
	{"github_pat_", 8, false}, {"glpat-", 8, false},
	{"xoxa-", 8, false}, {"xoxb-", 8, false}, {"xoxe-", 8, false}, {"xoxp-", 8, false}, {"xoxr-", 8, false}, {"xoxs-", 8, false},
	{"AKIA", 12, true}, {"ASIA", 12, true},
	{"AIza", 20, false},
}

// shortest is the length of the shortest secret that a shape knows.
const shortest = 11

// Names whose value is secret contain one of these; see also secretParts.
var secretNames = [][]byte{
	[]byte("secret"), []byte("password"), []byte("passwd"), []byte("passphrase"), []byte("credential"),
	[]byte("authorization"), []byte("cookie"), []byte("apikey"), []byte("accesskey"), []byte("privatekey"), []byte("sessionkey"),
}

// plainEnds end names that only speak about a secret.
var plainEnds = [][]byte{[]byte("count"), []byte("counts"), []byte("limit"), []byte("budget"), []byte("usage"), []byte("type"), []byte("endpoint"), []byte("ttl"), []byte("expiry")}

// counters begin names of numbers of tokens.
var counters = [][]byte{[]byte("max"), []byte("input"), []byte("output"), []byte("total"), []byte("cached"), []byte("thought"), []byte("reasoning"), []byte("prompt"), []byte("completion")}

// hit is a secret: text up to keep stays, then comes the mask, and mode says what is
// skipped from next on. A zero next is no hit.
type hit struct {
	keep, next int
	mode       mode
	quote      byte
	depth      int
}

// find looks whether the word buf[i:end] is a secret or begins one. It looks at most
// `look` bytes ahead of i and never beyond the line.
func find(buf []byte, i, end int) hit {
	w := buf[i:end]
	if len(w) >= shortest {
		if h := findShape(buf, i, end); h.next > 0 {
			return h
		}
	}
	if end == len(buf) || len(w) == maxWord {
		return hit{}
	}
	switch c := buf[end]; c {
	case ' ', '\t':
		return findAfterBlank(buf, i, end)
	case ':':
		if bytes.HasPrefix(buf[end:], []byte("://")) {
			return findUser(buf, i, end)
		}
		return findValue(buf, i, end)
	case '=', '"', '\'', '\\':
		return findValue(buf, i, end)
	}
	return hit{}
}

// dull reports, for a word that is too short for a shape, that nothing can follow from it.
// It is only a shortcut: find would say the same.
func dull(buf []byte, i, end int) bool {
	if end == len(buf) || kind[buf[end]]&spur == 0 {
		return true
	}
	if buf[end] != ' ' || end+1 == len(buf) {
		return false
	}
	n, c := end-i, buf[end+1]
	return n != 5 && n != 6 && buf[i] != '-' && c != ':' && c != '=' && kind[c]&blank == 0
}

func findShape(buf []byte, i, end int) hit {
	for at := i; end-at >= shortest; {
		w := buf[at:end]
		switch w[0] {
		case 's', 'g', 'x', 'A':
			for _, s := range shapes {
				if len(w) >= len(s.prefix)+s.least && string(w[:len(s.prefix)]) == s.prefix && (!s.upper || allUpper(w[len(s.prefix):][:s.least])) {
					return hit{keep: at, next: end, mode: inSecret}
				}
			}
		case 'e':
			if bytes.HasPrefix(w, []byte("eyJ")) && isJWT(buf, at) {
				return hit{keep: at, next: end, mode: inJWT}
			}
		}
		dash := bytes.IndexByte(w, '-')
		if dash < 0 {
			break
		}
		at += dash + 1
	}
	return hit{}
}

func allUpper(w []byte) bool {
	for _, c := range w {
		if !('A' <= c && c <= 'Z' || '0' <= c && c <= '9') {
			return false
		}
	}
	return true
}

// isJWT reports whether three words joined by dots begin at i, the last one maybe empty.
func isJWT(buf []byte, i int) bool {
	limit := min(len(buf), i+look-maxWord)
	for part := range 2 {
		from := i
		for i < limit && kind[buf[i]]&word != 0 {
			i++
		}
		least := 8
		if part == 0 {
			least = 11
		}
		if i-from < least {
			return false
		}
		if part == 1 {
			return i == limit && limit < len(buf) || i < limit && buf[i] == '.'
		}
		if i >= limit || buf[i] != '.' {
			return false
		}
		i++
	}
	return false
}

var pemBegin, pemKind = []byte("-----BEGIN"), []byte("PRIVATE KEY-----")

// findAfterBlank handles a word with a blank behind it: a scheme and its credential, a
// flag and its value, the first line of a private key, a name before "= value".
func findAfterBlank(buf []byte, i, end int) hit {
	w := buf[i:end]
	next := afterBlanks(buf, end)
	if next == len(buf) || buf[next] == '\n' || buf[next] == '\r' {
		return hit{}
	}
	if c := buf[next]; c == ':' || c == '=' {
		return findValue(buf, i, end)
	}
	switch {
	case len(w) == 5 || len(w) == 6:
		return findCredential(buf, w, next)
	case len(w) > 4 && w[0] == '-' && w[1] == '-':
		if bytes.HasSuffix(w, pemBegin) {
			return findKey(buf, end-len(pemBegin), end)
		}
		if buf[next] != '-' && secretName(w) {
			return opened(buf, next, inTight)
		}
	case bytes.HasSuffix(w, pemBegin):
		return findKey(buf, end-len(pemBegin), end)
	}
	return hit{}
}

func findKey(buf []byte, begin, end int) hit {
	for k := end; k < min(len(buf), end+80) && buf[k] != '\n'; k++ {
		if buf[k] == 'P' && bytes.HasPrefix(buf[k:], pemKind) {
			return hit{keep: begin, next: k + len(pemKind), mode: inKey}
		}
	}
	return hit{}
}

// findCredential masks what follows bearer, basic or token. The last two are also words of
// the language, so what follows must look like more than a word.
func findCredential(buf, w []byte, next int) hit {
	strict := false
	switch {
	case bytes.EqualFold(w, []byte("bearer")):
	case bytes.EqualFold(w, []byte("basic")), bytes.EqualFold(w, []byte("token")):
		strict = true
	default:
		return hit{}
	}
	k, odd := next, false
	for limit := min(len(buf), next+maxHost); k < limit && kind[buf[k]]&bearer != 0; k++ {
		c := buf[k]
		odd = odd || '0' <= c && c <= '9' || c == '+' || c == '/' || c == '=' || c == '_' || k > next && 'A' <= c && c <= 'Z'
	}
	if k-next < 6 || strict && !odd && k-next < 16 {
		return hit{}
	}
	return hit{keep: next, next: k, mode: inBearer}
}

// findUser masks the password in scheme://user:password@host, and for web pages a user
// without a password too.
func findUser(buf []byte, i, colon int) hit {
	from := colon + 3
	pass, at := -1, -1
	k := from
	for limit := min(len(buf), from+maxHost); k < limit; k++ {
		c := buf[k]
		if c == '/' || c == '?' || c == '#' || c <= ' ' || c == '"' || c == '\'' || c == '<' || c == '>' || c == '`' || c == '\\' {
			break
		}
		if c == ':' && pass < 0 {
			pass = k + 1
		}
		if c == '@' {
			at = k
		}
	}
	switch {
	case at < 0:
		return hit{}
	case pass > 0 && pass < at:
		return hit{keep: pass, next: at, mode: plain}
	case at > from && pass < 0 && (bytes.HasSuffix(buf[i:colon], []byte("http")) || bytes.HasSuffix(buf[i:colon], []byte("https"))):
		return hit{keep: from, next: at, mode: plain}
	}
	return hit{}
}

// findValue handles name = value in all its spellings, also within a quoted JSON text.
func findValue(buf []byte, i, end int) hit {
	k := end
	limit := min(len(buf), end+maxBlank)
	for k < limit && (buf[k] == '\\' || buf[k] == '"' || buf[k] == '\'' || kind[buf[k]]&blank != 0) {
		k++
	}
	if k >= limit || buf[k] != ':' && buf[k] != '=' || !mayBeSecret(buf[i:end]) {
		return hit{}
	}
	sep := k
	k = afterBlanks(buf, k+1)
	if k == len(buf) || counts(buf[i:end], buf, k) || !secretName(buf[i:end]) {
		return hit{}
	}
	m := inLine
	if buf[sep] == '=' && k == sep+1 && kind[buf[sep-1]]&blank == 0 {
		m = inTight
	}
	return opened(buf, k, m)
}

// opened is the hit of a value that begins at k: the quotes around it are kept.
func opened(buf []byte, k int, m mode) hit {
	open := k
	for open < min(len(buf), k+8) && buf[open] == '\\' {
		open++
	}
	if open < len(buf) && (buf[open] == '"' || buf[open] == '\'') {
		if open+1 == len(buf) || buf[open+1] == buf[open] || buf[open+1] == '\n' {
			return hit{} // an empty value
		}
		return hit{keep: open + 1, next: open + 1, mode: inQuotes, quote: buf[open], depth: open - k}
	}
	switch c := buf[k]; {
	case c == '[':
		return hit{keep: k, next: k + 1, mode: inArray}
	case c == '{' || c == '\r' || ends[c]&lineEnd != 0 || m == inTight && ends[c]&tightEnd != 0:
		return hit{}
	}
	return hit{keep: k, next: k, mode: m}
}

func afterBlanks(buf []byte, k int) int {
	for limit := min(len(buf), k+maxBlank); k < limit && kind[buf[k]]&blank != 0; {
		k++
	}
	return k
}

// letters is a set of letters; a word without the letters of any name is not looked at.
type letters uint32

func lettersOf(s string) (l letters) {
	for _, c := range []byte(s) {
		l |= 1 << (c - 'a')
	}
	return l
}

// needed has the letters that each kind of name has at least.
var needed = [...]letters{lettersOf("ken"), lettersOf("key"), lettersOf("cret"), lettersOf("pasw"), lettersOf("pashr"), lettersOf("authoriz"), lettersOf("coki")}

// mayBeSecret is a shortcut: it is true for every secret name, and for few others.
func mayBeSecret(name []byte) bool {
	var has letters
	for _, c := range name {
		has |= 1 << ((c | 0x20) - 'a') & (1<<26 - 1) // other bytes shift out or set a bit in vain
	}
	for _, n := range needed {
		if has&n == n {
			return true
		}
	}
	return false
}

// secretName reports whether the value of a name is secret.
func secretName(name []byte) bool {
	if !mayBeSecret(name) {
		return false
	}
	var flat [maxWord]byte // lower case, without _ and -
	n := 0
	for _, c := range name {
		if c == '_' || c == '-' {
			continue
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		flat[n] = c
		n++
	}
	f := flat[:n]
	if n < 5 {
		return false
	}
	if !slices.ContainsFunc(secretNames, func(s []byte) bool { return bytes.Contains(f, s) }) && !namesToken(name, f) {
		return false
	}
	return !slices.ContainsFunc(plainEnds, func(e []byte) bool { return bytes.HasSuffix(f, e) })
}

// namesToken reports whether a name speaks of a token, and not of tokenizing.
func namesToken(name, flat []byte) bool {
	at := bytes.Index(flat, []byte("token"))
	if at < 0 {
		return false
	}
	if bytes.HasSuffix(flat, []byte("token")) || bytes.HasSuffix(flat, []byte("tokens")) {
		return true
	}
	// Inside a name it must be a part of its own: token_value, tokenValue.
	for k := 0; k+5 < len(name); k++ {
		if !bytes.EqualFold(name[k:k+5], []byte("token")) {
			continue
		}
		if c := name[k+5]; c == '_' || c == '-' || 'A' <= c && c <= 'Z' && name[k+4] == 'n' || '0' <= c && c <= '9' {
			return true
		}
	}
	return false
}

func endsFold(b []byte, end string) bool {
	return len(b) >= len(end) && bytes.EqualFold(b[len(b)-len(end):], []byte(end))
}

// counts reports whether the name counts tokens and the value at k is a number.
func counts(name, buf []byte, k int) bool {
	digits := k
	for digits < min(len(buf), k+20) && '0' <= buf[digits] && buf[digits] <= '9' {
		digits++
	}
	if digits == k || digits-k > 15 || digits < len(buf) && kind[buf[digits]]&(word|dot) != 0 {
		return false
	}
	if endsFold(name, "tokens") {
		return true
	}
	return endsFold(name, "token") && slices.ContainsFunc(counters, func(c []byte) bool { return bytes.Contains(bytes.ToLower(name), c) })
}
