package crash

import (
	"fmt"
	"strconv"
	"strings"
)

// spoken returns what the offline model answers to a message of this suite.
func spoken(message string) string {
	if text, ok := strings.CutPrefix(message, "repeat: "); ok {
		return text
	}
	if rest, ok := strings.CutPrefix(message, "slow 1ms: count to "); ok {
		number, _, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			return ""
		}
		words := make([]string, n)
		for i := range words {
			words[i] = fmt.Sprint(i + 1)
		}
		return strings.Join(words, " ")
	}
	return ""
}
