package harness

import (
	"encoding/json"
	"math"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"
)

// property is what a form's schema says about one field. Only the flat kinds of the
// protocol are known.
type property struct {
	Type      string     `json:"type"`
	Enum      []any      `json:"enum"`
	OneOf     []constant `json:"oneOf"`
	Format    string     `json:"format"`
	Pattern   string     `json:"pattern"`
	MinLength *int       `json:"minLength"`
	MaxLength *int       `json:"maxLength"`
	Minimum   *float64   `json:"minimum"`
	Maximum   *float64   `json:"maximum"`
	MinItems  *int       `json:"minItems"`
	MaxItems  *int       `json:"maxItems"`
	Items     *property  `json:"items"`
	AnyOf     []constant `json:"anyOf"`
}

type constant struct {
	Const any `json:"const"`
}

type form struct {
	Properties map[string]property `json:"properties"`
	Required   []string            `json:"required"`
}

// CheckContent refuses content that does not fit the schema of its question: a missing
// required field, a field that is not asked for, a value of another type or outside its
// limits. A part of a schema that is not one of the flat kinds is not checked: the agent
// does that.
func CheckContent(schema json.RawMessage, content map[string]any) error {
	if len(schema) == 0 {
		return nil
	}
	var f form
	if json.Unmarshal(schema, &f) != nil || f.Properties == nil {
		return nil
	}
	for _, name := range f.Required {
		if v, there := content[name]; !there || v == nil {
			return Refuse(InvalidResponse, "the field %q is required", name).Advise("the question is still open")
		}
	}
	for name, v := range content {
		p, there := f.Properties[name]
		if !there {
			return Refuse(InvalidResponse, "the question has no field %q", name).Advise("the question is still open")
		}
		if why := p.wrong(v); why != "" {
			return Refuse(InvalidResponse, "the field %q %s", name, why).Advise("the question is still open")
		}
	}
	return nil
}

// wrong says what is wrong with v, "" for nothing.
func (p property) wrong(v any) string {
	switch p.Type {
	case "string":
		s, ok := v.(string)
		if !ok {
			return "must be a string"
		}
		return p.wrongString(s)
	case "number", "integer":
		n, ok := v.(float64)
		switch {
		case !ok:
			return "must be a number"
		case p.Type == "integer" && n != math.Trunc(n):
			return "must be a whole number"
		case p.Minimum != nil && n < *p.Minimum, p.Maximum != nil && n > *p.Maximum:
			return "is out of range"
		}
	case "boolean":
		if _, ok := v.(bool); !ok {
			return "must be true or false"
		}
	case "array":
		list, ok := v.([]any)
		switch {
		case !ok:
			return "must be a list"
		case p.MinItems != nil && len(list) < *p.MinItems, p.MaxItems != nil && len(list) > *p.MaxItems:
			return "has a wrong number of entries"
		}
		for _, item := range list {
			if p.Items != nil {
				if why := p.Items.wrong(item); why != "" {
					return "has an entry that " + why
				}
			}
		}
	}
	if !p.among(v) {
		return "must be one of the offered values"
	}
	return ""
}

func (p property) wrongString(s string) string {
	n := utf8.RuneCountInString(s)
	switch {
	case p.MinLength != nil && n < *p.MinLength:
		return "is too short"
	case p.MaxLength != nil && n > *p.MaxLength:
		return "is too long"
	case !p.among(s):
		return "must be one of the offered values"
	case p.Pattern != "":
		if re, err := regexp.Compile(p.Pattern); err == nil && !re.MatchString(s) {
			return "does not have the wanted form"
		}
	}
	var err error
	switch p.Format {
	case "email":
		_, err = mail.ParseAddress(s)
	case "uri":
		var u *url.URL
		if u, err = url.Parse(s); err == nil && u.Scheme == "" {
			return "must be a whole URI"
		}
	case "date":
		_, err = time.Parse(time.DateOnly, s)
	case "date-time":
		_, err = time.Parse(time.RFC3339, s)
	}
	if err != nil {
		return "is not a valid " + p.Format
	}
	return ""
}

func (p property) among(v any) bool {
	choices := slices.Clone(p.Enum)
	for _, c := range append(slices.Clone(p.OneOf), p.AnyOf...) {
		choices = append(choices, c.Const)
	}
	if len(choices) == 0 {
		return true
	}
	return slices.ContainsFunc(choices, func(c any) bool {
		switch c.(type) {
		case string, float64, bool:
			return c == v
		}
		return false
	})
}
