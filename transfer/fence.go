package transfer

import "strings"

// fenced returns text between fences that it can not close: longer than any run of
// backquotes in it (CommonMark, section 4.5).
func fenced(text, info string) string {
	longest, run := 0, 0
	for _, c := range []byte(text) {
		if c == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	fence := strings.Repeat("`", max(3, longest+1))
	return fence + info + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence
}

// rawHTML are the beginnings of HTML blocks that go on over blank lines, and what
// ends them (CommonMark, section 4.6, kinds 1 and 2).
var rawHTML = [][2]string{{"<!--", "-->"}, {"<script", "</script>"}, {"<pre", "</pre>"}, {"<style", "</style>"}, {"<textarea", "</textarea>"}}

// closed returns a text that leaves nothing open: a reply that was cut inside of a
// code block or a comment must not swallow what comes after it.
func closed(text string) string {
	end := "" // what closes the block that is open
	html := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		mark := fenceOf(line)
		switch {
		case end != "" && html:
			if strings.Contains(strings.ToLower(line), end) {
				end = ""
			}
		case end != "":
			if mark != "" && mark[0] == end[0] && len(mark) >= len(end) && strings.TrimSpace(line) == mark {
				end = ""
			}
		case mark != "":
			if mark[0] == '~' || !strings.Contains(line[strings.Index(line, mark)+len(mark):], "`") {
				end, html = mark, false
			}
		default:
			end, html = openHTML(line), true
		}
	}
	text = strings.TrimRight(text, "\n")
	if end != "" {
		text += "\n" + end
	}
	return text
}

// openHTML returns what ends the HTML block that a line begins, "" if it begins
// none or ends it.
func openHTML(line string) string {
	line = strings.ToLower(line)
	rest := strings.TrimLeft(line, " ")
	if len(line)-len(rest) > 3 {
		return ""
	}
	for _, tag := range rawHTML {
		if strings.HasPrefix(rest, tag[0]) && !strings.Contains(rest, tag[1]) {
			return tag[1]
		}
	}
	return ""
}

// fenceOf returns the fence that a line begins with, "" if it begins with none.
func fenceOf(line string) string {
	rest := strings.TrimLeft(line, " ")
	if len(line)-len(rest) > 3 || rest == "" || rest[0] != '`' && rest[0] != '~' {
		return ""
	}
	n := len(rest) - len(strings.TrimLeft(rest, rest[:1]))
	if n < 3 {
		return ""
	}
	return rest[:n]
}
