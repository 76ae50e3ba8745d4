package sessions

import "testing"

func TestACodeForAPageIsRecognised(t *testing.T) {
	for line, want := range map[string]string{
		"  ABCD-1234": "ABCD-1234",
		"First copy your one-time code: 1A2B-3C4D": "1A2B-3C4D",
		"enter ABCD-12345.":                        "ABCD-12345",
		"Enter the code C8XYZABCD to go on":        "C8XYZABCD",
		"code is 123456":                           "123456",
		"userCode: WXYZ1234":                       "WXYZ1234",
		`user_code: "WXYZ1234"`:                    "WXYZ1234",
		"see https://x.test/ABCD-1234":             "",
		"https://x.test/?user_code=WXYZ1234":       "",
		"2024-12-03 10:00:00 INFO started":         "",
		"id 4A1B0000-9C3D-1111-2222-333344445555":  "",
		"exit code 1":                              "",
		"the code follows":                         "",
		"UTF-8, ISO-8859-1, GPT-4":                 "",
		"":                                         "",
	} {
		if got := codeIn(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
